//! Flags of `weir bench limit`.

use std::time::Duration;

use clap::Args;

use super::http::{ReportArgs, RequestArgs, WaysArgs};
use super::units;
use super::units::{Conditions, Url};

/// The words of `weir bench limit`.
#[derive(Clone, Debug, Args)]
pub(crate) struct LimitArgs {
    /// URL to request; `3*URL` is requested three times as often as others
    #[arg(value_name = "URL", required = true, value_parser = units::url)]
    pub(crate) urls: Vec<Url>,

    /// Objective that each trial must meet
    #[arg(long, value_name = "CONDITIONS", default_value = "p99<500ms,errors<0.1%", value_parser = units::objective)]
    pub(crate) objective: Conditions,

    /// The first rate, per second
    #[arg(long, value_name = "PER-SECOND", default_value = "10", value_parser = units::rate)]
    pub(crate) from: f64,

    /// The highest rate to try, per second
    #[arg(long, value_name = "PER-SECOND", default_value = "100k", value_parser = units::rate)]
    pub(crate) to: f64,

    /// Duration of each trial; the longer confirmation finds queues that short trials hide
    #[arg(long, value_name = "TIME", default_value = "8s", value_parser = units::seconds)]
    pub(crate) trial: Duration,

    /// Duration of the run that confirms the result
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = units::seconds)]
    pub(crate) confirm: Duration,

    /// Precision of the limit, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 2.0, value_parser = percent)]
    pub(crate) precision: f64,

    /// Maximum concurrent connections
    #[arg(short = 'c', long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) connections: Option<u32>,

    /// Start requests at random times, like independent users, instead of evenly spaced
    #[arg(long)]
    pub(crate) random: bool,

    /// Load generator threads [default: as many as the load needs, up to one per processor]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,

    #[command(flatten)]
    pub(crate) request: RequestArgs,

    #[command(flatten)]
    pub(crate) ways: WaysArgs,

    #[command(flatten)]
    pub(crate) report: ReportArgs,
}

fn percent(text: &str) -> Result<f64, String> {
    let number = model::units::percent(text).map_err(|error| error.to_string())?;
    let in_bounds = (0.1..=50.0).contains(&number);
    in_bounds.then_some(number).ok_or_else(|| "a percentage from 0.1 to 50".to_owned())
}
