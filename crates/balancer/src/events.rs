//! The events that a balancer handles while it serves: signals, and commands from other threads.

use std::future::pending;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use gateway::served::Served;
use tokio::signal::unix::{Signal, SignalKind};
use tokio::sync::watch;

use crate::commands::{Command, CommandReceiver};
use crate::signals::{LastSignals, Signals};

/// An event.
pub(crate) enum Event {
    /// Stop; contains the signal's name.
    Stop(&'static str),
    /// SIGHUP: reload the configuration.
    Reload,
    /// SIGUSR2: let a new process take over.
    Upgrade,
    /// A command from another thread.
    Asked(Command),
    /// What the Gateways of Kubernetes serve has changed.
    Gateways,
}

/// Returns events, the most urgent first.
pub(crate) struct Events {
    signals: Signals,
    hangup: Signal,
    upgrade: Signal,
    commands: CommandReceiver,
    gateways: Option<watch::Receiver<Arc<Served>>>,
}

impl Events {
    pub(crate) fn catch(commands: CommandReceiver) -> io::Result<Events> {
        let signals = Signals::catch()?;
        let (hangup, upgrade) =
            (signals.also(SignalKind::hangup())?, signals.also(SignalKind::user_defined2())?);
        Ok(Events { signals, hangup, upgrade, commands, gateways: None })
    }

    /// Returns these events, and the changes of what Gateways serve.
    pub(crate) fn and_gateways(self, gateways: Option<watch::Receiver<Arc<Served>>>) -> Events {
        Events { gateways, ..self }
    }

    /// Blocks until there is an event, at most `time`.
    pub(crate) fn next(&mut self, time: Duration) -> Option<Event> {
        let Events { signals, hangup, upgrade, commands, gateways } = self;
        signals.run_with_stop(async |stop| {
            let event = async {
                tokio::select! {
                    // Stop first: other events would be pointless before it.
                    biased;
                    signal = stop => Event::Stop(signal),
                    Some(command) = commands.recv() => Event::Asked(command),
                    _ = hangup.recv() => Event::Reload,
                    _ = upgrade.recv() => Event::Upgrade,
                    () = changed(gateways) => Event::Gateways,
                }
            };
            tokio::time::timeout(time, event).await.ok()
        })
    }

    /// Refuses further commands, and keeps the signals that matter while the balancer stops.
    pub(crate) fn close(self) -> LastSignals {
        LastSignals::new(self.signals, Some(self.hangup))
    }
}

/// Completes when what Gateways serve has changed.
async fn changed(gateways: &mut Option<watch::Receiver<Arc<Served>>>) {
    if let Some(served) = gateways {
        if served.changed().await.is_ok() {
            return;
        }
        *gateways = None;
    }
    pending::<()>().await;
}
