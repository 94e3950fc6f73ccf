//! The server: one thread, loopback alone, ended when whoever started it ends it or drops it.

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

/// How long, after the end of a run, those who looked on have to fetch how it came out.
const FAREWELL: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_millis(20);
/// How long what is being answered may take once the server is to end.
const ENDING: Duration = Duration::from_secs(1);
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
    live: Option<Arc<Live>>,
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
        let live = content.live.as_ref().map(|(live, _)| live.clone());
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
            runtime.shutdown_timeout(ENDING);
        })?;
        Ok(Self { address: format!("http://127.0.0.1:{port}/{secret}/"), end: Some(end), thread: Some(thread), live })
    }

    /// Where it is found, with the secret that lets in.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Gives those who look on at the end of a run a moment to see how it came out, and ends.
    pub fn end(self) {
        if let Some(live) = &self.live {
            let mut waited = Duration::ZERO;
            while !live.was_seen() && waited < FAREWELL {
                std::thread::sleep(LOOK);
                waited += LOOK;
            }
        }
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
        // Connections that are kept open would hold it for ever.
        tokio::time::sleep(ENDING).await;
    };
    tokio::select! {
        _ = serving => {}
        () = patience => {}
        () = served.read_library() => {}
    }
}
