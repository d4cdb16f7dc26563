//! The program's own log, on standard error. (The access log is the proxy's.)
//!
//! Lines that a peer can cause, by what it sends or how it behaves, are limited and summarised:
//! those of libraries, and those of the crates that serve connections.

use std::fmt;
use std::io::stderr;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

use observe::log_limit::{LogLimit, WINDOW};
use tracing::callsite::Identifier;
use tracing::field::{Field, Visit};
use tracing::{Event, Metadata, Subscriber};
use tracing_subscriber::layer::{Context, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer};

use crate::flags::{Common, LogForm, LogLevel};

/// Our crates whose lines no peer can cause in numbers: what they log is about configurations,
/// checks (at their interval), what people change, and the process.
const UNLIMITED: [&str; 5] = ["weir", "admin", "control", "collect", "lab"];

/// How often it is looked whether a window is over.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The place in the program that logs a line, and the server that it is about, if it is about one:
/// many servers that fail at once are all named.
type Kind = (Identifier, String);

/// What has been logged of late.
static LIMIT: OnceLock<Mutex<LogLimit<Kind>>> = OnceLock::new();

/// Starts the log. Later calls change nothing.
pub(crate) fn start(common: Common) {
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter(common.log_level))
        .with_ansi(common.colours_stderr())
        .with_target(false)
        .with_writer(stderr);
    let started = match common.log_format {
        LogForm::Text => log.compact().finish().with(Limited).try_init(),
        LogForm::Json => log.json().flatten_event(true).finish().with(Limited).try_init(),
    };
    // An error only says that there is a log already.
    let _ = started;
}

/// Logs how many lines have been held back, before the process ends.
pub(crate) fn finish() {
    summarise(true);
}

/// Libraries are heard only when something is wrong, except at `trace`.
fn filter(level: LogLevel) -> EnvFilter {
    EnvFilter::new(match level {
        LogLevel::Off => "off",
        LogLevel::Error => "error",
        LogLevel::Warn => "warn",
        LogLevel::Info => "info,hickory_net=warn,hickory_proto=warn,hickory_resolver=warn",
        LogLevel::Debug => {
            "debug,hickory_net=warn,hickory_proto=warn,hickory_resolver=warn,hyper_util=warn"
        }
        LogLevel::Trace => "trace",
    })
}

/// Holds lines back.
struct Limited;

impl<S: Subscriber> Layer<S> for Limited {
    fn event_enabled(&self, event: &Event<'_>, _: Context<'_, S>) -> bool {
        let metadata = event.metadata();
        if !is_limited(metadata) {
            return true;
        }
        let mut line = Line::default();
        event.record(&mut line);
        limit().admit(&(metadata.callsite(), line.server), os::clock::now(), || line.message)
    }
}

/// Whether a peer can cause such lines. Debugging is for people who ask for all of them.
fn is_limited(metadata: &Metadata<'_>) -> bool {
    let room = metadata.target().split("::").next().unwrap_or_default();
    *metadata.level() <= tracing::Level::INFO && !UNLIMITED.contains(&room)
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

/// Logs how many lines were held back in windows that are over, or in all.
fn summarise(all: bool) {
    if LIMIT.get().is_none() {
        return;
    }
    // Not held while a line is written.
    let due = limit().take_due((!all).then(os::clock::now));
    for held in due {
        let seconds = WINDOW.as_secs();
        tracing::warn!("{} … and {} more within {seconds} s", held.example, grouped(held.lines));
    }
}

/// What matters of a line here.
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

/// With a comma between groups of three digits.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped() {
        for (number, text) in [(0, "0"), (999, "999"), (9_990, "9,990"), (1_234_567, "1,234,567")] {
            assert_eq!(grouped(number), text);
        }
    }
}
