//! The program's own log, on standard error and to a collector. (The proxy writes the access log.)
//!
//! Lines that a peer can cause, by what it sends or how it behaves, are rate limited and
//! summarised: those of libraries, and those of the crates that serve connections.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::io::stderr;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

use diagnose::words::thousands;
use observe::log_limit::{Held, LogLimit, WINDOW};
use otlp::{LogEvent, Severity};
use telemetry::Events;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::{Context, SubscriberExt};
use tracing_subscriber::{EnvFilter, Layer};

/// Crates whose lines no peer can cause in large numbers: they log about configurations, checks (at
/// their interval), administrative changes, and the process.
const UNLIMITED: [&str; 6] = ["weir", "balancer", "admin", "control", "collect", "lab"];

/// How often finished windows are summarised.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The place in the program that logs a line, and the server that it is about, if any: when many
/// servers fail at once, each is named.
#[derive(Clone, Debug)]
struct Kind {
    /// Of the place, which always logs at one level.
    metadata: &'static Metadata<'static>,
    server: String,
}

impl PartialEq for Kind {
    fn eq(&self, other: &Kind) -> bool {
        self.metadata.callsite() == other.metadata.callsite() && self.server == other.server
    }
}

impl Eq for Kind {}

impl Hash for Kind {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.metadata.callsite().hash(state);
        self.server.hash(state);
    }
}

/// What has been logged recently.
static LIMIT: OnceLock<Mutex<LogLimit<Kind>>> = OnceLock::new();

/// What is logged, and how.
#[derive(Clone, Copy, Debug)]
pub struct LogOptions {
    /// The minimum level; `None`: log nothing.
    pub level: Option<Level>,
    /// One JSON object per line; otherwise text.
    pub json: bool,
    /// Whether text is coloured.
    pub colours: bool,
}

/// Starts the log. Later calls have no effect.
pub fn start(options: LogOptions) {
    let log = subscriber(options, stderr);
    // An error only means that a log is already set.
    let _ = tracing::subscriber::set_global_default(log);
}

fn subscriber<W>(options: LogOptions, writer: W) -> Box<dyn Subscriber + Send + Sync>
where
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter(options.level))
        .with_ansi(options.colours)
        .with_target(false)
        .with_writer(writer);
    if options.json {
        Box::new(log.json().flatten_event(true).finish().with(Limited).with(Exported))
    } else {
        Box::new(log.compact().finish().with(Limited).with(Exported))
    }
}

/// Logs how many lines have been suppressed, before the process ends.
pub fn finish() {
    summarise(true);
}

/// Libraries only log problems, except at `trace`.
fn filter(level: Option<Level>) -> EnvFilter {
    EnvFilter::new(match level {
        None => "off",
        Some(Level::ERROR) => "error",
        Some(Level::WARN) => "warn",
        Some(Level::INFO) => "info,hickory_net=warn,hickory_proto=warn,hickory_resolver=warn",
        Some(Level::DEBUG) => {
            "debug,hickory_net=warn,hickory_proto=warn,hickory_resolver=warn,hyper_util=warn"
        }
        Some(Level::TRACE) => "trace",
    })
}

/// Suppresses lines.
struct Limited;

impl<S: Subscriber> Layer<S> for Limited {
    fn event_enabled(&self, event: &Event<'_>, _: Context<'_, S>) -> bool {
        let metadata = event.metadata();
        if !is_limited(metadata) {
            return true;
        }
        let mut line = Line::default();
        event.record(&mut line);
        let kind = Kind { metadata, server: line.server };
        limit().admit(&kind, os::clock::now(), || line.message)
    }
}

/// Where the lines go besides standard error.
static COLLECTOR: OnceLock<Events> = OnceLock::new();

/// Sends the log to the collector, too, whenever there is one.
pub(crate) fn send_to(events: Events) {
    // A process has one collector.
    let _ = COLLECTOR.set(events);
}

/// Sends lines to the collector.
struct Exported;

impl<S: Subscriber> Layer<S> for Exported {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let Some(events) = COLLECTOR.get().filter(|events| events.are_sent()) else { return };
        let metadata = event.metadata();
        let mut fields = Fields::default();
        event.record(&mut fields);
        events.put(LogEvent {
            unix_us: u64::try_from(os::clock::wall().as_micros()).unwrap_or(u64::MAX),
            severity: match *metadata.level() {
                Level::ERROR => Severity::Error,
                Level::WARN => Severity::Warn,
                Level::INFO => Severity::Info,
                Level::DEBUG => Severity::Debug,
                Level::TRACE => Severity::Trace,
            },
            target: metadata.target().to_owned(),
            message: fields.message,
            fields: fields.others,
        });
    }
}

/// All parts of a line.
#[derive(Default)]
struct Fields {
    message: String,
    others: Vec<(String, String)>,
}

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.record_debug(field, &format_args!("{value}"));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let text = format!("{value:?}");
        match field.name() {
            "message" => self.message = text,
            name => self.others.push((name.to_owned(), text)),
        }
    }
}

/// Returns whether a peer can cause such lines. Debug lines are never limited: they are for people
/// who want all of them.
fn is_limited(metadata: &Metadata<'_>) -> bool {
    let room = metadata.target().split("::").next().unwrap_or_default();
    *metadata.level() <= Level::INFO && !UNLIMITED.contains(&room)
}

fn limit() -> MutexGuard<'static, LogLimit<Kind>> {
    let limit = LIMIT.get_or_init(|| {
        // Without the thread the lines are limited all the same, and summarised at the end.
        let _ = thread::Builder::new().name("log-summary".to_owned()).spawn(|| {
            loop {
                thread::park_timeout(LOOK_EVERY);
                summarise(false);
            }
        });
        Mutex::default()
    });
    limit.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Logs how many lines were suppressed in finished windows, or in all.
fn summarise(all: bool) {
    if LIMIT.get().is_none() {
        return;
    }
    // Not locked while a line is written.
    let due = limit().take_due((!all).then(os::clock::now));
    for held in due {
        summary(&held);
    }
}

/// Logs one summary at the level of the suppressed lines, which is the same for each kind. `kind`
/// is the part of the program that logs them (`tracing`'s target).
fn summary(held: &Held<Kind>) {
    let Held { kind: Kind { metadata, server }, lines, example } = held;
    let (kind, seconds) = (metadata.target(), WINDOW.as_secs());
    let server = (!server.is_empty()).then_some(server.as_str());
    let text = format!("{example} … and {} more within {seconds} s", thousands(*lines));
    macro_rules! at {
        ($level:ident) => {
            tracing::$level!(kind, server, held_back = lines, seconds, "{text}")
        };
    }
    match *metadata.level() {
        Level::ERROR => at!(error),
        Level::WARN => at!(warn),
        // Debug lines are not limited.
        Level::INFO | Level::DEBUG | Level::TRACE => at!(info),
    }
}

/// The relevant parts of a line.
#[derive(Default)]
struct Line {
    message: String,
    server: String,
}

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        match field.name() {
            "message" => self.message = format!("{value:?}"),
            "server" => self.server = format!("{value:?}"),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::Arc;

    use super::*;

    /// The captured log.
    #[derive(Clone, Default)]
    struct Logged(Arc<Mutex<Vec<u8>>>);

    impl Write for Logged {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    /// Returns the summary lines of 15 lines at each level.
    fn summaries(json: bool) -> Vec<String> {
        let options = LogOptions { level: Some(Level::INFO), json, colours: false };
        let logged = Logged::default();
        let writer = logged.clone();
        let log = subscriber(options, move || writer.clone());
        tracing::subscriber::with_default(log, || {
            for number in 0..15 {
                tracing::error!(target: "transport::dial", server = %"a:80", "no {number}");
                tracing::warn!(target: "h2::proto", "odd {number}");
                tracing::info!(target: "proxy::worker", "news {number}");
                // A peer cannot cause many of these.
                tracing::info!(target: "balancer::reload", "reload {number}");
            }
            summarise(true);
        });
        let text = String::from_utf8(logged.0.lock().unwrap().clone()).unwrap();
        let (held, all) = (|line: &&str| line.contains("more within"), text.lines());
        assert_eq!(all.clone().filter(|line| line.contains("reload")).count(), 15, "{text}");
        assert_eq!(all.clone().count(), 15 + 3 * 10 + 3, "{text}");
        all.filter(held).map(str::to_owned).collect()
    }

    #[test]
    fn a_summary_has_the_level_of_its_lines_and_stable_fields() {
        let expected = [
            ("ERROR", "no 10", "transport::dial", Some("a:80")),
            ("WARN", "odd 10", "h2::proto", None),
            ("INFO", "news 10", "proxy::worker", None),
        ];
        let text = summaries(false);
        let json = summaries(true);
        assert_eq!((text.len(), json.len()), (3, 3), "{text:?} {json:?}");
        for (level, example, kind, server) in expected {
            let message = format!("{example} … and 5 more within 10 s");
            let line = text.iter().find(|line| line.contains(&message)).unwrap();
            assert!(line.contains(&format!("{level} ")), "{line}");
            let fields = [format!("kind=\"{kind}\""), "held_back=5".into(), "seconds=10".into()];
            for field in fields.into_iter().chain(server.map(|name| format!("server=\"{name}\""))) {
                assert!(line.contains(&field), "{field}: {line}");
            }
            let values = json.iter().map(|line| serde_json::from_str(line).unwrap());
            let value: serde_json::Value = values
                .into_iter()
                .find(|value: &serde_json::Value| value["message"] == *message)
                .unwrap();
            let seen = [&value["level"], &value["kind"], &value["held_back"], &value["seconds"]];
            assert_eq!(*seen[0], *level, "{value}");
            assert_eq!(*seen[1], *kind, "{value}");
            assert_eq!((seen[2].as_u64(), seen[3].as_u64()), (Some(5), Some(10)), "{value}");
            assert_eq!(value["server"].as_str(), server, "{value}");
        }
    }
}
