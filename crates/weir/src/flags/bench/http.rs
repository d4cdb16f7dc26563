//! Flags of `weir bench URL`: HTTP load. Flags that `ab` also has mean the same as there.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::units;
use super::units::{Conditions, Sources, Steps, Url};

/// The words of `weir bench URL`.
#[derive(Clone, Debug, Args)]
pub(crate) struct HttpArgs {
    /// URL to request; `3*URL` is requested three times as often as others
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

    /// Accepted for compatibility with `ab`: errors never end a run
    #[arg(short = 'r', hide = true)]
    pub(crate) carry_on: bool,

    /// Accepted for compatibility with `ab`: responses may always differ in length
    #[arg(short = 'l', hide = true)]
    pub(crate) any_length: bool,
}

/// Amount and duration.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Load")]
pub(crate) struct ShapeArgs {
    /// Duration: seconds, or a time such as `5m` [default: 10s, unless -n is given]
    #[arg(short = 't', long, value_name = "TIME", value_parser = units::seconds)]
    pub(crate) time: Option<Duration>,

    /// Total number of requests
    #[arg(short = 'n', long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) requests: Option<u64>,

    /// Concurrent connections. Each sends its next request when the last one is answered; with --rate,
    /// the maximum [default: 10, with --rate 1000]
    #[arg(short = 'c', long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) connections: Option<u32>,

    /// Start this many requests per second, independent of the server
    #[arg(long, value_name = "PER-SECOND", value_parser = units::rate, conflicts_with = "requests")]
    pub(crate) rate: Option<f64>,

    /// Ramp up linearly to the rate, or to the connections, within this time
    #[arg(long, value_name = "TIME", value_parser = units::seconds)]
    pub(crate) ramp: Option<Duration>,

    /// Rates one after the other: `30s:100,30s:200,1m:200..1000`
    #[arg(long, value_name = "STEPS", value_parser = units::steps, conflicts_with_all = ["rate", "ramp", "time", "requests"])]
    pub(crate) steps: Option<Steps>,

    /// Start requests at random times, like independent users, instead of evenly spaced
    #[arg(long)]
    pub(crate) random: bool,

    /// Load generator threads [default: as many as the load needs, up to one per processor]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,
}

/// What is sent.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Request")]
pub(crate) struct RequestArgs {
    /// Method [default: GET; POST with a body]
    #[arg(short = 'm', long, value_name = "METHOD")]
    pub(crate) method: Option<String>,

    /// Header field, such as 'Accept: text/html'; repeatable
    #[arg(short = 'H', long = "header", value_name = "FIELD", value_parser = units::field)]
    pub(crate) fields: Vec<(String, String)>,

    /// Use this file's content as the body
    #[arg(short = 'p', long = "body", value_name = "FILE", conflicts_with = "body_size")]
    pub(crate) body: Option<PathBuf>,

    /// Send a body of this size, such as `50kB`
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
    /// Reuse connections for further requests; this is the default
    #[arg(short = 'k', long, conflicts_with = "no_keepalive")]
    pub(crate) keepalive: bool,

    /// Open a connection for every request
    #[arg(long)]
    pub(crate) no_keepalive: bool,

    /// Use HTTP/2: by ALPN over TLS, with prior knowledge in plain text
    #[arg(long)]
    pub(crate) http2: bool,

    /// Concurrent requests on each HTTP/2 connection
    #[arg(long, value_name = "COUNT", default_value_t = 1, requires = "http2", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) streams: u16,

    /// Accept any certificate
    #[arg(long)]
    pub(crate) insecure: bool,

    /// Trust only the certificate authorities in this file (PEM)
    #[arg(long, value_name = "FILE", conflicts_with = "insecure")]
    pub(crate) cacert: Option<PathBuf>,

    /// Timeout of a request, once its connection is established
    #[arg(short = 's', long, value_name = "TIME", default_value = "10s", value_parser = units::seconds)]
    pub(crate) timeout: Duration,

    /// Timeout of a connect, including TLS
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = units::seconds)]
    pub(crate) connect_timeout: Duration,

    /// Local source address, or a range: `10.0.0.2-10.0.0.9`; repeatable
    #[arg(long = "source", value_name = "ADDRESS", value_parser = units::sources)]
    pub(crate) sources: Vec<Sources>,
}

/// What is made of the figures.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct ReportArgs {
    /// Write all figures to this file, as JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,

    /// Write a page with charts to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,

    /// Print nothing while it runs
    #[arg(short = 'q', long)]
    pub(crate) quiet: bool,
}
