//! Flags of `weir bench compare`.

use std::path::PathBuf;

use clap::Args;

/// The words of `weir bench compare`.
#[derive(Debug, Args)]
pub(crate) struct CompareArgs {
    /// JSON files of runs (`--json`), the baseline first
    #[arg(value_name = "FILE", required = true, num_args = 1..=8)]
    pub(crate) files: Vec<PathBuf>,

    /// Write a page with charts of all runs to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
}
