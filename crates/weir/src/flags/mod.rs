//! What can be typed after `weir`: each flag's name, help and default in one place.
//!
//! Nothing here acts; the verbs do.

mod admin;
pub(crate) mod bench;
mod doctor;
mod exit_code;
mod lab;
mod times;
mod trace;

use std::io::IsTerminal;
use std::path::PathBuf;
use std::time::Duration;

use balancer::log::LogOptions;
use clap::builder::styling::{AnsiColor, Styles};
use clap::{Args, Parser, Subcommand, ValueEnum};
use tracing::Level;

pub(crate) use admin::{AdminArgs, ReceiptArgs, ServerArgs, StatusArgs};
pub(crate) use bench::{BenchArgs, BenchVerb};
pub(crate) use doctor::{ChecksArgs, DoctorArgs, DoctorVerb, FactsArgs, ListArgs, SysctlArgs};
pub(crate) use exit_code::Exit;
pub(crate) use lab::{LabArgs, LabListArgs, LabRunArgs, LabShellArgs, LabVerb, LinkArgs};
pub(crate) use trace::{LiveArgs, TraceArgs, TraceHow, TraceLook};

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default().bold())
    .placeholder(AnsiColor::Cyan.on_default());

/// A load balancer that tells you why.
///
/// Weir takes HTTP and TCP connections and gives them to servers: by zone, by health, by load,
/// and never more at once than a server bears. What it cannot serve, it answers with the reason.
#[derive(Debug, Parser)]
#[command(name = "weir", version, styles = STYLES, max_term_width = 100)]
#[command(after_help = exit_code::HELP, arg_required_else_help = true)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) common: Common,

    #[command(subcommand)]
    pub(crate) verb: Verb,
}

/// Flags that every verb takes.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct Common {
    /// When to colour what is printed. `auto`: on a terminal, unless `NO_COLOR` is set
    #[arg(long, global = true, value_enum, value_name = "WHEN", default_value_t = Color::Auto)]
    pub(crate) color: Color,

    /// How much of the program's own log goes to standard error
    #[arg(long, global = true, value_enum, value_name = "LEVEL", default_value_t = LogLevel::Info)]
    pub(crate) log_level: LogLevel,

    /// Form of the program's own log: lines for people, or a JSON object a line
    #[arg(long, global = true, value_enum, value_name = "FORM", default_value_t = LogForm::Text)]
    pub(crate) log_format: LogForm,
}

impl Common {
    /// Whether standard output is coloured.
    pub(crate) fn colours_stdout(self) -> bool {
        self.color.on(std::io::stdout().is_terminal())
    }

    /// How the program's own log is written.
    pub(crate) fn log_options(self) -> LogOptions {
        LogOptions {
            level: self.log_level.level(),
            json: self.log_format == LogForm::Json,
            colours: self.colours_stderr(),
        }
    }

    /// Whether standard error is coloured.
    pub(crate) fn colours_stderr(self) -> bool {
        self.color.on(std::io::stderr().is_terminal())
    }
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Balance as a configuration file says, until SIGTERM or SIGINT
    ///
    /// Everything is checked and every address is bound before the first connection is accepted;
    /// what is wrong is said at once. The first SIGTERM or SIGINT stops accepting and finishes
    /// what runs, up to the configuration's `drain_max`; a second one stops at once.
    Serve(ServeArgs),
    /// Say everything that is wrong with a configuration file, or what it will do
    ///
    /// Every mistake at once, each with its line, the text underlined and what was probably meant.
    /// A file without mistakes is explained: listeners, routes in the order in which they match,
    /// servers by zone, and the probe plan. Everything that `weir serve` would need is checked, as the
    /// user who runs this: certificates, token files, the directories of the access log and of the
    /// admin socket, the user to become. No address is bound.
    Check(CheckArgs),
    /// Print the configuration's JSON Schema, for editors
    Schema,
    /// Say what a cause, or a finding of the doctor, means: what happened, why, what to do
    ///
    /// Every exchange ends with one cause: its name stands in the access log, in the metrics and
    /// in the answers that Weir makes. Without a word, all causes are listed by whose fault it is.
    Explain(ExplainArgs),
    /// Show what a running balancer is doing: its servers, their health and load, how requests ended
    ///
    /// Asks the admin API of a balancer on this machine.
    Status(StatusArgs),
    /// Let a server finish what it has and give it no new work
    ///
    /// Asks the admin API of a balancer on this machine. It counts at once, and until `weir ready`
    /// says otherwise or the balancer is started anew.
    Drain(ServerArgs),
    /// Give a server work again that was put aside with `weir drain` or `weir maintenance`
    Ready(ServerArgs),
    /// Give a server no new work and do not check it either
    ///
    /// As `weir drain`, for a server that will be stopped: its checks would only fail.
    Maintenance(ServerArgs),
    /// Have a running balancer load its configuration file anew, and say what changed
    ///
    /// The file is checked first and comes into force as a whole. With a mistake in it, the old
    /// configuration keeps serving, and every mistake is said. Requests under way, connections and
    /// what is known of servers that stay are kept.
    Reload(ReceiptArgs),
    /// Have a new process take over from a running balancer without refusing a connection
    ///
    /// The balancer starts the program at its own path, with its own words: a new version if one
    /// was put there. That one takes over the listening sockets; the old one finishes what runs and
    /// ends. If the new one fails, the old one keeps serving.
    Upgrade(ReceiptArgs),
    /// Say what this host does to its traffic: what is wrong, on what evidence, and what to do
    ///
    /// Reads what the kernel counts, twice and more in a few seconds, and judges it by the rules of
    /// docs/rules.md. Needs no balancer, and no root for what the kernel shows to everyone; what
    /// could not be looked at is said.
    Doctor(DoctorArgs),
    /// Show a balancer at work: servers in three zones, a little traffic, nothing to set up
    ///
    /// Starts sample servers on 127.0.0.1 with a fixed work time and size, a balancer before them
    /// and a few requests per second, and says where to look. Ctrl-C ends it.
    Demo(DemoArgs),
    /// Say what the packets of a capture tell: loss, reordering, slow readers, and why
    ///
    /// Reads what tcpdump or tshark wrote, and counts as tshark 4.0 does: every
    /// `tcp.analysis.*` flag, over time and by connection, the connections with the most trouble
    /// first.
    Trace(TraceArgs),
    /// Make load that can be trusted: `weir bench URL`, connect storms, the limit found for you
    ///
    /// Sends requests at a constant rate (--rate) or over so many connections (-c), and says what came
    /// of them, what it could not deliver, and whose fault that is. Latency counts from the moment a
    /// request should have begun. Ctrl-C ends it with the figures so far.
    #[command(after_help = exit_code::BENCH_HELP)]
    Bench(Box<BenchArgs>),
    /// Make an incident happen on this machine, and see what Weir says about it
    ///
    /// Hosts are network namespaces, links between them have faults, programs are real ones. Needs
    /// root; touches nothing outside of what it makes, and removes it again.
    Lab(LabArgs),
}

/// The words of `weir serve`.
#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// Configuration file (TOML)
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
}

/// The words of `weir check`.
#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// Configuration file (TOML); `-` reads standard input, with relative paths from here
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// Print one JSON object instead of text
    #[arg(long)]
    pub(crate) json: bool,

    /// Check the file's text alone: not the files that it names, nor anything else of this machine
    ///
    /// For a check on another machine than the one that will serve, such as in CI.
    #[arg(long)]
    pub(crate) file_only: bool,
}

/// The words of `weir explain`.
#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// Its name, such as `connection_refused`; a rule, such as `listener_overflow`; or a status, such
    /// as 502, for all that it stands for
    #[arg(value_name = "CAUSE")]
    pub(crate) cause: Option<String>,
}

/// The words of `weir demo`.
#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// End after this long, such as `5s` or `2m`
    #[arg(long = "for", value_name = "TIME", value_parser = times::duration_above_zero)]
    pub(crate) time: Option<Duration>,
}

/// When to colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    Auto,
    Always,
    Never,
}

impl Color {
    /// Whether output is coloured that goes, or does not go, to a terminal.
    pub(crate) fn on(self, is_terminal: bool) -> bool {
        match self {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => is_terminal && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty()),
        }
    }
}

/// How much is logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogLevel {
    Off,
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

impl LogLevel {
    /// The least level that is logged; `None`: nothing.
    fn level(self) -> Option<Level> {
        match self {
            LogLevel::Off => None,
            LogLevel::Error => Some(Level::ERROR),
            LogLevel::Warn => Some(Level::WARN),
            LogLevel::Info => Some(Level::INFO),
            LogLevel::Debug => Some(Level::DEBUG),
            LogLevel::Trace => Some(Level::TRACE),
        }
    }
}

/// Form of the program's own log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogForm {
    Text,
    Json,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;
    use clap::error::ErrorKind;

    use super::*;

    fn parse(words: &[&str]) -> Result<Cli, clap::Error> {
        Cli::try_parse_from(std::iter::once("weir").chain(words.iter().copied()))
    }

    #[test]
    fn the_definition_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn each_verb_takes_its_words() {
        let cli = parse(&["serve", "weir.toml"]).unwrap();
        assert!(matches!(cli.verb, Verb::Serve(args) if args.file == *"weir.toml"));
        let cli = parse(&["check", "weir.toml", "--json"]).unwrap();
        assert!(matches!(cli.verb, Verb::Check(CheckArgs { json: true, .. })));
        assert!(matches!(parse(&["schema"]).unwrap().verb, Verb::Schema));
        let cli = parse(&["explain", "queue_full"]).unwrap();
        assert!(
            matches!(cli.verb, Verb::Explain(ExplainArgs { cause: Some(name) }) if name == "queue_full")
        );
        let cli = parse(&["demo", "--for", "5s"]).unwrap();
        assert!(matches!(cli.verb, Verb::Demo(args) if args.time == Some(Duration::from_secs(5))));
    }

    #[test]
    fn the_admin_api_is_found_where_it_is_by_default_or_as_told() {
        let cli = parse(&["status"]).unwrap();
        let Verb::Status(StatusArgs { admin, json: false, watch: None }) = cli.verb else {
            panic!("not status");
        };
        assert_eq!(admin.address.to_string(), "127.0.0.1:9900");
        for (words, every) in [("--watch", 2), ("--watch=5s", 5)] {
            let cli = parse(&["status", words]).unwrap();
            let every = Some(Duration::from_secs(every));
            assert!(matches!(cli.verb, Verb::Status(args) if args.watch == every), "{words}");
        }
        let cli = parse(&["drain", "s", "10.0.0.1:80", "--admin", "unix:/run/x"]).unwrap();
        let Verb::Drain(ServerArgs { service, server, admin }) = cli.verb else {
            panic!("not drain");
        };
        assert_eq!((&*service, &*server), ("s", "10.0.0.1:80"));
        assert_eq!(admin.address.to_string(), "unix:/run/x");
        for wrong in ["9900", "unix:run/x", "example.com:9900", "unix:"] {
            assert_eq!(parse(&["status", "--admin", wrong]).unwrap_err().exit_code(), 2, "{wrong}");
        }
    }

    #[test]
    fn the_doctor_looks_or_is_asked_about_something() {
        let cli = parse(&["doctor", "--for", "10s", "--netns", "own", "--json"]).unwrap();
        let Verb::Doctor(DoctorArgs { about: None, facts, .. }) = cli.verb else {
            panic!("not doctor");
        };
        assert_eq!((facts.time, &*facts.netns, facts.json), (Duration::from_secs(10), "own", true));
        let cli = parse(&["doctor", "checks", "haproxy.cfg", "--nodes", "32"]).unwrap();
        let Verb::Doctor(DoctorArgs { about: Some(DoctorVerb::Checks(checks)), .. }) = cli.verb
        else {
            panic!("not checks");
        };
        assert_eq!(checks.nodes, 32);
        for words in [
            &["doctor", "--facts", "a", "--watch"][..],
            &["doctor", "--facts", "a", "--netns", "own"],
            &["doctor", "--explain", "loss", "--json"],
            &["doctor", "checks"],
            &["doctor", "checks", "a", "--nodes", "0"],
        ] {
            assert_eq!(parse(words).unwrap_err().exit_code(), 2, "{words:?}");
        }
    }

    #[test]
    fn receipts_are_text_or_json() {
        let cli = parse(&["reload", "--json", "--admin", "[::1]:9900"]).unwrap();
        assert!(matches!(cli.verb, Verb::Reload(ReceiptArgs { json: true, .. })));
        let cli = parse(&["upgrade"]).unwrap();
        assert!(matches!(cli.verb, Verb::Upgrade(ReceiptArgs { json: false, .. })));
        assert!(parse(&["upgrade", "/usr/bin/other"]).is_err(), "the program is not to be chosen");
    }

    #[test]
    fn common_flags_stand_before_or_after_the_verb() {
        for words in [
            ["--color", "never", "--log-level", "debug", "schema"],
            ["schema", "--color", "never", "--log-level", "debug"],
        ] {
            let common = parse(&words).unwrap().common;
            assert_eq!((common.color, common.log_level), (Color::Never, LogLevel::Debug));
        }
    }

    #[test]
    fn mistakes_are_usage_errors() {
        for words in [
            &["serve"][..],
            &["serve", "a", "b"],
            &["sreve", "a"],
            &["demo", "--for", "5"],
            &["demo", "--for", "s"],
            &["schema", "--color", "sometimes"],
        ] {
            let error = parse(words).unwrap_err();
            assert_eq!(error.exit_code(), 2, "{words:?}");
            assert_ne!(error.kind(), ErrorKind::DisplayHelp);
        }
    }

    #[test]
    fn colour_is_decided_by_the_flag_before_the_terminal() {
        assert!(Color::Always.on(false));
        assert!(!Color::Never.on(true));
        assert!(!Color::Auto.on(false));
    }
}
