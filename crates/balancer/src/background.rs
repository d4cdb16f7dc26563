//! A thread that works until it is stopped.

use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{Builder, JoinHandle};

/// A running thread.
#[derive(Debug)]
pub(crate) struct Background {
    name: &'static str,
    stop: Sender<()>,
    thread: JoinHandle<()>,
}

impl Background {
    /// Starts a thread with this name. It ends when it receives anything, or nothing any more because
    /// its handle is gone.
    ///
    /// # Errors
    /// The system grants no thread.
    pub(crate) fn start(
        name: &'static str,
        run: impl FnOnce(&Receiver<()>) + Send + 'static,
    ) -> io::Result<Background> {
        let (stop, stopped) = channel();
        let thread = Builder::new().name(name.to_owned()).spawn(move || run(&stopped))?;
        Ok(Background { name, stop, thread })
    }

    /// Stops it, and returns when it has ended.
    pub(crate) fn stop(self) {
        // An error means that it has ended.
        let _ = self.stop.send(());
        if self.thread.join().is_err() {
            tracing::error!(thread = self.name, "a thread panicked");
        }
    }
}
