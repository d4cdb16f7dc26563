//! Flags of `weir explain`.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};

use super::admin::AdminArgs;
use super::times;

/// The words of `weir explain`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct ExplainArgs {
    #[command(subcommand)]
    pub(crate) about: Option<ExplainVerb>,

    /// A cause, such as `connection_refused`; a rule, such as `listener_overflow`; or a status, such
    /// as 502, for all causes with that status
    ///
    /// Or a file of `weir bundle`: a path with a slash or a dot.
    #[arg(value_name = "CAUSE|FILE")]
    pub(crate) cause: Option<String>,

    /// Explain this much of a running balancer's recent past, up to 24 hours
    #[arg(
        long, value_name = "TIME", conflicts_with = "cause",
        value_parser = times::duration_above_zero
    )]
    pub(crate) last: Option<Duration>,

    /// Print one JSON object instead of text; with --last or a file
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) admin: AdminArgs,
}

/// What can be explained besides names and the past.
#[derive(Debug, Subcommand)]
pub(crate) enum ExplainVerb {
    /// Explain which route a request would take, and which server it would get
    ///
    /// Asks a running balancer; nothing is sent to a server, and nothing is counted. The exit code is 0
    /// if a route matches, 1 if none does.
    Route(ExplainRouteArgs),
}

/// The words of `weir explain route`.
#[derive(Debug, Args)]
pub(crate) struct ExplainRouteArgs {
    /// The URL that is requested
    #[arg(value_name = "URL")]
    pub(crate) url: String,

    /// The method
    #[arg(short = 'X', long, value_name = "METHOD", default_value = "GET")]
    pub(crate) method: String,

    /// A header of the request, such as `Cookie: beta=1`; repeatable
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE")]
    pub(crate) fields: Vec<String>,

    /// The client's IP address; unknown without it, so that no condition on it holds
    #[arg(long, value_name = "IP")]
    pub(crate) client: Option<IpAddr>,

    /// The listener, by name or address; without it, the one that fits the URL best
    #[arg(long, value_name = "LISTENER")]
    pub(crate) listener: Option<String>,

    /// Explain by this configuration file, without a server, and ask no running balancer
    // No conflict with --admin and --token-file: their environment variables may be set.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// Print one JSON object instead of text
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) admin: AdminArgs,
}
