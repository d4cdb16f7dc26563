//! The signals that end a balancer.

use std::io;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// SIGTERM and SIGINT, caught from the moment this is made.
pub(crate) struct Signals {
    runtime: Runtime,
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    pub(crate) fn catch() -> io::Result<Signals> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let (terminate, interrupt) = {
            let _inside = runtime.enter();
            (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?)
        };
        Ok(Signals { runtime, terminate, interrupt })
    }

    /// Blocks until the next signal, and yields its name.
    pub(crate) fn wait(&mut self) -> &'static str {
        let Signals { runtime, terminate, interrupt } = self;
        runtime.block_on(next(terminate, interrupt))
    }

    /// As [`Signals::wait`], but not longer than `time`.
    pub(crate) fn wait_at_most(&mut self, time: Duration) -> Option<&'static str> {
        let Signals { runtime, terminate, interrupt } = self;
        runtime
            .block_on(async { tokio::time::timeout(time, next(terminate, interrupt)).await.ok() })
    }
}

async fn next(terminate: &mut Signal, interrupt: &mut Signal) -> &'static str {
    tokio::select! {
        _ = terminate.recv() => "SIGTERM",
        _ = interrupt.recv() => "SIGINT",
    }
}
