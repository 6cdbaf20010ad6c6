//! A server on threads of its own, for programs that are not asynchronous.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::sync::oneshot;

use crate::http::App;
use crate::jobs::Evaluator;
use crate::server::{Options, Server, ServerError};

/// A server that runs until this is dropped.
pub struct Background {
    address: SocketAddr,
    app: Arc<App>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Background {
    /// Starts a server and waits until it listens; with another way to evaluate for tests.
    ///
    /// # Errors
    /// Why it does not start.
    pub fn start(options: &Options, evaluator: Option<Box<Evaluator>>) -> Result<Self, ServerError> {
        let failed = |cause| ServerError::Io { what: "threads".to_owned(), cause };
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        let runtime = runtime.map_err(failed)?;
        let (options, (told, tell)) = (options.clone(), mpsc::channel());
        let (stop, stopped) = oneshot::channel::<()>();
        let thread = std::thread::Builder::new().name("server".to_owned()).spawn(move || {
            runtime.block_on(async {
                match Server::start_with(&options, evaluator).await {
                    Ok(server) => {
                        let _ = told.send(Ok((server.address(), Arc::clone(server.app()))));
                        server.serve(async { drop(stopped.await) }).await;
                    }
                    Err(error) => drop(told.send(Err(error))),
                }
            });
            runtime.shutdown_timeout(Duration::from_secs(1));
        });
        let thread = thread.map_err(failed)?;
        let (address, app) = tell.recv().map_err(|error| failed(io::Error::other(error)))??;
        Ok(Self { address: address.map_err(failed)?, app, stop: Some(stop), thread: Some(thread) })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What its requests see.
    pub fn app(&self) -> &Arc<App> {
        &self.app
    }
}

impl Drop for Background {
    /// Ends the server in good order.
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic of the server has printed where it happened.
            let _ = thread.join();
        }
    }
}
