//! The thread that turns what waits into messages and sends them.

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use model::Moment;
use observe::exposition::protobuf::MetricFamily;
use otlp::{Encoded, Resource, Signal};
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

use crate::Metrics;
use crate::collector::{Collector, NotAccepted, Why};
use crate::counts::{Counts, Dropped};
use crate::queue::{Lines, Queues};

/// How long lines and events wait at most, unless the collector is slow.
const SEND_EVERY: Duration = Duration::from_secs(1);
/// Lines or events of one message. Collectors accept messages of several megabytes.
const MESSAGE_BYTES: usize = 512_000;
/// Series of one message: about 700 kB if all are histograms.
const MESSAGE_SERIES: usize = 2_000;
/// The first wait after a failure; each further one is twice as long. Also the shortest that a collector can ask
/// for.
const PAUSE_MIN: Duration = Duration::from_secs(1);
/// The longest wait, unless a collector asks for more.
const PAUSE_MAX: Duration = Duration::from_secs(30);
/// For how long a message is sent again: that of OpenTelemetry's collector (`max_elapsed_time`).
const RETRIED_MAX: Duration = Duration::from_mins(5);
/// How long the last messages may take.
const STOP_MAX: Duration = Duration::from_secs(1);

/// Everything that the thread needs.
pub(crate) struct Sender {
    pub(crate) queues: Arc<Queues>,
    pub(crate) counts: Arc<Counts>,
    pub(crate) collector: Collector,
    pub(crate) resource: Resource,
    /// How often metrics are sent, and what returns them.
    pub(crate) metrics: Option<(Duration, Metrics)>,
    pub(crate) metrics_due: Moment,
    /// When this process began to count, in microseconds since 1970.
    pub(crate) started_unix_us: u64,
    pub(crate) state: State,
}

/// What the thread remembers.
#[derive(Default)]
pub(crate) struct State {
    /// The messages that the collector has not accepted yet, by signal.
    outbox: [VecDeque<Message>; Signal::ALL.len()],
    pauses: [Pause; Signal::ALL.len()],
    /// The collector could not be reached last.
    is_unreachable: bool,
    /// The signals of which the collector did not take the last message.
    refused: [bool; Signal::ALL.len()],
}

/// When a signal may be sent again.
#[derive(Clone, Copy)]
struct Pause {
    until: Moment,
    /// How long the next pause is.
    next: Duration,
}

impl Default for Pause {
    fn default() -> Pause {
        Pause { until: Moment::ZERO, next: PAUSE_MIN }
    }
}

/// A message for the collector.
struct Message {
    body: Vec<u8>,
    items: u64,
    since: Moment,
}

impl Sender {
    /// Sends until a stop is requested, and then for a second at most.
    pub(crate) async fn run(mut self, mut stopped: watch::Receiver<bool>) {
        // An error means that the handle was dropped, which also requests a stop.
        let mut stop = pin!(async move { drop(stopped.wait_for(|stop| *stop).await) });
        let mut deadline = None;
        let mut has_more = false;
        while deadline.is_none() {
            if !has_more {
                // The future borrows it, and `self` is needed below.
                let queues = Arc::clone(&self.queues);
                tokio::select! {
                    () = tokio::time::sleep(SEND_EVERY) => {}
                    () = queues.much_waits.notified() => {}
                    () = &mut stop => break,
                }
            }
            self.drop_expired();
            self.prepare_metrics(false);
            let mut pass = pin!(self.pass());
            tokio::select! {
                more = &mut pass => has_more = more,
                () = &mut stop => {
                    // A message on its way is not sent twice, unless the collector hangs.
                    let until = Instant::now() + STOP_MAX;
                    let _ = timeout_at(until, pass).await;
                    deadline = Some(until);
                }
            }
        }
        self.prepare_metrics(true);
        // A collector that wanted a pause is asked once more.
        self.state.pauses = Default::default();
        let deadline = deadline.unwrap_or_else(|| Instant::now() + STOP_MAX);
        let rest = async { while self.pass().await {} };
        let _ = timeout_at(deadline, rest).await;
        for signal in Signal::ALL {
            self.drop_messages(*signal, |_| true);
        }
    }

    /// Sends what waits of each signal, up to one message of each kind. Returns whether much is left that the
    /// collector may accept now.
    async fn pass(&mut self) -> bool {
        let mut has_more = false;
        for signal in Signal::ALL {
            if self.state.outbox[*signal as usize].is_empty() {
                self.fill(*signal);
            }
            for _ in 0..self.state.outbox[*signal as usize].len() {
                if self.is_paused(*signal) {
                    break;
                }
                self.send(*signal).await;
            }
            has_more |= !self.is_paused(*signal) && self.queues.has_much(*signal);
        }
        has_more
    }

    /// Turns what waits into messages.
    fn fill(&mut self, signal: Signal) {
        match signal {
            Signal::Metrics => {}
            Signal::Traces => self.fill_with_lines(signal, Lines::Spans, otlp::traces),
            Signal::Logs => {
                let events = self.queues.take_events(MESSAGE_BYTES);
                if !events.is_empty() {
                    self.post(signal, otlp::logs(&self.resource, &events));
                }
                self.fill_with_lines(signal, Lines::Access, otlp::access_logs);
            }
        }
    }

    fn fill_with_lines(
        &mut self,
        signal: Signal,
        kind: Lines,
        encode: fn(&Resource, &[u8]) -> Encoded,
    ) {
        let lines = self.queues.take_lines(kind, MESSAGE_BYTES);
        if !lines.is_empty() {
            self.post(signal, encode(&self.resource, &lines));
        }
    }

    fn prepare_metrics(&mut self, at_once: bool) {
        let Some((every, metrics)) = &self.metrics else { return };
        let now = os::clock::now();
        if now < self.metrics_due && !at_once {
            return;
        }
        self.metrics_due = now + *every;
        let wall = unix_us(os::clock::wall());
        let parts = parts(metrics(), MESSAGE_SERIES);
        // Counts are since the start, so these say more than those that the collector has missed.
        self.state.outbox[Signal::Metrics as usize].clear();
        for part in parts {
            let encoded = otlp::metrics(&self.resource, &part, self.started_unix_us, wall);
            self.post(Signal::Metrics, encoded);
        }
    }

    fn post(&mut self, signal: Signal, encoded: Encoded) {
        let Encoded { body, items, unreadable } = encoded;
        self.counts.of(signal).count_dropped(Dropped::Unreadable, unreadable);
        if items > 0 {
            let message = Message { body, items, since: os::clock::now() };
            self.state.outbox[signal as usize].push_back(message);
        }
    }

    /// Sends the first message of a signal. It stays, and the signal pauses, if the collector does not take it now.
    async fn send(&mut self, signal: Signal) {
        let Some(message) = self.state.outbox[signal as usize].front() else { return };
        let items = message.items;
        let sent = self.collector.send(signal, &message.body).await;
        let counts = self.counts.of(signal);
        match sent {
            Ok(rejected) => {
                let rejected = rejected.filter(|rejected| rejected.items > 0);
                let refused = rejected.as_ref().map_or(0, |rejected| rejected.items as u64);
                let refused = refused.min(items);
                counts.count_sent(items - refused);
                counts.count_dropped(Dropped::Refused, refused);
                self.state.outbox[signal as usize].pop_front();
                self.state.pauses[signal as usize].next = PAUSE_MIN;
                self.reached();
                match rejected {
                    Some(rejected) => self.refuses(signal, refused, &rejected.message),
                    None => self.accepts(signal),
                }
            }
            Err(NotAccepted::ForGood(why)) => {
                counts.count_dropped(Dropped::Refused, items);
                self.state.outbox[signal as usize].pop_front();
                self.reached();
                self.refuses(signal, items, &why.to_string());
            }
            Err(NotAccepted::ForNow { why: why @ Why::Status { .. }, retry_after }) => {
                self.pause(signal, retry_after);
                self.reached();
                self.puts_off(signal, &why);
            }
            Err(NotAccepted::ForNow { why, .. }) => {
                // All go to the same place.
                for signal in Signal::ALL {
                    self.pause(*signal, None);
                }
                self.unreachable(&why);
            }
        }
    }

    fn is_paused(&self, signal: Signal) -> bool {
        os::clock::now() < self.state.pauses[signal as usize].until
    }

    /// Makes a signal wait: longer after each failure, or as long as the collector asks for.
    fn pause(&mut self, signal: Signal, asked_for: Option<Duration>) {
        let pause = &mut self.state.pauses[signal as usize];
        let time = asked_for.map_or(pause.next, |time| time.max(PAUSE_MIN));
        pause.until = os::clock::now() + time;
        pause.next = (pause.next * 2).min(PAUSE_MAX);
    }

    /// Drops the messages that were sent again for too long.
    fn drop_expired(&mut self) {
        let now = os::clock::now();
        for signal in Signal::ALL {
            self.drop_messages(*signal, |message| now - message.since > RETRIED_MAX);
        }
    }

    fn drop_messages(&mut self, signal: Signal, is_dropped: impl Fn(&Message) -> bool) {
        let outbox = &mut self.state.outbox[signal as usize];
        let dropped = outbox.iter().filter(|message| is_dropped(message));
        let items = dropped.map(|message| message.items).sum();
        outbox.retain(|message| !is_dropped(message));
        self.counts.of(signal).count_dropped(Dropped::Unreachable, items);
    }

    // What follows logs a state once, when it begins and when it is over.

    fn unreachable(&mut self, why: &Why) {
        if !std::mem::replace(&mut self.state.is_unreachable, true) {
            let collector = self.collector.url();
            tracing::warn!(%collector, error = %why, "cannot send to the OpenTelemetry collector; Weir keeps trying");
        }
    }

    fn reached(&mut self) {
        if std::mem::take(&mut self.state.is_unreachable) {
            let collector = self.collector.url();
            tracing::info!(%collector, "the OpenTelemetry collector can be reached again");
        }
    }

    fn puts_off(&mut self, signal: Signal, why: &Why) {
        if !std::mem::replace(&mut self.state.refused[signal as usize], true) {
            let (collector, signal) = (self.collector.url(), signal.as_str());
            tracing::warn!(%collector, error = %why, "the OpenTelemetry collector temporarily rejects {signal}; Weir keeps trying");
        }
    }

    fn refuses(&mut self, signal: Signal, items: u64, why: &str) {
        if !std::mem::replace(&mut self.state.refused[signal as usize], true) {
            let (collector, signal) = (self.collector.url(), signal.as_str());
            tracing::warn!(%collector, items, error = why, "the OpenTelemetry collector rejects {signal}; they are dropped");
        }
    }

    fn accepts(&mut self, signal: Signal) {
        if std::mem::take(&mut self.state.refused[signal as usize]) {
            let (collector, signal) = (self.collector.url(), signal.as_str());
            tracing::info!(%collector, "the OpenTelemetry collector accepts {signal} again");
        }
    }
}

/// Distributes families over messages of at most `series_max` series. A large family becomes several.
fn parts(families: Vec<MetricFamily>, series_max: usize) -> Vec<Vec<MetricFamily>> {
    let mut parts = vec![Vec::new()];
    let mut room = series_max;
    for mut family in families {
        let mut rest = std::mem::take(&mut family.metric);
        while !rest.is_empty() {
            let after = rest.split_off(rest.len().min(room));
            room -= rest.len();
            if let Some(part) = parts.last_mut() {
                part.push(MetricFamily { metric: rest, ..family.clone() });
            }
            if room == 0 {
                parts.push(Vec::new());
                room = series_max;
            }
            rest = after;
        }
    }
    parts
}

/// Returns a time since 1970 in microseconds.
pub(crate) fn unix_us(since_1970: Duration) -> u64 {
    u64::try_from(since_1970.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use observe::exposition::protobuf::Metric;

    use super::*;

    #[test]
    fn many_series_become_several_messages() {
        let family = |name: &str, series: usize| MetricFamily {
            name: Some(name.to_owned()),
            metric: vec![Metric::default(); series],
            ..MetricFamily::default()
        };
        let families = vec![family("a", 3), family("b", 0), family("c", 10), family("d", 1)];
        let parts = parts(families, 4);
        let shown: Vec<Vec<(&str, usize)>> = parts
            .iter()
            .map(|part| part.iter().map(|one| (one.name(), one.metric.len())).collect())
            .collect();
        let expected =
            [vec![("a", 3), ("c", 1)], vec![("c", 4)], vec![("c", 4)], vec![("c", 1), ("d", 1)]];
        assert_eq!(shown, expected);
    }
}
