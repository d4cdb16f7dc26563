//! Shows on standard error how much of a long capture has been read.

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use diagnose::words;
use model::Moment;

/// Nothing is said of what takes no longer than this.
const AFTER: Duration = Duration::from_secs(1);
/// How often it is said on a terminal, and elsewhere.
const EVERY: [Duration; 2] = [Duration::from_millis(200), Duration::from_secs(10)];

pub(super) struct Progress<'a> {
    name: &'a str,
    next: Moment,
    is_terminal: bool,
    was_told: bool,
}

impl<'a> Progress<'a> {
    pub(super) fn new(name: &'a str) -> Self {
        let next = os::clock::now() + AFTER;
        Progress { name, next, is_terminal: io::stderr().is_terminal(), was_told: false }
    }

    /// Says it, if it is time to.
    pub(super) fn tell(&mut self, share: Option<f64>, frames: u64) {
        let now = os::clock::now();
        if now < self.next {
            return;
        }
        self.next = now + EVERY[usize::from(!self.is_terminal)];
        self.was_told = true;
        let share = share.map(|share| format!("{:.0} %, ", share * 100.0)).unwrap_or_default();
        let (before, after) = if self.is_terminal { ("\r\u{1b}[K", "") } else { ("", "\n") };
        let frames = words::thousands(frames);
        let _ = write!(io::stderr(), "{before}weir: {}: {share}{frames} frames{after}", self.name);
    }

    /// Takes away what stands on the terminal.
    pub(super) fn end(&self) {
        if self.was_told && self.is_terminal {
            let _ = write!(io::stderr(), "\r\u{1b}[K");
        }
    }
}
