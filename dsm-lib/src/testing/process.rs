//! A process of a cluster on a thread of its own.

use std::io;
use std::pin::Pin;
use std::sync::mpsc;
use std::thread::JoinHandle;

use dosmos_proto::transport::{Address, Listener};
use tokio::sync::oneshot;

/// Completes when a process is to end.
pub type Stopped = Pin<Box<dyn Future<Output = ()>>>;

/// A process of a cluster, on a thread of its own; it ends when this is dropped.
#[derive(Debug)]
pub struct Process {
    address: Address,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Process {
    /// Starts `main` with a listener and with what completes when it is to end.
    ///
    /// # Errors
    /// If the system gives it no thread, runtime or port.
    pub fn start<M>(name: &str, main: M) -> io::Result<Self>
    where
        M: AsyncFnOnce(Listener, Stopped) + Send + 'static,
    {
        let (stop, stopped) = oneshot::channel();
        let (up, is_up) = mpsc::channel();
        let thread = std::thread::Builder::new().name(name.to_owned());
        let thread = thread.spawn(move || {
            let mut runtime = tokio::runtime::Builder::new_current_thread();
            let runtime = match runtime.enable_all().build() {
                Ok(runtime) => runtime,
                Err(e) => return drop(up.send(Err(e))),
            };
            runtime.block_on(async {
                match Listener::bind(&Address::Tcp("127.0.0.1:0".to_owned())).await {
                    Ok(listener) => {
                        let _ = up.send(Ok(listener.address().clone()));
                        main(listener, Box::pin(async { drop(stopped.await) })).await;
                    }
                    Err(e) => drop(up.send(Err(io::Error::other(e)))),
                }
            });
        })?;
        let address = is_up
            .recv()
            .map_err(|_| io::Error::other("its thread ended"))??;
        Ok(Self {
            address,
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    /// Where it listens.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Asks it to end, and does not wait for that.
    pub fn stop(&mut self) {
        self.stop.take();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.stop();
        let ended = self.thread.take().map(JoinHandle::join);
        if let Some(Err(panic)) = ended
            && !std::thread::panicking()
        {
            std::panic::resume_unwind(panic);
        }
    }
}
