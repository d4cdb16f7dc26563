//! Flags of `weir bench serve`.

use std::net::SocketAddr;
use std::time::Duration;

use clap::Args;

use super::units::size;

/// The largest body of an answer, in bytes: it is kept in memory.
const SIZE_MAX_BYTES: u64 = 1 << 30;
/// The most slots.
const SLOTS_MAX: u64 = 65_536;
/// The largest coefficient of variation.
const CV_MAX: f64 = 10.0;

/// The words of `weir bench serve`.
#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// Address to listen on; port 0: any free port
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8000")]
    pub(crate) listen: SocketAddr,

    /// Mean work time of a request
    #[arg(
        long, value_name = "TIME", default_value = "100ms", value_parser = crate::flags::times::duration
    )]
    pub(crate) work: Duration,

    /// Size of the response body, such as `50kB`; without it, a short JSON
    #[arg(long, value_name = "SIZE", value_parser = body_size)]
    pub(crate) size: Option<u64>,

    /// Concurrent requests; others wait in order of arrival; without it, no limit
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..=SLOTS_MAX))]
    pub(crate) slots: Option<u64>,

    /// Vary work times: coefficient of variation (standard deviation over mean), lognormal
    #[arg(long, value_name = "CV", default_value = "0", value_parser = cv)]
    pub(crate) cv: f64,

    /// Seed for work times: the same seed gives the same times
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub(crate) seed: u64,

    /// Make each slot a single-threaded worker, as in uWSGI and gunicorn
    ///
    /// A worker accepts a connection when it is free, answers one request and closes. Further
    /// connections wait in the kernel's accept queue, which --backlog bounds. /status waits there,
    /// too; --status-listen avoids that.
    #[arg(long)]
    pub(crate) prefork: bool,

    /// Length of the accept queue; at most net.core.somaxconn, the default
    #[arg(long, value_name = "COUNT")]
    pub(crate) backlog: Option<u32>,

    /// Close a connection after this idle time
    #[arg(
        long, value_name = "TIME", default_value = "75s", value_parser = crate::flags::times::duration
    )]
    pub(crate) close_after: Duration,

    /// Close a connection after this many requests [default: no limit; 1 with --prefork]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) requests_per_connection: Option<u64>,

    /// Second listening address for /status, which accepts every connection at once
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) status_listen: Option<SocketAddr>,

    /// The server's name, in responses and in /status
    #[arg(long, value_name = "NAME", default_value = "sample", value_parser = name)]
    pub(crate) name: String,
}

fn body_size(text: &str) -> Result<u64, String> {
    match size(text)? {
        size if size <= SIZE_MAX_BYTES => Ok(size),
        _ => Err("at most 1GiB, since it is kept in memory".to_owned()),
    }
}

fn cv(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|cv| (0.0..=CV_MAX).contains(cv));
    number.ok_or_else(|| format!("a number from 0 to {CV_MAX}"))
}

/// It stands in a header field.
fn name(text: &str) -> Result<String, String> {
    let fits = (1..=100).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_graphic());
    fits.then(|| text.to_owned())
        .ok_or_else(|| "1 to 100 ASCII characters without spaces".to_owned())
}
