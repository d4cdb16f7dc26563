//! The durations of one server's requests, by stage.

use crate::histogram::SharedHistogram;

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
