//! What a balancer reacts to while it serves: signals, and commands from other threads.

use std::io;
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind};

use crate::commands::{Command, CommandReceiver};
use crate::signals::{LastSignals, Signals};

/// One thing to react to.
pub(crate) enum Event {
    /// Stop; the signal's name.
    Stop(&'static str),
    /// SIGHUP: load the configuration again.
    Reload,
    /// SIGUSR2: let a new process take over.
    Upgrade,
    /// Another thread asks.
    Asked(Command),
}

/// Yields events, the most urgent first.
pub(crate) struct Events {
    signals: Signals,
    hangup: Signal,
    upgrade: Signal,
    commands: CommandReceiver,
}

impl Events {
    pub(crate) fn catch(commands: CommandReceiver) -> io::Result<Events> {
        let signals = Signals::catch()?;
        let (hangup, upgrade) =
            (signals.also(SignalKind::hangup())?, signals.also(SignalKind::user_defined2())?);
        Ok(Events { signals, hangup, upgrade, commands })
    }

    /// Blocks until there is an event, but not longer than `time`.
    pub(crate) fn next(&mut self, time: Duration) -> Option<Event> {
        let Events { signals, hangup, upgrade, commands } = self;
        signals.run_with_stop(async |stop| {
            let event = async {
                tokio::select! {
                    // An end comes before what would be in vain.
                    biased;
                    signal = stop => Event::Stop(signal),
                    Some(command) = commands.recv() => Event::Asked(command),
                    _ = hangup.recv() => Event::Reload,
                    _ = upgrade.recv() => Event::Upgrade,
                }
            };
            tokio::time::timeout(time, event).await.ok()
        })
    }

    /// Refuses further commands, and keeps the signals that count while the balancer stops.
    pub(crate) fn close(self) -> LastSignals {
        LastSignals::new(self.signals, Some(self.hangup))
    }
}
