//! The exit codes: the whole list.

use std::process::ExitCode;

/// The list as `weir --help` prints it.
pub(super) const HELP: &str = "\
Exit codes:
  0  done; for `serve`, stopped by a signal
  1  failed: a port in use, no permission, a balancer that does not answer;
     for `doctor`, a finding of weight (warning or critical)
  2  a mistake in the command line or in the configuration
  3  `bench` could not begin as many requests as it was asked for; `bench limit`
     found its own limit, not the server's
  4  `bench` broke off by itself: a thread of the load ended before its time
 99  `bench` measured something that --expect does not allow";

/// How `weir` ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Done; for `serve`, stopped by a signal.
    Done,
    /// The doctor found something that somebody should act on.
    Findings,
    /// Something outside the configuration failed.
    Failed,
    /// The command line or the configuration is wrong.
    Mistake,
    /// The load generator could not deliver what it was asked for.
    Limited,
    /// The load generator itself broke.
    Broken,
    /// A threshold does not hold.
    Threshold,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(match exit {
            Exit::Done => 0,
            Exit::Failed | Exit::Findings => 1,
            Exit::Mistake => 2,
            Exit::Limited => 3,
            Exit::Broken => 4,
            Exit::Threshold => 99,
        })
    }
}
