//! The end of a balancer: it stops, or another process has taken over.

use std::io::PipeReader;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use os::unix_socket::SocketFile;

use super::Balancer;
use crate::service_manager;
use crate::signals::{LastSignal, LastSignals};
use crate::sockets::remove_unused;

/// How often a stop checks whether the last connection has ended, or a second signal has arrived.
const DRAIN_LOOK: Duration = Duration::from_millis(50);

/// How long a stop waits for Consul to remove the entries of this process, and after a second signal.
const DEREGISTERED_MAX: Duration = Duration::from_secs(2);
const DEREGISTERED_AT_ONCE_MAX: Duration = Duration::from_millis(500);

/// How long idle connections may take to close when a new process has taken over.
const LAST_CLOSES: Duration = Duration::from_millis(500);

impl Balancer {
    /// Reports that it is not ready, continues for the configuration's `drain_delay`, stops accepting,
    /// and finishes exchanges in progress, up to the configuration's `drain_max`. Another signal ends
    /// all of it.
    pub fn stop(mut self, why: &str, signals: &mut LastSignals) {
        service_manager::notify(os::notify::stopping());
        self.certificates.stop();
        self.ready.store(false, Relaxed);
        self.control.announce(false);
        if let Some(cluster) = &mut self.cluster {
            cluster.leave();
        }
        self.proxy.announce_stop();
        let drain_max = self.registry.current().snapshot.drain_max;
        let drain_max = if self.wait_to_drain(why, signals) { drain_max } else { Duration::ZERO };
        let files = self.sockets.close();
        self.proxy.begin_drain();
        // Logged once it is true, so that readers can rely on it.
        tracing::info!("{why}: stopping; a second signal stops at once");
        self.end(signals, drain_max, &files, false);
    }

    /// Goes on serving until `drain_delay` is over, so that health checks see that it is not ready
    /// while it still accepts connections. Returns `false` if another signal has arrived.
    fn wait_to_drain(&self, why: &str, signals: &mut LastSignals) -> bool {
        let delay = self.registry.current().snapshot.drain_delay;
        if delay.is_zero() {
            return true;
        }
        let shown = model::units::show_duration(delay);
        tracing::info!("{why}: not ready; stopping in {shown}; a second signal stops at once");
        let end = os::clock::now() + delay;
        loop {
            let left = end - os::clock::now();
            if left.is_zero() {
                return true;
            }
            match signals.wait_at_most(left) {
                Some(LastSignal::Stop(signal)) => {
                    tracing::info!("{signal}: stopping at once");
                    return false;
                }
                Some(LastSignal::Reopen) => self.reopen_access_log(),
                None => {}
            }
        }
    }

    /// Drains after a new process has taken over accepting and serving. Exchanges in progress are
    /// finished; idle connections stay open for one more request, up to `drain_max`, since closing
    /// one could race with a request on its way. `channel` ends when this process leaves its entries in Consul to
    /// the new one.
    pub(crate) fn leave(mut self, channel: PipeReader, signals: &mut LastSignals) {
        self.certificates.stop();
        // First, so that it does not report that this process is no longer ready.
        if let Err(error) = self.control.hand_over() {
            tracing::warn!(%error, "this process may send one more check update to Consul");
        }
        drop(channel);
        self.ready.store(false, Relaxed);
        let files = self.sockets.close();
        self.proxy.leave();
        self.management.hand_over();
        tracing::info!(connections = self.connections(), "leaving; a signal stops at once");
        let drain_max = self.registry.current().snapshot.drain_max;
        self.end(signals, drain_max, &files, true);
    }

    /// The rest of a stop. Probes and the remaining API continue until the last connection has
    /// ended, so that a drain can be observed.
    fn end(
        self,
        signals: &mut LastSignals,
        drain_max: Duration,
        files: &[SocketFile],
        replaced: bool,
    ) {
        let mut deadline = os::clock::now() + drain_max;
        let mut is_at_once = drain_max.is_zero();
        while self.proxy.connections() > 0 && os::clock::now() < deadline {
            match signals.wait_at_most(DRAIN_LOOK) {
                Some(LastSignal::Stop(signal)) => {
                    tracing::info!("{signal}: stopping at once");
                    (deadline, is_at_once) = (os::clock::now(), true);
                }
                // Exchanges in progress still write lines, and the log may be rotated meanwhile.
                Some(LastSignal::Reopen) => self.reopen_access_log(),
                None => {}
            }
        }
        // Idle connections have no request in progress: closing them now cuts nothing off.
        self.proxy.begin_drain();
        let grace = if replaced { LAST_CLOSES } else { Duration::ZERO };
        let cut_off = self.proxy.finish((deadline - os::clock::now()) + grace);
        let removed_max = if is_at_once { DEREGISTERED_AT_ONCE_MAX } else { DEREGISTERED_MAX };
        if !replaced && let Err(error) = self.control.deregister(removed_max) {
            tracing::warn!(%error, "could not deregister from Consul");
        }
        if let Some(cluster) = self.cluster {
            cluster.stop();
        }
        self.management.stop();
        remove_unused(files);
        self.control.shutdown();
        drop(self.access);
        self.access_writer.finish();
        match cut_off {
            0 => tracing::info!("stopped"),
            connections => {
                tracing::warn!(connections, "stopped; remaining connections were aborted");
            }
        }
        // The last lines of the log are sent, too.
        self.exporter.stop();
    }
}
