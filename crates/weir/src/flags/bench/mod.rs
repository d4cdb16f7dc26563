//! The words of `weir bench`.

mod compare;
mod serve;
mod units;
mod upload;

use clap::{Args, Subcommand};

pub(crate) use compare::CompareArgs;
pub(crate) use serve::ServeArgs;
pub(crate) use upload::UploadArgs;

/// The words of `weir bench`.
#[derive(Debug, Args)]
pub(crate) struct BenchArgs {
    #[command(subcommand)]
    pub(crate) verb: BenchVerb,
}

/// What to measure, or with what.
#[derive(Debug, Subcommand)]
pub(crate) enum BenchVerb {
    /// Compare runs by their JSON files, and make one page of them
    ///
    /// The first file is the base; the others are shown with their difference from it. With
    /// --html, one self-contained page shows all of them in the same charts.
    Compare(CompareArgs),
    /// Be a sample server: a fixed work time, size and number of workers
    ///
    /// An application whose capacity is known before it is measured. /status answers at once with
    /// the server's own counts as JSON; every other path does the work.
    Serve(ServeArgs),
    /// Upload bytes in parts to S3-compatible endpoints, and time every part
    ///
    /// Each endpoint gets the same number of bytes as one object, by multipart upload, one endpoint
    /// after the other. Keys come from the environment, `AWS_ACCESS_KEY_ID`,
    /// `AWS_SECRET_ACCESS_KEY` and, if there is one, `AWS_SESSION_TOKEN`, or from --access-key and
    /// --secret-key-file.
    Upload(UploadArgs),
}
