//! Flags of the verbs that query or control a running balancer through its admin API.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use model::Address;

/// The admin API of this machine's balancer, wherever it is.
const LOCAL: &str = "local";

/// Where the configuration of the Debian package has the admin API.
const PACKAGED: &str = "unix:/run/weir/admin.sock";
/// Where a configuration without [admin] has it.
const DEFAULT: &str = "127.0.0.1:9900";

/// Where the admin API is, and what opens it.
#[derive(Clone, Debug, Args)]
pub(crate) struct AdminArgs {
    /// Where the balancer's admin API listens: `address` of its [admin]. `local` is the socket
    /// /run/weir/admin.sock, as in the Debian package, if that exists, else 127.0.0.1:9900
    #[arg(
        long = "admin",
        value_name = "ADDRESS",
        default_value = LOCAL,
        value_parser = address,
        env = "WEIR_ADMIN",
        hide_env_values = true
    )]
    pub(crate) address: Address,

    /// File with the admin API's token: `token_file` of its [admin]
    #[arg(long, value_name = "FILE", env = "WEIR_TOKEN_FILE", hide_env_values = true)]
    pub(crate) token_file: Option<PathBuf>,
}

/// The words of `weir status`.
#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    #[command(flatten)]
    pub(crate) admin: AdminArgs,

    /// Print a JSON object instead of text; with --watch, one per line
    #[arg(long)]
    pub(crate) json: bool,

    /// Repeat at this interval, until Ctrl-C
    #[arg(
        long,
        value_name = "TIME",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "2s",
        value_parser = super::times::duration
    )]
    pub(crate) watch: Option<Duration>,
}

/// The words of `weir top`.
#[derive(Debug, Args)]
pub(crate) struct TopArgs {
    #[command(flatten)]
    pub(crate) admin: AdminArgs,
}

/// The words of `weir bundle`.
#[derive(Debug, Args)]
pub(crate) struct BundleArgs {
    /// How much of the past to save, up to 24 hours: by the second for the last 15 minutes
    #[arg(
        long, value_name = "TIME", default_value = "10m",
        value_parser = super::times::duration_above_zero
    )]
    pub(crate) last: Duration,

    /// The file to write, `-` for standard output. Compressed, unless its name ends in .json
    #[arg(
        short,
        long,
        value_name = "FILE",
        default_value = "weir-bundle-HOST-TIME.json.gz",
        hide_default_value = true
    )]
    pub(crate) output: PathBuf,

    /// Do not look at the host for facts, which takes three seconds
    #[arg(long)]
    pub(crate) no_facts: bool,

    #[command(flatten)]
    pub(crate) admin: AdminArgs,
}

/// The words of `weir drain` and `weir ready`.
#[derive(Debug, Args)]
pub(crate) struct ServerArgs {
    /// The service's name
    #[arg(value_name = "SERVICE")]
    pub(crate) service: String,

    /// The server: its address, or the name it is configured with, for every address of it
    #[arg(value_name = "SERVER")]
    pub(crate) server: String,

    /// Change nothing: print which servers would receive new requests
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Set the state at every member of the fleet, and print which members have confirmed it. Members that start later
    /// or cannot be reached apply it when they join
    #[arg(long)]
    pub(crate) fleet: bool,

    #[command(flatten)]
    pub(crate) admin: AdminArgs,
}

/// The words of `weir maintenance`.
#[derive(Debug, Args)]
pub(crate) struct MaintenanceArgs {
    /// The service's name
    #[arg(value_name = "SERVICE", required_unless_present = "route")]
    pub(crate) service: Option<String>,

    /// Only this server of it: its address, or the name it is configured with, for every address of it
    #[arg(value_name = "SERVER", conflicts_with_all = ["route", "off", "retry_after"])]
    pub(crate) server: Option<String>,

    /// A route, by its name, instead of a service
    #[arg(long, value_name = "NAME", conflicts_with = "service")]
    pub(crate) route: Option<String>,

    /// End the maintenance (`weir ready` does so for a server)
    #[arg(long)]
    pub(crate) off: bool,

    /// When clients should come back: the Retry-After of the responses
    #[arg(
        long,
        value_name = "TIME",
        conflicts_with = "off",
        value_parser = super::times::duration_above_zero
    )]
    pub(crate) retry_after: Option<Duration>,

    /// Change nothing: print which servers of the service would receive new requests
    #[arg(long, requires = "server")]
    pub(crate) dry_run: bool,

    /// Set the state at every member of the fleet, and print which members have confirmed it. Members that start later
    /// or cannot be reached apply it when they join
    #[arg(long, requires = "server")]
    pub(crate) fleet: bool,

    #[command(flatten)]
    pub(crate) admin: AdminArgs,
}

/// The words of `weir reload` and `weir upgrade`.
#[derive(Debug, Args)]
pub(crate) struct ReceiptArgs {
    #[command(flatten)]
    pub(crate) admin: AdminArgs,

    /// Print the receipt as a JSON object instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

/// As in the configuration, or as the log shows it: `http://127.0.0.1:9900/`.
fn address(text: &str) -> Result<Address, String> {
    let text = match text {
        LOCAL if PACKAGED.strip_prefix("unix:").is_some_and(|path| Path::new(path).exists()) => {
            PACKAGED
        }
        LOCAL => DEFAULT,
        other => other,
    };
    let bare = text.strip_prefix("http://").unwrap_or(text).trim_end_matches('/');
    bare.parse().map_err(|_| {
        "an IP address and a port, such as 127.0.0.1:9900, or unix:/run/weir/admin.sock".to_owned()
    })
}
