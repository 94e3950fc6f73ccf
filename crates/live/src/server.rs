//! The server: one thread, on loopback only. Dropping it stops it after it has completed the responses in progress.

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

/// The longest time for which responses in progress may continue once the server must end. An example is the event
/// stream of a run, which ends with its result.
const FAREWELL: Duration = Duration::from_secs(5);
/// The server's priority is low, so that making a page does not disturb the measurement.
const NICE: i32 = 10;

/// The content of the server.
pub struct Content {
    /// Past results.
    pub library: Library,
    /// The current run, if there is one, and the function that stops it.
    pub live: Option<(Arc<Live>, Stop)>,
}

/// Stops the run like an interrupt.
pub type Stop = Box<dyn Fn() + Send + Sync>;

/// Binds a port on loopback; 0 for any free port. Requests are not answered yet.
///
/// # Errors
/// The port cannot be bound.
pub fn listen(port: u16) -> Result<TcpListener, StartError> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).map_err(|cause| StartError::Port { port, cause })
}

/// The reason why the server did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The port cannot be bound.
    #[error("127.0.0.1:{port} cannot be listened on: {cause}")]
    Port {
        /// The port; 0 for any.
        port: u16,
        /// The system's message.
        cause: io::Error,
    },
    /// A thread or a secret cannot be created.
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
    /// Serves requests on the listener from [`listen`].
    ///
    /// # Errors
    /// A thread or a secret cannot be created.
    pub fn start(listener: TcpListener, content: Content) -> Result<Self, StartError> {
        listener.set_nonblocking(true)?;
        let port = listener.local_addr()?.port();
        let secret = token::random()?;
        let served = Arc::new(Served::new(content));
        let app = router(&secret, served.clone(), guard::Names::new(port));
        let (end, ended) = oneshot::channel();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            // Pages are made one at a time, so that they use at most one core.
            .max_blocking_threads(1)
            .build()?;
        let thread = std::thread::Builder::new().name("live page".to_owned()).spawn(move || {
            // A thread without a lower priority works too.
            let _ = rustix::process::nice(NICE);
            runtime.block_on(serve(listener, app, served, ended));
            // Its remaining reads are for a list that is not needed any more.
            runtime.shutdown_background();
        })?;
        Ok(Self { address: format!("http://127.0.0.1:{port}/{secret}/"), end: Some(end), thread: Some(thread) })
    }

    /// The address with the secret that grants access.
    pub fn address(&self) -> &str {
        &self.address
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // If the receiver is gone, the thread has ended.
        let _ = self.end.take().map(|end| end.send(()));
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

async fn serve(listener: TcpListener, app: Router, served: Arc<Served>, ended: oneshot::Receiver<()>) {
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
    let (reported, telling) = oneshot::channel();
    let serving = axum::serve(listener, app).with_graceful_shutdown(async {
        // A dropped sender also means that the server must end.
        let _ = ended.await;
        let _ = reported.send(());
    });
    let patience = async {
        let _ = telling.await;
        // A client that does not read would block the end for ever.
        tokio::time::sleep(FAREWELL).await;
    };
    tokio::select! {
        _ = serving => {}
        () = patience => {}
        () = served.read_library() => {}
    }
}
