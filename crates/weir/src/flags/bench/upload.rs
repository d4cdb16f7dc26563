//! The words of `weir bench upload`.

use clap::Args;

use super::units::size;

/// The words of `weir bench upload`.
#[derive(Debug, Args)]
pub(crate) struct UploadArgs {
    /// How many bytes to upload to each endpoint
    #[arg(long, value_name = "SIZE", default_value = "200MB", value_parser = size)]
    pub(crate) size: u64,
}
