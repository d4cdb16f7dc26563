//! The exit codes: the whole list.

use std::process::ExitCode;

/// The list as `weir --help` prints it.
pub(super) const HELP: &str = "\
Exit codes:
  0  done; for `serve`, stopped by a signal
  1  failed: a port in use, no permission, a balancer that does not answer;
     for `check`, a valid file that could not be served on this host;
     for `doctor`, a finding of weight (warning or critical);
     for `lab run`, something that is not as expected
  2  a mistake in the command line or in the configuration
  3  `bench` could not begin as many requests as it was asked for; `bench limit`
     found its own limit, not the server's
  4  `bench` broke off by itself: a thread of the load ended before its time
 99  `bench` measured something that --expect does not allow
`lab shell` ends as its command did: with its code, or 128 and the number of the
signal that ended it.";

/// The list as the help of `weir bench` and its verbs prints it.
pub(crate) const BENCH_HELP: &str = "\
Exit codes:
  0  measured, and what was expected holds; for `limit`: the limit was found, or
     there is none up to --to; for `upload`: everything arrived
  1  no server, no TLS, no answer at all; figures that could not be written; for
     `limit`: no rate passes, or none lasts; for `upload`: something failed
  2  a mistake in the command line
  3  fewer than 99 % of the intended requests could begin; for `limit`: what was
     found is the load generator's limit, not the server's
  4  broken off: a thread of the load generator ended before its time
 99  a threshold (--expect) does not hold
`weir explain NAME` says what a failure is, and what it means that something ran out.";

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
    /// As the command ended that was run on a host of the lab.
    Command(u8),
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
            Exit::Command(code) => code,
        })
    }
}
