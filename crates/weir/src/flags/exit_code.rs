//! The complete list of exit codes.

use std::process::ExitCode;

/// The list as `weir --help` prints it.
pub(super) const HELP: &str = "\
Exit codes:
  0  done; for `serve`, stopped by a signal
  1  failed: a port in use, no permission, a balancer that does not answer;
     for `check`, a valid file that could not be served on this host;
     for `doctor`, a warning or a critical finding;
     for `lab run`, a result that is not as expected;
     for `explain route`, no route matches;
     with --fleet, a member that has not confirmed the change
  2  a mistake on the command line or in the configuration
  3  `bench` could not start as many requests as intended; `bench limit` found
     its own limit, not the server's
  4  `bench` aborted: a load generator thread ended early
 99  a threshold of `bench` (--expect) does not hold
`lab shell` exits with its command's code, or with 128 plus the number of the
signal that ended it.";

/// The list as the help of `weir bench` and its verbs prints it.
pub(crate) const BENCH_HELP: &str = "\
Exit codes:
  0  measured, and thresholds hold; for `limit`: the limit was found, or there is
     none up to --to; for `upload`: everything was uploaded
  1  no server, no TLS, no response at all; results could not be written; for
     `limit`: no rate passes, or none is confirmed; for `upload`: an error
  2  a mistake on the command line
  3  fewer than 99 % of the intended requests could start; for `limit`: the limit
     found is the load generator's, not the server's
  4  aborted: a load generator thread ended early
 99  a threshold (--expect) does not hold
`weir explain NAME` explains a failure, or an exhausted resource.";

/// How `weir` ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Done; for `serve`, stopped by a signal.
    Done,
    /// The doctor reported a warning or a critical finding.
    Findings,
    /// No route matches the request that was asked about.
    NoRoute,
    /// A member of the fleet has not confirmed a change.
    Unconfirmed,
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
    /// The exit code of a command that was run on a host of the lab.
    Command(u8),
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(match exit {
            Exit::Done => 0,
            Exit::Failed | Exit::Findings | Exit::NoRoute | Exit::Unconfirmed => 1,
            Exit::Mistake => 2,
            Exit::Limited => 3,
            Exit::Broken => 4,
            Exit::Threshold => 99,
            Exit::Command(code) => code,
        })
    }
}
