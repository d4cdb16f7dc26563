//! The output of `weir bench`: results on standard output, everything else on standard error.

use std::io::{self, Write};

use load::engine::Refusal;

use crate::flags::Exit;

/// Prints a run's results. The reader may have closed the pipe: that is no
/// failure of the run.
pub(super) fn print(text: &str) {
    let _ = io::stdout().lock().write_all(text.as_bytes());
}

/// Shows something on standard error, which may be closed, too.
pub(super) fn show(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

/// Says in one line why nothing came of it.
pub(super) fn failed(why: &str) -> Exit {
    show(&format!("weir: {why}\n"));
    Exit::Failed
}

/// Says in one line what was asked for wrongly.
pub(super) fn mistaken(why: &str) -> Exit {
    show(&format!("weir: {why}\n"));
    Exit::Mistake
}

/// Says why there will be no run.
pub(super) fn refused(refusal: &Refusal) -> Exit {
    match refusal {
        Refusal::Mistake(why) => mistaken(why),
        Refusal::Unreachable(why) => failed(why),
    }
}
