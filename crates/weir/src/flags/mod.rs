//! The command line of `weir`: each flag's name, help and default in one place.
//!
//! This module only parses; the verbs act.

mod admin;
pub(crate) mod bench;
mod doctor;
mod exit_code;
mod explain;
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

pub(crate) use admin::{
    AdminArgs, BundleArgs, MaintenanceArgs, ReceiptArgs, ServerArgs, StatusArgs, TopArgs,
};
pub(crate) use bench::{BenchArgs, BenchVerb};
pub(crate) use doctor::{ChecksArgs, DoctorArgs, DoctorVerb, FactsArgs, ListArgs, SysctlArgs};
pub(crate) use exit_code::Exit;
pub(crate) use explain::{ExplainArgs, ExplainRouteArgs, ExplainVerb};
pub(crate) use lab::{LabArgs, LabListArgs, LabRunArgs, LabShellArgs, LabVerb, LinkArgs};
pub(crate) use trace::{LiveArgs, TraceArgs, TraceHow, TraceLook};

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default().bold())
    .placeholder(AnsiColor::Cyan.on_default());

/// A load balancer that tells you why.
///
/// Weir distributes HTTP and TCP traffic over servers by zone, health and load. It never exceeds a
/// server's concurrency limit, and gives the reason for every request that it refuses.
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

    /// Minimum level of the program's own log, which goes to standard error
    #[arg(long, global = true, value_enum, value_name = "LEVEL", default_value_t = LogLevel::Info)]
    pub(crate) log_level: LogLevel,

    /// Format of the program's own log: text, or one JSON object per line
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
    /// Run the load balancer with a configuration file, until SIGTERM or SIGINT
    ///
    /// Weir checks everything and binds every address before it accepts the first connection, and
    /// reports all errors at once. The first SIGTERM or SIGINT stops accepting and finishes requests
    /// in flight, for up to the configuration's `drain_max`; a second one stops at once.
    Serve(ServeArgs),
    /// Check a configuration file: report every mistake, or describe what it will do
    ///
    /// Reports all mistakes at once, each with its line, the text underlined and a suggestion. For a
    /// file without mistakes it prints the listeners, the routes in the order in which they match, the
    /// servers by zone, and the probe plan. It checks everything that `weir serve` needs, as the user
    /// who runs it: certificates, token files, the directories of the access log and of the admin
    /// socket, the user to switch to. It binds no address.
    Check(CheckArgs),
    /// Write a first configuration file, from flags or from the answers to three questions
    Init(InitArgs),
    /// Print the configuration's JSON Schema, for editors
    Schema,
    /// Print a completion script for a shell
    ///
    /// For the current bash: `source <(weir completions bash)`. For good, save the script where the shell looks for it:
    /// bash in /usr/share/bash-completion/completions/weir, zsh as _weir in a folder of `$fpath`, fish in
    /// ~/.config/fish/completions/weir.fish.
    Completions(CompletionsArgs),
    /// Print a manual page, or write all of them
    ///
    /// `weir man serve > weir-serve.1` saves the page of `weir serve`; `man ./weir-serve.1` shows it.
    Man(ManArgs),
    /// Explain a cause or a finding, what happened in the last minutes, or the route of a request
    ///
    /// Every exchange ends with one cause: its name is in the access log, in the metrics and in the
    /// responses that Weir generates. Without an argument, lists all causes by fault.
    ///
    /// With --last 10m, asks the balancer on this machine for its recent past and writes what happened in
    /// which order, what did not cause it, and what to do. With a file of `weir bundle`, does so for that
    /// file.
    ///
    /// `weir explain route URL` says which route a request would take, why, and which server it would get.
    Explain(ExplainArgs),
    /// Save the recent past of a running balancer in one file
    ///
    /// Rates and latencies, findings, changes, examples of requests, reloads, facts about the host, and
    /// the configuration without values of header fields that look like secrets. `weir explain FILE` and the dashboard read
    /// it, on any machine.
    Bundle(BundleArgs),
    /// Show the state of a running balancer: servers, health, load, how requests ended
    ///
    /// Calls the admin API of a balancer on this machine.
    Status(StatusArgs),
    /// Watch a running balancer in the terminal: services, servers, requests, what is wrong
    ///
    /// Calls the admin API of a balancer on this machine once a second. Keys open a service or a server
    /// and drain it, after a question; `?` lists them. Needs a terminal: `weir status` prints the same
    /// figures as text.
    Top(TopArgs),
    /// Drain a server: it finishes its requests and gets no new ones
    ///
    /// Calls the admin API of a balancer on this machine. Takes effect at once, until `weir ready` or
    /// until the balancer is restarted. With `--fleet`, the state is set at all balancers of its fleet.
    Drain(ServerArgs),
    /// Put a server back into service after `weir drain` or `weir maintenance`
    Ready(ServerArgs),
    /// Put a service, a route or a server into maintenance
    ///
    /// A service or a route (`--route`): Weir answers its new requests with 503 (cause `maintenance`, an
    /// `error_page` can be for it) and sends them to no server. Requests in flight are finished, and
    /// health checks go on. `--off` ends it. It takes effect at once and survives reloads and upgrades.
    ///
    /// A server: like `weir drain`, and its health checks stop, for a server that will be stopped.
    /// `weir ready` ends it.
    Maintenance(MaintenanceArgs),
    /// Reload the configuration file of a running balancer, and print what changed
    ///
    /// The balancer checks the file first and applies it as a whole. If it has a mistake, the old
    /// configuration stays in force, and every mistake is reported. Requests in flight, connections
    /// and the state of remaining servers are kept.
    Reload(ReceiptArgs),
    /// Replace a running balancer with a new process without refusing a connection
    ///
    /// The balancer starts the program at its own path, with its own arguments: a new version if one
    /// was installed there. The new process takes over the listening sockets; the old one finishes its
    /// requests and exits. If the new process fails, the old one keeps serving.
    Upgrade(ReceiptArgs),
    /// Diagnose this host's network stack: problems, evidence and remedies
    ///
    /// Reads the kernel's counters several times within a few seconds, and applies the rules of
    /// docs/rules.md. Needs no balancer. Needs root only for data that the kernel hides from other
    /// users; reports what it could not read.
    Doctor(DoctorArgs),
    /// Run a demo: a balancer, servers in three zones and a little traffic, without any setup
    ///
    /// Starts sample servers on 127.0.0.1 with a fixed work time and size, a balancer in front of them
    /// and a few requests per second, and prints what to look at. Ctrl-C ends it.
    Demo(DemoArgs),
    /// Analyse a packet capture: loss, reordering, slow readers, and why
    ///
    /// Reads files of tcpdump or tshark, and counts as tshark 4.0 does: every
    /// `tcp.analysis.*` flag, over time and by connection, the connections with the most trouble
    /// first.
    Trace(TraceArgs),
    /// Generate load: `weir bench URL`, connect storms, search for the limit
    ///
    /// Sends requests at a constant rate (--rate) or over a number of connections (-c), and reports the
    /// results, the load that it could not deliver, and which side is responsible. Latency is measured
    /// from each request's scheduled start. Ctrl-C ends the run and prints the figures so far.
    #[command(after_help = exit_code::BENCH_HELP)]
    Bench(Box<BenchArgs>),
    /// Reproduce an incident on this machine, with Weir's diagnosis
    ///
    /// Hosts are network namespaces, links between them have faults, and the programs are real. Needs
    /// root; changes nothing outside of these namespaces, and removes them at the end.
    Lab(LabArgs),
}

/// The words of `weir init`.
#[derive(Debug, Args)]
pub(crate) struct InitArgs {
    /// The file to write; `-` is standard output
    #[arg(value_name = "FILE", default_value = "weir.toml")]
    pub(crate) file: PathBuf,

    /// Address on which clients connect; 0.0.0.0:8080 by default
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) listen: Option<String>,

    /// Address of a server, such as 10.0.1.5:8080; repeatable. Without it, the terminal is asked
    #[arg(long = "server", value_name = "ADDRESS")]
    pub(crate) servers: Vec<String>,

    /// Path for health checks, such as /health
    #[arg(long, value_name = "PATH")]
    pub(crate) check: Option<String>,

    /// Overwrite a file that exists
    #[arg(long)]
    pub(crate) force: bool,
}

/// The words of `weir completions`.
#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_name = "SHELL", value_enum)]
    pub(crate) shell: clap_complete::Shell,
}

/// The words of `weir man`.
#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// The command whose page is printed, such as `bench limit`; `weir` itself by default
    #[arg(value_name = "COMMAND", conflicts_with = "to")]
    pub(crate) command: Vec<String>,

    /// Write the pages of all commands to this folder, as weir.1, weir-serve.1 and so on
    #[arg(long, value_name = "FOLDER")]
    pub(crate) to: Option<PathBuf>,
}

/// The words of `weir serve`.
#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// Configuration file (TOML)
    #[arg(value_name = "FILE", env = "WEIR_CONFIG", hide_env_values = true)]
    pub(crate) file: PathBuf,
}

/// The words of `weir check`.
#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// Configuration file (TOML); `-` reads standard input, relative paths start at the current directory
    #[arg(value_name = "FILE", env = "WEIR_CONFIG", hide_env_values = true)]
    pub(crate) file: PathBuf,

    /// Print one JSON object instead of text
    #[arg(long)]
    pub(crate) json: bool,

    /// Check only the text, included files too, not what it names or anything else on this machine
    ///
    /// For checks on a machine other than the one that will serve, such as in CI.
    #[arg(long)]
    pub(crate) file_only: bool,
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
    /// Whether output is coloured, depending on whether it goes to a terminal.
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

    /// Returns the commands in the indented and fenced blocks of a document, each with its line.
    fn commands(document: &str) -> Vec<(usize, Vec<String>)> {
        let lines = document.lines().enumerate().map(|(index, line)| (index + 1, line.trim()));
        let commands = lines.filter_map(|(number, line)| {
            let line = line.strip_prefix("$ ").unwrap_or(line);
            let line = line.strip_prefix("sudo ").unwrap_or(line).strip_prefix("weir ")?;
            let mut words = shlex::split(line).unwrap_or_default();
            if let Some(end) = words.iter().position(|word| word.starts_with(['|', '>', '&'])) {
                words.truncate(end);
            }
            let is_verb = |word: &String| word.bytes().all(|byte| byte.is_ascii_lowercase());
            words.first().is_some_and(is_verb).then_some((number, words))
        });
        commands.collect()
    }

    #[test]
    fn every_command_in_the_documentation_is_valid() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let mut files = vec![root.join("README.md")];
        let mut folders = vec![root.join("docs")];
        while let Some(folder) = folders.pop() {
            let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
            let (deeper, here): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
            folders.extend(deeper);
            files.extend(here.into_iter().filter(|path| path.extension() == Some("md".as_ref())));
        }
        let mut wrong = Vec::new();
        let mut count = 0;
        for file in files {
            for (line, words) in commands(&std::fs::read_to_string(&file).unwrap()) {
                count += 1;
                let words: Vec<&str> = words.iter().map(String::as_str).collect();
                if let Err(error) = parse(&words) {
                    wrong.push(format!("{}:{line}: {words:?}: {error}", file.display()));
                }
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        assert!(count > 40, "only {count} commands were found");
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
            matches!(cli.verb, Verb::Explain(ExplainArgs { cause: Some(name), .. }) if name == "queue_full")
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
        let cli = parse(&["top", "--admin", "[::1]:9900"]).unwrap();
        let Verb::Top(TopArgs { admin }) = cli.verb else { panic!("not top") };
        assert_eq!(admin.address.to_string(), "[::1]:9900");
        let cli = parse(&["drain", "s", "10.0.0.1:80", "--admin", "unix:/run/x"]).unwrap();
        let Verb::Drain(ServerArgs { service, server, dry_run: false, fleet: false, admin }) =
            cli.verb
        else {
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
