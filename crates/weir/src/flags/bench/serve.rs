//! The words of `weir bench serve`.

use std::net::SocketAddr;
use std::time::Duration;

use clap::Args;

use super::units::size;

/// The words of `weir bench serve`.
#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// Where to listen; port 0: any that is free
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8000")]
    pub(crate) listen: SocketAddr,

    /// How long the work of a request takes, on the mean
    #[arg(long, value_name = "TIME", default_value = "100ms", value_parser = crate::flags::duration)]
    pub(crate) work: Duration,

    /// Bytes of the answer's body; without it, a short JSON
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) size: Option<u64>,
}
