//! Flags of `weir doctor`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};

/// How long is looked when nothing is said.
const FOR: &str = "5s";

/// The words of `weir doctor`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct DoctorArgs {
    #[command(subcommand)]
    pub(crate) about: Option<DoctorVerb>,

    #[command(flatten)]
    pub(crate) facts: FactsArgs,

    /// Repeat until Ctrl-C, each time for as long as --for says
    #[arg(long, conflicts_with_all = ["from", "save"])]
    pub(crate) watch: bool,

    /// Save the facts to a file, which `--facts` can evaluate on any machine
    #[arg(long, value_name = "FILE")]
    pub(crate) save: Option<PathBuf>,

    /// Print the page of a rule or of a kernel setting, without examining the host
    #[arg(long, value_name = "NAME", conflicts_with_all = ["watch", "save", "json", "from"])]
    pub(crate) explain: Option<String>,
}

/// Where facts come from, and what they become.
#[derive(Clone, Debug, Args)]
pub(crate) struct FactsArgs {
    /// How long to observe the host: only changes of counters are informative
    #[arg(
        long = "for", value_name = "TIME", default_value = FOR,
        value_parser = super::times::duration_above_zero
    )]
    pub(crate) time: Duration,

    /// Network namespaces to examine: `all`, `own`, a name in /run/netns, or a process id. Others
    /// than the current one need root
    #[arg(long, value_name = "WHICH", default_value = "all")]
    pub(crate) netns: String,

    /// Use the facts in a file written by `--save` instead of this host's
    #[arg(long = "facts", value_name = "FILE", id = "from", conflicts_with_all = ["time", "netns"])]
    pub(crate) from: Option<PathBuf>,

    /// Print one JSON object instead of text; with --watch, one per line
    #[arg(long)]
    pub(crate) json: bool,
}

/// What the doctor can be asked about in particular.
#[derive(Debug, Subcommand)]
pub(crate) enum DoctorVerb {
    /// List and judge the network settings that differ from this kernel's defaults, or those of a
    /// file
    Sysctl(SysctlArgs),
    /// List every listening socket: program, backlog, waiting connections, drops
    Listeners(ListArgs),
    /// List all other TCP sockets by state and by peer, and the ports left towards each destination
    Sockets(ListArgs),
    /// Compute the load that the health checks of a balancer's configuration put on its servers
    ///
    /// Reads Weir's configuration or HAProxy's.
    Checks(ChecksArgs),
}

/// The words of `weir doctor sysctl`.
#[derive(Debug, Args)]
pub(crate) struct SysctlArgs {
    /// A file in the format of sysctl.conf to judge instead of the current settings
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,

    /// Include settings at their default
    #[arg(long, conflicts_with = "file")]
    pub(crate) all: bool,

    #[command(flatten)]
    pub(crate) list: ListArgs,
}

/// The words of lists that need no time to look.
#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Network namespaces to examine: `all`, `own`, a name in /run/netns, or a process id
    #[arg(long, value_name = "WHICH", default_value = "all")]
    pub(crate) netns: String,

    /// Use the facts in a file written by `weir doctor --save` instead of this host's
    #[arg(long = "facts", value_name = "FILE", id = "from", conflicts_with = "netns")]
    pub(crate) from: Option<PathBuf>,

    /// Print one JSON object instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

/// The words of `weir doctor checks`.
#[derive(Debug, Args)]
pub(crate) struct ChecksArgs {
    /// A configuration of Weir (TOML) or of HAProxy
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// How many balancers run it
    #[arg(long, value_name = "COUNT", default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) nodes: u32,

    /// Print one JSON object instead of text
    #[arg(long)]
    pub(crate) json: bool,
}
