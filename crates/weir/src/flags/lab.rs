//! Flags of `weir lab`.

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
    /// List the built-in incidents
    List(LabListArgs),
    /// Reproduce incidents, and compare the results with their expectations
    ///
    /// An incident runs in variants (for instance before and after the remedy), each on new hosts.
    /// Prints the figures next to those of the company that had the incident. Exit code 1 if a
    /// result is not as expected.
    Run(LabRunArgs),
    /// Set up an incident's hosts and programs, and open a shell on one of them
    Shell(LabShellArgs),
    /// Remove what killed runs have left behind
    Clean,
    /// Run a link between two network namespaces that delays, loses, reorders, shapes or throttles
    ///
    /// Creates a TUN device in each and forwards packets between the two until SIGTERM or SIGINT;
    /// then prints the number of packets for each effect, as JSON. The caller sets addresses and
    /// routes. Prints a line once the devices exist. SIGHUP reloads the file.
    Link(LinkArgs),
}

/// The words of `weir lab list`.
#[derive(Debug, Args)]
pub(crate) struct LabListArgs {
    /// Print only names, one per line
    #[arg(long)]
    pub(crate) names: bool,
}

/// The words of `weir lab run`.
#[derive(Debug, Args)]
pub(crate) struct LabRunArgs {
    /// Names of incidents, or files (TOML); without any, all built-in incidents
    #[arg(value_name = "NAME")]
    pub(crate) names: Vec<String>,

    /// The same seed makes the same decisions about packets
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub(crate) seed: u64,

    /// Run only this variant
    #[arg(long, value_name = "VARIANT")]
    pub(crate) only: Option<String>,

    /// Run a shortened form of each incident
    #[arg(long)]
    pub(crate) short: bool,

    /// Write a page with drawings, charts and figures to this file; several incidents share one
    /// page
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,

    /// Print one JSON object for each incident instead of text
    #[arg(long)]
    pub(crate) json: bool,

    /// Keep the run's files, including the output of every program, in /tmp/weir-lab-PID
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

    /// Effects on packets (TOML): `both = { delay = "30ms", loss = "1%" }`, or `there` (from the
    /// first end) and `back`. Without a file packets pass unchanged
    #[arg(long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,

    /// The same seed makes the same decisions about the same packets
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub(crate) seed: u64,

    /// The largest packet, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 1_500, value_parser = clap::value_parser!(u32).range(576..=65_521))]
    pub(crate) mtu: u32,

    /// Forward TCP segments as large as the sender's kernel creates them, for speed; loss,
    /// reordering, duplication and shaping then count each as one packet
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
