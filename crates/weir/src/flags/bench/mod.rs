//! The words of `weir bench`.

mod compare;
pub(crate) mod connect;
pub(crate) mod http;
pub(crate) mod limit;
mod serve;
pub(crate) mod units;
mod upload;

use clap::{Args, Subcommand};

use super::exit_code::BENCH_HELP;

pub(crate) use compare::CompareArgs;
pub(crate) use connect::ConnectArgs;
pub(crate) use http::HttpArgs;
pub(crate) use limit::LimitArgs;
pub(crate) use serve::ServeArgs;
pub(crate) use upload::UploadArgs;

/// The words of `weir bench`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct BenchArgs {
    #[command(subcommand)]
    pub(crate) verb: Option<BenchVerb>,

    /// What counts without a verb.
    #[command(flatten)]
    pub(crate) http: HttpArgs,
}

/// What to measure, or with what.
#[derive(Debug, Subcommand)]
pub(crate) enum BenchVerb {
    /// Connect and disconnect, at a rate or flat out, and say how it went over time
    ///
    /// A connection is closed as soon as it is there. Connections per second are shown for each
    /// source address, and connect times that are those of a lost SYN are recognised.
    #[command(after_help = BENCH_HELP)]
    Connect(ConnectArgs),
    /// Find the highest rate that an objective allows, and what runs out beyond it
    ///
    /// Doubles the rate until a trial fails, narrows down between the last rate that passed and the
    /// first that failed, and confirms what it found by a longer run. A trial passes when its
    /// requests could begin, the objective holds and no queue grows.
    #[command(after_help = BENCH_HELP)]
    Limit(LimitArgs),
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
    #[command(after_help = BENCH_HELP)]
    Upload(UploadArgs),
}
