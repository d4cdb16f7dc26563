//! Flags of `weir bench`.

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
    /// Open and close connections, at a rate or as fast as possible, and report the results over time
    ///
    /// Each connection is closed as soon as it is established. Shows connections per second for each
    /// source address, and recognises connect times that are caused by a lost SYN.
    #[command(after_help = BENCH_HELP)]
    Connect(ConnectArgs),
    /// Find the highest rate that meets an objective, and the resource that runs out beyond it
    ///
    /// Doubles the rate until a trial fails, bisects between the last rate that passed and the first
    /// that failed, and confirms the result with a longer run. A trial passes when its requests could
    /// start, the objective holds and no queue grows.
    #[command(after_help = BENCH_HELP)]
    Limit(LimitArgs),
    /// Compare runs by their JSON files, as a table and a page
    ///
    /// The first file is the baseline; the others are shown with their difference from it. With
    /// --html, one self-contained page shows all of them in the same charts.
    Compare(CompareArgs),
    /// Run a sample server with a fixed work time, response size and number of workers
    ///
    /// Its capacity is known before a measurement. /status answers at once with
    /// the server's own counts as JSON; every other path does the work.
    Serve(ServeArgs),
    /// Upload an object in parts to S3-compatible endpoints, and time every part
    ///
    /// Each endpoint gets the same number of bytes as one object, by multipart upload, one endpoint
    /// after the other. Keys come from the environment, `AWS_ACCESS_KEY_ID`,
    /// `AWS_SECRET_ACCESS_KEY` and, if there is one, `AWS_SESSION_TOKEN`, or from --access-key and
    /// --secret-key-file.
    #[command(after_help = BENCH_HELP)]
    Upload(UploadArgs),
}
