//! The program's own log, on standard error. (The access log is the proxy's.)

use std::io::stderr;

use tracing_subscriber::EnvFilter;

use crate::flags::{Common, LogForm, LogLevel};

/// Starts the log. Later calls change nothing.
pub(crate) fn start(common: Common) {
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter(common.log_level))
        .with_ansi(common.colours_stderr())
        .with_target(false)
        .with_writer(stderr);
    let started = match common.log_format {
        LogForm::Text => log.compact().try_init(),
        LogForm::Json => log.json().flatten_event(true).try_init(),
    };
    // An error only says that there is a log already.
    let _ = started;
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
