//! The answer: a number of servers, why, and the figures behind it.

use std::time::Duration;

use crate::staffing::Slots;

/// Why the number is what it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The current servers fit the load.
    Steady,
    /// The requests that arrive need more servers.
    MoreLoad,
    /// Requests are refused, and the load needs more servers.
    Refusals,
    /// The requests in the queue need more servers to be served in time.
    Queue,
    /// The load has needed fewer servers for the whole stabilization window.
    LessLoad,
    /// The load needs fewer servers now, but not for the whole stabilization window, or requests are refused.
    ScaleInHeld,
    /// The load needs more servers than one step may add.
    StepLimited,
    /// The load needs more servers than the maximum.
    AtMax,
    /// The load needs fewer servers than the minimum.
    AtMin,
    /// There has been no load for a while.
    NoLoad,
    /// No request has ended yet. The number follows from the requests in flight.
    UnknownServiceTime,
    /// There is neither a concurrency limit nor a target of requests in flight: no answer.
    NoLimit,
}

impl Reason {
    /// Returns the word for logs, metrics and JSON.
    pub fn word(self) -> &'static str {
        match self {
            Reason::Steady => "steady",
            Reason::MoreLoad => "more_load",
            Reason::Refusals => "refusals",
            Reason::Queue => "queue",
            Reason::LessLoad => "less_load",
            Reason::ScaleInHeld => "scale_in_held",
            Reason::StepLimited => "step_limited",
            Reason::AtMax => "at_max",
            Reason::AtMin => "at_min",
            Reason::NoLoad => "no_load",
            Reason::UnknownServiceTime => "unknown_service_time",
            Reason::NoLimit => "no_limit",
        }
    }
}

/// How many servers a service should have. Displays as one line of text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wanted {
    /// The number. `None` if there is no answer.
    pub servers: Option<u32>,
    /// Why.
    pub reason: Reason,
    /// The figures behind it.
    pub figures: Figures,
}

/// The figures behind a number of servers.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Figures {
    /// Servers that took requests at the time.
    pub servers_now: u32,
    /// Requests that arrived, per second.
    pub arrivals_offered: f64,
    /// Requests per second that count: those that arrived, without refusals that do not count. A mean over a longer
    /// time if requests take long.
    pub arrivals: f64,
    /// Refusals per second.
    pub refusals: f64,
    /// Refusals per second that count.
    pub refusals_counted: f64,
    /// Mean service time in seconds. `None` if no request has ended yet.
    pub service_seconds: Option<f64>,
    /// The slots that the arrivals need.
    pub slots: Slots,
    /// Slots in addition, to serve the requests that wait in time.
    pub drain_slots: f64,
    /// Requests that wait.
    pub waiting: f64,
    /// Mean number of occupied slots. The servers have at least as many.
    pub in_flight: f64,
    /// Slots of one server.
    pub server_slots: f64,
    /// The target utilization.
    pub utilization: f64,
    /// Servers that the load needs, before rounding up.
    pub servers_exact: f64,
    /// Servers that the load needs, before all bounds.
    pub servers_needed: u32,
    /// The highest number in the stabilization window.
    pub servers_held: u32,
    /// The stabilization window.
    pub stabilization: Duration,
    /// The time in which requests that wait should be served.
    pub drain: Duration,
    /// How long there has been no load.
    pub idle: Duration,
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORDS: [(Reason, &str); 12] = [
        (Reason::Steady, "steady"),
        (Reason::MoreLoad, "more_load"),
        (Reason::Refusals, "refusals"),
        (Reason::Queue, "queue"),
        (Reason::LessLoad, "less_load"),
        (Reason::ScaleInHeld, "scale_in_held"),
        (Reason::StepLimited, "step_limited"),
        (Reason::AtMax, "at_max"),
        (Reason::AtMin, "at_min"),
        (Reason::NoLoad, "no_load"),
        (Reason::UnknownServiceTime, "unknown_service_time"),
        (Reason::NoLimit, "no_limit"),
    ];

    /// Users build alerts on these words.
    #[test]
    fn the_words_are_those_of_the_documentation() {
        let docs = include_str!("../../../docs/scaling.md");
        let table = docs.split("| reason | meaning |").nth(1).unwrap();
        let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
        let documented: Vec<&str> = rows
            .filter_map(|row| row.split('|').nth(1))
            .flat_map(|words| words.split(','))
            .map(|word| word.trim().trim_matches('`'))
            .collect();
        assert_eq!(documented, WORDS.map(|(_, word)| word));
        for (reason, word) in WORDS {
            assert_eq!(reason.word(), word);
        }
    }
}
