//! The result of reading a capture, and the selection that is reported.

use std::cmp::Reverse;

use trace::Trace;
use trace::reader::Broken;
use trace::summary::Story;

/// A capture that has been read, as far as it could be.
pub struct Reading {
    /// How the file was named, or the interface.
    pub name: String,
    /// It was read from an interface.
    pub is_live: bool,
    /// What was counted.
    pub trace: Trace,
    /// Packets dropped during the capture, according to the file.
    pub dropped: Option<u64>,
    /// Why reading stopped before the end.
    pub broken: Option<Broken>,
}

/// What of a capture is reported.
#[derive(Clone, Copy, Debug)]
pub struct Selection {
    /// One connection, by its number in the trace; otherwise the capture as a whole.
    pub stream: Option<u32>,
    /// How many connections are shown, those with the most trouble first.
    pub connections: usize,
}

/// The `count` connections with the most trouble, the most first; of equals the one that came first.
pub fn worst(trace: &Trace, count: usize) -> impl Iterator<Item = (u32, &Story)> {
    let numbered = (0..).zip(trace.stories());
    let mut all: Vec<(Reverse<u64>, u32)> =
        numbered.map(|(number, story)| (Reverse(story.trouble()), number)).collect();
    if count < all.len() {
        // There may be a million of them, and few are wanted.
        all.select_nth_unstable(count);
        all.truncate(count);
    }
    all.sort_unstable();
    all.into_iter().filter_map(|(_, number)| Some((number, trace.story(number)?)))
}
