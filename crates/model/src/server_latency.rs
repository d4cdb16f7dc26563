//! The durations of one server's requests, by stage.

use crate::histogram::{HistogramTotals, SharedHistogram};

/// Histograms of a server's durations, for one service. Takes 9 kB at most, and about 3 kB for a
/// server whose durations differ by a factor of 100.
#[derive(Debug, Default)]
pub struct ServerLatency {
    /// Time in the queue, of requests that waited there and then went to this server.
    pub queue: SharedHistogram,
    /// Time to establish connections, also when that failed.
    pub connect: SharedHistogram,
    /// From the choice of the server to the response head: connecting, sending and waiting.
    pub first_byte: SharedHistogram,
    /// From the choice of the server to the end of its response; in TCP mode, of the connection.
    pub whole: SharedHistogram,
}

/// The same as plain numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is what the histogram of the same name has recorded")]
pub struct ServerLatencyTotals {
    pub queue: HistogramTotals,
    pub connect: HistogramTotals,
    pub first_byte: HistogramTotals,
    pub whole: HistogramTotals,
}

impl ServerLatency {
    /// Returns what was recorded so far.
    pub fn totals(&self) -> ServerLatencyTotals {
        ServerLatencyTotals {
            queue: self.queue.totals(),
            connect: self.connect.totals(),
            first_byte: self.first_byte.totals(),
            whole: self.whole.totals(),
        }
    }
}
