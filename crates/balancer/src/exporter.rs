//! What this process sends to an OpenTelemetry collector: about itself, its metrics, its log.

use std::hash::{BuildHasher, RandomState};
use std::io;
use std::sync::{Arc, OnceLock};

use model::Snapshot;
use observe::exposition::TelemetryGauges;
use otlp::{Resource, Signal};
use telemetry::{Dropped, SignalCounts, Telemetry};

use crate::log;

/// What is sent to the collector, and the metrics once they can be read.
pub(crate) struct Exporter {
    telemetry: Telemetry,
    exposed: Arc<OnceLock<admin::Exposed>>,
}

impl Exporter {
    /// Returns an exporter that does not send yet.
    pub(crate) fn new() -> Exporter {
        // Each process has its own: after an upgrade, two of them count side by side.
        let half = || RandomState::new().hash_one(std::process::id());
        let resource = Resource {
            service_name: String::new(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            instance: format!("{:016x}{:016x}", half(), half()),
            host: os::process::host_name(),
            pid: std::process::id(),
        };
        Exporter { telemetry: Telemetry::new(resource), exposed: Arc::default() }
    }

    /// Returns the sender, which has the sinks for lines and events.
    pub(crate) fn telemetry(&self) -> &Telemetry {
        &self.telemetry
    }

    /// Sends from now on, the program's log included.
    ///
    /// # Errors
    /// As of [`Telemetry::apply`], as one line.
    pub(crate) fn begin(&mut self, snapshot: &Snapshot) -> Result<(), Vec<String>> {
        log::send_to(self.telemetry.events());
        self.apply(snapshot).map_err(|error| vec![format!("otlp: {error}")])
    }

    /// Makes metrics available.
    pub(crate) fn expose(&self, exposed: admin::Exposed) {
        // There is one management for each process.
        let _ = self.exposed.set(exposed);
    }

    /// Sends to the collector of a configuration from now on.
    ///
    /// # Errors
    /// As of [`Telemetry::apply`].
    pub(crate) fn apply(&mut self, snapshot: &Snapshot) -> io::Result<()> {
        let exposed = Arc::clone(&self.exposed);
        let metrics: telemetry::Metrics =
            Arc::new(move || exposed.get().map(admin::Exposed::metrics).unwrap_or_default());
        self.telemetry.apply(snapshot.otlp.as_ref(), &metrics)
    }

    /// Sends what waits, within a second.
    pub(crate) fn stop(self) {
        self.telemetry.stop();
    }

    /// Returns the source of the counts for `/metrics`; it is empty while no collector is configured.
    pub(crate) fn gauges(
        &self,
        registry: Arc<decide::Registry>,
    ) -> admin::Source<Vec<TelemetryGauges>> {
        let counts = self.telemetry.counts();
        Arc::new(move || {
            let is_sent = registry.current().snapshot.otlp.is_some();
            let signals = Signal::ALL.iter().filter(|_| is_sent);
            signals.map(|signal| gauges(*signal, counts.of(*signal))).collect()
        })
    }
}

fn gauges(signal: Signal, counts: &SignalCounts) -> TelemetryGauges {
    TelemetryGauges {
        signal: signal.as_str(),
        sent: counts.sent(),
        dropped: Dropped::ALL.iter().map(|why| (why.as_str(), counts.dropped(*why))).collect(),
    }
}
