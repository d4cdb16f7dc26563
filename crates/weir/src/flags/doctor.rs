//! The words of `weir doctor`.

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

    /// Look again and again until Ctrl-C, each time as long as --for says
    #[arg(long, conflicts_with_all = ["from", "save"])]
    pub(crate) watch: bool,

    /// Write what was seen into a file, from which `--facts` finds the same elsewhere
    #[arg(long, value_name = "FILE")]
    pub(crate) save: Option<PathBuf>,

    /// Print the page of a rule or of a kernel setting, and look at nothing
    #[arg(long, value_name = "NAME", conflicts_with_all = ["watch", "save", "json", "from"])]
    pub(crate) explain: Option<String>,
}

/// Where facts come from, and what they become.
#[derive(Clone, Debug, Args)]
pub(crate) struct FactsArgs {
    /// How long to look: counters say something only by how they rise
    #[arg(
        long = "for", value_name = "TIME", default_value = FOR,
        value_parser = super::times::duration_above_zero
    )]
    pub(crate) time: Duration,

    /// Which network namespaces to look at: `all`, `own`, a name of /run/netns, or the number of
    /// a process. Looking at others than the own takes root
    #[arg(long, value_name = "WHICH", default_value = "all")]
    pub(crate) netns: String,

    /// Look at what `--save` wrote instead of at this host
    #[arg(long = "facts", value_name = "FILE", id = "from", conflicts_with_all = ["time", "netns"])]
    pub(crate) from: Option<PathBuf>,

    /// Print one JSON object instead of text; with --watch, one a line
    #[arg(long)]
    pub(crate) json: bool,
}

/// What the doctor can be asked about in particular.
#[derive(Debug, Subcommand)]
pub(crate) enum DoctorVerb {
    /// The network settings that differ from this kernel's defaults, spelt out and judged; or those
    /// of a file
    Sysctl(SysctlArgs),
    /// Every listening socket: its program, its backlog, who waits, what it dropped
    Listeners(ListArgs),
    /// All other TCP sockets, by state and by peer, and the ports left towards each destination
    Sockets(ListArgs),
    /// The load that a balancer's configuration puts on its servers by checking them
    ///
    /// Reads Weir's configuration or HAProxy's.
    Checks(ChecksArgs),
}

/// The words of `weir doctor sysctl`.
#[derive(Debug, Args)]
pub(crate) struct SysctlArgs {
    /// A file in the form of sysctl.conf to judge instead of what is in force
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,

    /// Those at their default, too
    #[arg(long, conflicts_with = "file")]
    pub(crate) all: bool,

    #[command(flatten)]
    pub(crate) list: ListArgs,
}

/// The words of lists that need no time to look.
#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Which network namespaces to look at: `all`, `own`, a name of /run/netns, or the number of
    /// a process
    #[arg(long, value_name = "WHICH", default_value = "all")]
    pub(crate) netns: String,

    /// Look at what `weir doctor --save` wrote instead of at this host
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
