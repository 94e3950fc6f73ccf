//! The server: one thread, on loopback only. Dropping it ends it: answers under way are completed first.

use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use axum::Router;
use tokio::sync::oneshot;

use crate::library::Library;
use crate::live::Live;
use crate::routes::{Served, router};
use crate::{guard, token};

/// How long answers under way may take once the server is to end. The events of a run, which close with its result, are
/// such an answer.
const FAREWELL: Duration = Duration::from_secs(5);
/// Whatever is made for a page gives way to what is measured on this host.
const NICE: i32 = 10;

/// What is served.
pub struct Content {
    /// Past results.
    pub library: Library,
    /// The run under way, if it is for one, and what stops it.
    pub live: Option<(Arc<Live>, Stop)>,
}

/// Ends the run as an interrupt does.
pub type Stop = Box<dyn Fn() + Send + Sync>;

/// Takes a port of loopback; 0 for any that is free. Nobody is answered yet.
///
/// # Errors
/// When it cannot be had.
pub fn listen(port: u16) -> Result<TcpListener, StartError> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).map_err(|cause| StartError::Port { port, cause })
}

/// Why nothing is served.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The port cannot be had.
    #[error("127.0.0.1:{port} cannot be listened on: {cause}")]
    Port {
        /// The port; 0 for any.
        port: u16,
        /// The system's words.
        cause: io::Error,
    },
    /// A thread or a secret cannot be had.
    #[error("the live page cannot be served: {0}")]
    Io(#[from] io::Error),
}

/// A server on loopback.
pub struct Server {
    address: String,
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Answers who comes to the port that [`listen`] has taken.
    ///
    /// # Errors
    /// When a thread or a secret cannot be had.
    pub fn start(listener: TcpListener, content: Content) -> Result<Self, StartError> {
        listener.set_nonblocking(true)?;
        let port = listener.local_addr()?.port();
        let secret = token::random()?;
        let served = Arc::new(Served::new(content));
        let app = router(&secret, served.clone(), guard::Names::new(port));
        let (end, ended) = oneshot::channel();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            // What a page asks for is made one after the other: at most one core is taken.
            .max_blocking_threads(1)
            .build()?;
        let thread = std::thread::Builder::new().name("live page".to_owned()).spawn(move || {
            // A thread that is not nice serves as well.
            let _ = rustix::process::nice(NICE);
            runtime.block_on(serve(listener, app, served, ended));
            // What it still reads is for a list that nobody will ask for.
            runtime.shutdown_background();
        })?;
        Ok(Self { address: format!("http://127.0.0.1:{port}/{secret}/"), end: Some(end), thread: Some(thread) })
    }

    /// Where it is found, with the secret that lets in.
    pub fn address(&self) -> &str {
        &self.address
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Its thread has gone if it does not hear.
        let _ = self.end.take().map(|end| end.send(()));
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

async fn serve(listener: TcpListener, app: Router, served: Arc<Served>, ended: oneshot::Receiver<()>) {
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
    let (told, telling) = oneshot::channel();
    let serving = axum::serve(listener, app).with_graceful_shutdown(async {
        // Whoever dropped the sender wants the end, too.
        let _ = ended.await;
        let _ = told.send(());
    });
    let patience = async {
        let _ = telling.await;
        // A client that does not read would hold it for ever.
        tokio::time::sleep(FAREWELL).await;
    };
    tokio::select! {
        _ = serving => {}
        () = patience => {}
        () = served.read_library() => {}
    }
}
