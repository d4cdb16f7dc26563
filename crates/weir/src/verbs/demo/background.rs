//! A thread with its own runtime, for the parts of the demo that run beside the balancer.

use std::io;
use std::thread::JoinHandle;

use tokio::sync::oneshot;

/// Runs one future until this is dropped, or until it ends.
#[derive(Debug)]
pub(super) struct Background {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Background {
    /// `work` makes the future on the new thread, within the runtime.
    pub(super) fn start<F, W>(name: &str, work: F) -> io::Result<Background>
    where
        F: FnOnce() -> W + Send + 'static,
        W: Future<Output = ()>,
    {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    () = work() => {}
                    // An error is the sender's drop, which means the same.
                    _ = stopped => {}
                }
            });
        })?;
        Ok(Background { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("a thread of the demo panicked");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_ends_when_dropped() {
        let background = Background::start("test", std::future::pending).unwrap();
        drop(background);
    }
}
