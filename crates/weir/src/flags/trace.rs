//! Flags of `weir trace`.

use std::path::PathBuf;
use std::time::Duration;

use std::net::IpAddr;

use clap::{Args, Subcommand};

/// The words of `weir trace`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct TraceArgs {
    /// Capture: pcap or pcapng, also compressed by gzip or zstd; `-` is standard input
    #[arg(value_name = "FILE", required = true)]
    pub(crate) file: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) look: TraceLook,

    #[command(subcommand)]
    pub(crate) how: Option<TraceHow>,
}

/// Where packets come from, if not from a file.
#[derive(Debug, Subcommand)]
pub(crate) enum TraceHow {
    /// Capture live packets from an interface, and print the same report
    Live(LiveArgs),
}

/// The words of `weir trace live`.
#[derive(Debug, Args)]
pub(crate) struct LiveArgs {
    /// Interface, such as `eth0` or `lo`
    #[arg(value_name = "INTERFACE")]
    pub(crate) interface: String,

    /// Duration
    #[arg(long = "for", value_name = "TIME", default_value = "10s", value_parser = super::times::duration_above_zero)]
    pub(crate) time: Duration,

    /// Only connections from or to this port; repeatable
    #[arg(long = "port", value_name = "PORT")]
    pub(crate) ports: Vec<u16>,

    /// Only connections from or to this address; repeatable
    #[arg(long = "host", value_name = "ADDRESS")]
    pub(crate) hosts: Vec<IpAddr>,

    #[command(flatten)]
    pub(crate) look: TraceLook,
}

/// The contents and format of the output.
#[derive(Debug, Args)]
pub(crate) struct TraceLook {
    /// Length of an interval, such as `100ms` or `1m`
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = super::times::duration)]
    pub(crate) interval: Duration,

    /// Show one connection, event by event; the number is tshark's `tcp.stream`
    #[arg(long, value_name = "NUMBER")]
    pub(crate) stream: Option<u32>,

    /// Number of connections to show, those with the most trouble first
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

    /// Draw a chart (SVG): counts over time, or with --stream its sequence numbers
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,

    /// Write the report as a self-contained page with charts
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,

    /// Maximum tracked connections; segments of others are counted, not analysed
    #[arg(long, value_name = "NUMBER", default_value_t = 1_000_000)]
    pub(crate) connections_max: usize,
}
