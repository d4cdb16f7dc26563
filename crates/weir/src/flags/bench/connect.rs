//! Flags of `weir bench connect`.

use std::time::Duration;

use clap::Args;

use super::http::ReportArgs;
use super::units::{self, Conditions, Sources};

/// The words of `weir bench connect`.
#[derive(Clone, Debug, Args)]
pub(crate) struct ConnectArgs {
    /// Where to connect to
    #[arg(value_name = "HOST:PORT", value_parser = host_port)]
    pub(crate) server: (String, u16),

    /// Duration: seconds, or a time such as `5m`
    #[arg(short = 't', long, value_name = "TIME", default_value = "10s", value_parser = units::seconds)]
    pub(crate) time: Duration,

    /// New connections per second; without it, as many as possible
    #[arg(long, value_name = "PER-SECOND", value_parser = units::rate)]
    pub(crate) rate: Option<f64>,

    /// Concurrent connections
    #[arg(short = 'c', long, value_name = "COUNT", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) connections: u32,

    /// Threads [default: one per processor]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,

    /// Local source address, or a range: `10.0.0.2-10.0.0.9`; repeatable
    #[arg(long = "source", value_name = "ADDRESS", value_parser = units::sources)]
    pub(crate) sources: Vec<Sources>,

    /// Timeout of one attempt
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = units::seconds)]
    pub(crate) connect_timeout: Duration,

    /// Close with a reset, which leaves no port in `TIME_WAIT` for a minute
    #[arg(long)]
    pub(crate) reset: bool,

    /// Fail with exit code 99 unless this holds: `p99<1ms`, `errors<0.1%`, `rate>1000`
    #[arg(long, value_name = "CONDITIONS", value_parser = units::objective)]
    pub(crate) expect: Vec<Conditions>,

    #[command(flatten)]
    pub(crate) report: ReportArgs,
}

/// `HOST:PORT`, an IPv6 address in brackets.
fn host_port(text: &str) -> Result<(String, u16), String> {
    let wrong = || "a host and a port: 10.0.0.1:80, [::1]:80, example.com:80".to_owned();
    let (host, port) = text.rsplit_once(':').ok_or_else(wrong)?;
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    let port = port.parse().ok().filter(|port| *port > 0).ok_or_else(wrong)?;
    let is_bracketed = bare.len() < host.len();
    if bare.is_empty() || (bare.contains(':') && !is_bracketed) || bare.contains('/') {
        return Err(wrong());
    }
    Ok((bare.to_owned(), port))
}

#[cfg(test)]
mod tests {
    use super::host_port;

    #[test]
    fn a_server_is_a_host_and_a_port() {
        assert_eq!(host_port("10.0.0.1:80"), Ok(("10.0.0.1".to_owned(), 80)));
        assert_eq!(host_port("[::1]:443"), Ok(("::1".to_owned(), 443)));
        for wrong in ["", "host", "host:", ":80", "host:0", "host:70000", "::1:80", "http://h:80"] {
            assert!(host_port(wrong).is_err(), "{wrong}");
        }
    }
}
