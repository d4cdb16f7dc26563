//! The words of `weir lab`.

use std::path::PathBuf;

use ::lab::link::End;
use clap::{Args, Subcommand};

/// The words of `weir lab`.
#[derive(Debug, Args)]
pub(crate) struct LabArgs {
    #[command(subcommand)]
    pub(crate) verb: LabVerb,
}

/// What to do with the lab.
#[derive(Debug, Subcommand)]
pub(crate) enum LabVerb {
    /// List the incidents that come with Weir
    List(LabListArgs),
    /// Make incidents happen, and hold what comes of them against what is expected
    ///
    /// An incident runs in its variants, before and after for instance, each on new hosts. Ends
    /// with the figures beside those of the company that had the incident. Exit code 1 when
    /// something is not as expected.
    Run(LabRunArgs),
    /// Set up an incident's hosts and programs, and open a shell on one of them
    Shell(LabShellArgs),
    /// Remove what runs have left behind that were killed
    Clean,
    /// Be a link between two network namespaces that delays, loses, reorders, shapes or throttles
    ///
    /// Makes a TUN device in each and carries packets between the two until SIGTERM or SIGINT;
    /// then it prints what it did to how many, as JSON. Addresses and routes are the caller's.
    /// Prints a line once the devices are there. SIGHUP has it read its file anew.
    Link(LinkArgs),
}

/// The words of `weir lab list`.
#[derive(Debug, Args)]
pub(crate) struct LabListArgs {
    /// Names only, one a line
    #[arg(long)]
    pub(crate) names: bool,
}

/// The words of `weir lab run`.
#[derive(Debug, Args)]
pub(crate) struct LabRunArgs {
    /// Names of incidents, or files (TOML); without any, all that come with Weir
    #[arg(value_name = "NAME")]
    pub(crate) names: Vec<String>,

    /// The same seed makes the same decisions about packets
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub(crate) seed: u64,

    /// Only this variant
    #[arg(long, value_name = "VARIANT")]
    pub(crate) only: Option<String>,

    /// Shortened: less of each, for a first look
    #[arg(long)]
    pub(crate) short: bool,

    /// Write a page with drawings, curves and figures into this file; with several incidents,
    /// one page for all
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,

    /// Print one JSON object for each incident instead of text
    #[arg(long)]
    pub(crate) json: bool,

    /// Leave the run's files, outputs of every program among them, in /tmp/weir-lab-PID
    #[arg(long)]
    pub(crate) keep: bool,
}

/// The words of `weir lab shell`.
#[derive(Debug, Args)]
pub(crate) struct LabShellArgs {
    /// The incident
    #[arg(value_name = "NAME")]
    pub(crate) name: String,

    /// The host
    #[arg(value_name = "HOST")]
    pub(crate) host: String,

    /// The variant [default: its first]
    #[arg(long, value_name = "VARIANT")]
    pub(crate) only: Option<String>,

    /// A command instead of a shell
    #[arg(value_name = "COMMAND", last = true)]
    pub(crate) command: Vec<String>,
}

/// The words of `weir lab link`.
#[derive(Debug, Args)]
pub(crate) struct LinkArgs {
    /// One end: a namespace of /run/netns and the name of its new device
    #[arg(value_name = "NAMESPACE:DEVICE", value_parser = end)]
    pub(crate) first: End,

    /// The other end
    #[arg(value_name = "NAMESPACE:DEVICE", value_parser = end)]
    pub(crate) second: End,

    /// What it does to packets (TOML): `both = { delay = "30ms", loss = "1%" }`, or `there` (from
    /// the first end) and `back`. Without it they pass as they come
    #[arg(long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,

    /// The same seed makes the same decisions about the same packets
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub(crate) seed: u64,

    /// The largest packet, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 1_500, value_parser = clap::value_parser!(u32).range(576..=65_521))]
    pub(crate) mtu: u32,

    /// Carry TCP's segments as large as the sender's kernel makes them, for the sake of speed; a
    /// link that loses, reorders, duplicates or shapes then takes each for one packet
    #[arg(long)]
    pub(crate) large: bool,
}

fn end(text: &str) -> Result<End, String> {
    let parts = text.split_once(':').filter(|(namespace, device)| {
        !namespace.is_empty() && !namespace.contains('/') && (1..=15).contains(&device.len())
    });
    let (namespace, device) =
        parts.ok_or("a namespace, a colon and a device's name of at most 15 bytes: client:far0")?;
    Ok(End { namespace: namespace.to_owned(), device: device.to_owned() })
}
