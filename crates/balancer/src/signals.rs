//! Handles the signals that end a process (SIGTERM, SIGINT), and SIGHUP while a balancer stops.

use std::io;
use std::pin::{Pin, pin};
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// SIGTERM and SIGINT, caught from the moment this is created.
pub struct Signals {
    runtime: Runtime,
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    /// Catches both from now on.
    ///
    /// # Errors
    /// The runtime cannot be created, or a signal cannot be caught.
    pub fn catch() -> io::Result<Signals> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let (terminate, interrupt) = {
            let _inside = runtime.enter();
            (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?)
        };
        Ok(Signals { runtime, terminate, interrupt })
    }

    /// Also catches `kind`, from now on.
    ///
    /// # Errors
    /// The signal cannot be caught.
    pub fn also(&self, kind: SignalKind) -> io::Result<Signal> {
        let _inside = self.runtime.enter();
        signal(kind)
    }

    /// Blocks until the next signal, at most `time`, and returns its name.
    pub fn wait_at_most(&mut self, time: Duration) -> Option<&'static str> {
        let Signals { runtime, terminate, interrupt } = self;
        runtime
            .block_on(async { tokio::time::timeout(time, ending(terminate, interrupt)).await.ok() })
    }

    /// Runs `future` to its end. If a signal arrives first, the future is dropped.
    ///
    /// # Errors
    /// A signal came first: its name.
    pub fn run<T>(&mut self, future: impl Future<Output = T>) -> Result<T, &'static str> {
        let Signals { runtime, terminate, interrupt } = self;
        runtime.block_on(async {
            tokio::select! {
                biased;
                signal = ending(terminate, interrupt) => Err(signal),
                ended = future => Ok(ended),
            }
        })
    }

    /// Runs `future` to its end; it receives a future that completes with the signal's name when a
    /// signal arrives.
    pub fn run_with_stop<T>(
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

/// The signals that a balancer handles while it stops.
pub struct LastSignals {
    signals: Signals,
    /// `None`: SIGHUP was not caught before either.
    hangup: Option<Signal>,
}

/// What a signal requests of a balancer that stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LastSignal {
    /// Stop at once; contains the signal's name.
    Stop(&'static str),
    /// SIGHUP: the access log was rotated.
    Reopen,
}

impl LastSignals {
    /// Continues with `signals`, and with SIGHUP if it was caught.
    pub fn new(signals: Signals, hangup: Option<Signal>) -> LastSignals {
        LastSignals { signals, hangup }
    }

    /// Blocks until the next signal, at most `time`.
    pub fn wait_at_most(&mut self, time: Duration) -> Option<LastSignal> {
        let LastSignals { signals: Signals { runtime, terminate, interrupt }, hangup } = self;
        let hung_up = async {
            match hangup {
                Some(hangup) => hangup.recv().await,
                None => std::future::pending().await,
            }
        };
        let asked = async {
            tokio::select! {
                biased;
                signal = ending(terminate, interrupt) => LastSignal::Stop(signal),
                _ = hung_up => LastSignal::Reopen,
            }
        };
        runtime.block_on(async { tokio::time::timeout(time, asked).await.ok() })
    }
}

impl From<Signals> for LastSignals {
    fn from(signals: Signals) -> LastSignals {
        LastSignals::new(signals, None)
    }
}
