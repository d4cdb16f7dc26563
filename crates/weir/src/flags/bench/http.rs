//! The words of `weir bench URL`: HTTP load. Those that `ab` has mean what they mean there.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::units;
use super::units::{Conditions, Sources, Steps, Url};

/// The words of `weir bench URL`.
#[derive(Clone, Debug, Args)]
pub(crate) struct HttpArgs {
    /// What to ask for; `3*URL` is asked for three times as often as others
    #[arg(value_name = "URL", required = true, value_parser = units::url)]
    pub(crate) urls: Vec<Url>,

    #[command(flatten)]
    pub(crate) shape: ShapeArgs,

    #[command(flatten)]
    pub(crate) request: RequestArgs,

    #[command(flatten)]
    pub(crate) ways: WaysArgs,

    #[command(flatten)]
    pub(crate) report: ReportArgs,

    /// Fail with exit code 99 unless this holds: `p99<200ms`, `errors<0.1%`, `rate>1000`
    #[arg(long, value_name = "CONDITIONS", value_parser = units::objective)]
    pub(crate) expect: Vec<Conditions>,

    /// Accepted for `ab`'s sake: errors never end a run
    #[arg(short = 'r', hide = true)]
    pub(crate) carry_on: bool,

    /// Accepted for `ab`'s sake: responses may always differ in length
    #[arg(short = 'l', hide = true)]
    pub(crate) any_length: bool,
}

/// How much, for how long.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "How much")]
pub(crate) struct ShapeArgs {
    /// How long: seconds, or a time such as `5m` [default: 10s, unless -n is given]
    #[arg(short = 't', long, value_name = "TIME", value_parser = units::seconds)]
    pub(crate) time: Option<Duration>,

    /// How many requests in all
    #[arg(short = 'n', long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) requests: Option<u64>,

    /// Connections at once. Each sends its next request when the last one is answered; with --rate,
    /// so many at most [default: 10, with --rate 1000]
    #[arg(short = 'c', long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) connections: Option<u32>,

    /// Start so many requests per second by the clock, whatever the server does
    #[arg(long, value_name = "PER-SECOND", value_parser = units::rate, conflicts_with = "requests")]
    pub(crate) rate: Option<f64>,

    /// Reach the rate, or the connections, evenly within this time
    #[arg(long, value_name = "TIME", value_parser = units::seconds)]
    pub(crate) ramp: Option<Duration>,

    /// Rates one after the other: `30s:100,30s:200,1m:200..1000`
    #[arg(long, value_name = "STEPS", value_parser = units::steps, conflicts_with_all = ["rate", "ramp", "time", "requests"])]
    pub(crate) steps: Option<Steps>,

    /// Let starts come at random, as independent users do, and not at equal distances
    #[arg(long)]
    pub(crate) random: bool,

    /// Threads that make the load [default: as many as the load needs, up to one per processor]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,
}

/// What is sent.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "What is sent")]
pub(crate) struct RequestArgs {
    /// Method [default: GET; POST with a body]
    #[arg(short = 'm', long, value_name = "METHOD")]
    pub(crate) method: Option<String>,

    /// A field, such as 'Accept: text/html'; may be given again
    #[arg(short = 'H', long = "header", value_name = "FIELD", value_parser = units::field)]
    pub(crate) fields: Vec<(String, String)>,

    /// A body: this file's content
    #[arg(short = 'p', long = "body", value_name = "FILE", conflicts_with = "body_size")]
    pub(crate) body: Option<PathBuf>,

    /// A body of so many bytes, such as `50kB`
    #[arg(long, value_name = "SIZE", value_parser = units::size)]
    pub(crate) body_size: Option<u64>,

    /// The body's Content-Type
    #[arg(short = 'T', long = "content-type", value_name = "TYPE")]
    pub(crate) content_type: Option<String>,
}

/// How servers are reached.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Connections")]
pub(crate) struct WaysArgs {
    /// Keep connections for further requests; this is the default
    #[arg(short = 'k', long, conflicts_with = "no_keepalive")]
    pub(crate) keepalive: bool,

    /// Open a connection for every request
    #[arg(long)]
    pub(crate) no_keepalive: bool,

    /// Speak HTTP/2: by ALPN over TLS, with prior knowledge in clear
    #[arg(long)]
    pub(crate) http2: bool,

    /// Requests at once on each connection of HTTP/2
    #[arg(long, value_name = "COUNT", default_value_t = 1, requires = "http2", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) streams: u16,

    /// Believe any certificate
    #[arg(long)]
    pub(crate) insecure: bool,

    /// Believe certificates of the authorities in this file (PEM), and no others
    #[arg(long, value_name = "FILE", conflicts_with = "insecure")]
    pub(crate) cacert: Option<PathBuf>,

    /// How long a request may take once its connection is there
    #[arg(short = 's', long, value_name = "TIME", default_value = "10s", value_parser = units::seconds)]
    pub(crate) timeout: Duration,

    /// How long connecting may take, TLS included
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = units::seconds)]
    pub(crate) connect_timeout: Duration,

    /// Connect from this address of this machine, or these: `10.0.0.2-10.0.0.9`; may be given again
    #[arg(long = "source", value_name = "ADDRESS", value_parser = units::sources)]
    pub(crate) sources: Vec<Sources>,
}

/// What is made of the figures.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Figures")]
pub(crate) struct ReportArgs {
    /// Write all figures into this file, as JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,

    /// Write a page with charts into this file
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,

    /// Show nothing while it runs
    #[arg(short = 'q', long)]
    pub(crate) quiet: bool,
}
