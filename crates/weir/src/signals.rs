//! The signals that end a balancer, and those that ask something of it.

use std::io;
use std::pin::{Pin, pin};
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::desk::{Errand, Errands};

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

    /// Blocks until the next signal, but not longer than `time`, and yields its name.
    pub(crate) fn wait_at_most(&mut self, time: Duration) -> Option<&'static str> {
        let Signals { runtime, terminate, interrupt } = self;
        runtime
            .block_on(async { tokio::time::timeout(time, ending(terminate, interrupt)).await.ok() })
    }

    /// Runs `future` to its end; `Err`: a signal came before, by its name, and the future is
    /// dropped.
    pub(crate) fn run<T>(&mut self, future: impl Future<Output = T>) -> Result<T, &'static str> {
        let Signals { runtime, terminate, interrupt } = self;
        runtime.block_on(async {
            tokio::select! {
                biased;
                signal = ending(terminate, interrupt) => Err(signal),
                ended = future => Ok(ended),
            }
        })
    }

    /// Runs `future` to its end; it is given what ends when a signal comes, with its name.
    pub(crate) fn run_with_stop<T>(
        &mut self,
        run: impl AsyncFnOnce(Pin<&mut dyn Future<Output = &'static str>>) -> T,
    ) -> T {
        let Signals { runtime, terminate, interrupt } = self;
        runtime.block_on(async {
            let stop = pin!(ending(terminate, interrupt));
            run(stop).await
        })
    }
}

async fn ending(terminate: &mut Signal, interrupt: &mut Signal) -> &'static str {
    tokio::select! {
        _ = terminate.recv() => "SIGTERM",
        _ = interrupt.recv() => "SIGINT",
    }
}

/// What a balancer is told while it serves.
pub(crate) enum Event {
    /// Stop; the signal's name.
    Stop(&'static str),
    /// SIGHUP: load the configuration anew.
    Reload,
    /// SIGUSR2: let a new process take over.
    Upgrade,
    /// Another thread asks.
    Asked(Errand),
}

/// Everything that a balancer is told while it serves, in one place.
pub(crate) struct Events {
    /// Those that end it; also for the stop itself.
    pub(crate) signals: Signals,
    hangup: Signal,
    upgrade: Signal,
    errands: Errands,
}

impl Events {
    pub(crate) fn catch(errands: Errands) -> io::Result<Events> {
        let signals = Signals::catch()?;
        let (hangup, upgrade) = {
            let _inside = signals.runtime.enter();
            (signal(SignalKind::hangup())?, signal(SignalKind::user_defined2())?)
        };
        Ok(Events { signals, hangup, upgrade, errands })
    }

    /// Blocks until there is something, but not longer than `time`.
    pub(crate) fn next(&mut self, time: Duration) -> Option<Event> {
        let Events { signals, hangup, upgrade, errands } = self;
        let Signals { runtime, terminate, interrupt } = signals;
        let event = async {
            tokio::select! {
                // An end comes before what would be in vain.
                biased;
                signal = ending(terminate, interrupt) => Event::Stop(signal),
                Some(errand) = errands.recv() => Event::Asked(errand),
                _ = hangup.recv() => Event::Reload,
                _ = upgrade.recv() => Event::Upgrade,
            }
        };
        runtime.block_on(async { tokio::time::timeout(time, event).await.ok() })
    }

    /// Answers no more: whoever asks is told that it is stopping.
    pub(crate) fn close(self) -> LastSignals {
        LastSignals { signals: self.signals, hangup: Some(self.hangup) }
    }
}

/// What is heard to the very end.
pub(crate) struct LastSignals {
    signals: Signals,
    /// `None`: it was not caught before either.
    hangup: Option<Signal>,
}

/// What a balancer that ends is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LastWish {
    /// To stop at once; the signal's name.
    Stop(&'static str),
    /// SIGHUP: the access log was moved away.
    Reopen,
}

impl LastSignals {
    /// Blocks until the next signal, but not longer than `time`.
    pub(crate) fn wait_at_most(&mut self, time: Duration) -> Option<LastWish> {
        let LastSignals { signals: Signals { runtime, terminate, interrupt }, hangup } = self;
        let hung_up = async {
            match hangup {
                Some(hangup) => hangup.recv().await,
                None => std::future::pending().await,
            }
        };
        let wish = async {
            tokio::select! {
                biased;
                signal = ending(terminate, interrupt) => LastWish::Stop(signal),
                _ = hung_up => LastWish::Reopen,
            }
        };
        runtime.block_on(async { tokio::time::timeout(time, wish).await.ok() })
    }
}

impl From<Signals> for LastSignals {
    fn from(signals: Signals) -> LastSignals {
        LastSignals { signals, hangup: None }
    }
}
