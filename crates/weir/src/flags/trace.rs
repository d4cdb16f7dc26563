//! The words of `weir trace`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

/// The words of `weir trace`.
#[derive(Debug, Args)]
pub(crate) struct TraceArgs {
    /// Capture: pcap or pcapng, also compressed by gzip or zstd; `-` is standard input
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// Length of an interval, such as `100ms` or `1m`
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = super::duration)]
    pub(crate) interval: Duration,

    /// Tell of one connection, event by event; its number is tshark's `tcp.stream`
    #[arg(long, value_name = "NUMBER")]
    pub(crate) stream: Option<u32>,

    /// How many connections are shown, those with the most trouble first
    #[arg(long, value_name = "NUMBER", default_value_t = 10)]
    pub(crate) connections: usize,

    /// Print one JSON object instead of text
    #[arg(long, conflicts_with_all = ["csv", "frames"])]
    pub(crate) json: bool,

    /// Print the intervals as CSV instead of text
    #[arg(long, conflicts_with = "frames")]
    pub(crate) csv: bool,

    /// Print each TCP frame's number, stream and analysis flags, tab-separated, as it is read
    #[arg(long)]
    pub(crate) frames: bool,

    /// Draw a picture (SVG): counts over time, or with --stream its sequence numbers
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,

    /// Connections that are followed; segments of others are counted and not analysed
    #[arg(long, value_name = "NUMBER", default_value_t = 1_000_000)]
    pub(crate) connections_max: usize,
}
