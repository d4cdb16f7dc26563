//! The answer as one line of text, with its figures.

use std::fmt;

use crate::reason::{Figures, Reason, Wanted};

impl fmt::Display for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let figures = &self.figures;
        let Some(servers) = self.servers else {
            return f.write_str(
                "no number: the service has neither a concurrency limit nor a target of requests in flight",
            );
        };
        match self.reason {
            Reason::NoLoad => {
                let idle = figures.idle.as_secs();
                return write!(f, "no requests for {idle} s: {}", Servers(servers));
            }
            Reason::UnknownServiceTime => {
                let (in_flight, waiting) = (Rounded(figures.in_flight), Rounded(figures.waiting));
                return write!(
                    f,
                    "no request has ended yet; {in_flight} in flight and {waiting} waiting: {}",
                    Servers(servers)
                );
            }
            Reason::Steady
            | Reason::MoreLoad
            | Reason::Refusals
            | Reason::Queue
            | Reason::LessLoad
            | Reason::ScaleInHeld
            | Reason::StepLimited
            | Reason::AtMax
            | Reason::AtMin
            | Reason::NoLimit => derivation(figures, f)?,
        }
        consequence(self.reason, servers, figures, f)
    }
}

/// Writes how many servers the load needs.
fn derivation(figures: &Figures, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let Figures { slots, .. } = figures;
    let seconds = Seconds(figures.service_seconds.unwrap_or(0.0));
    let arrivals = Rounded(figures.arrivals);
    write!(f, "{arrivals} requests/s × {seconds} need {} slots; ", Rounded(slots.load))?;
    let percent = Rounded(figures.utilization * 100.0);
    write!(f, "with {percent} % utilization and a queueing reserve of {}", Rounded(slots.reserve))?;
    if figures.drain_slots >= 0.05 {
        let (more, waiting) = (Rounded(figures.drain_slots), Rounded(figures.waiting));
        let drain = figures.drain.as_secs();
        write!(f, ", and {more} to serve {waiting} waiting requests within {drain} s")?;
    }
    if figures.in_flight > slots.total() + figures.drain_slots {
        write!(f, ", but not fewer than the {} in flight", Rounded(figures.in_flight))?;
    }
    let each = Rounded(figures.server_slots);
    write!(f, ": {} of {each} slots", Servers(figures.servers_needed))?;
    if figures.refusals_counted < figures.refusals {
        let (some, all) = (Rounded(figures.refusals_counted), Rounded(figures.refusals));
        write!(f, " ({some} of {all} refusals/s are counted, others may be retries)")?;
    }
    Ok(())
}

/// Writes what follows from it, if something bounds the number.
fn consequence(
    reason: Reason,
    servers: u32,
    figures: &Figures,
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    let now = figures.servers_now;
    match reason {
        Reason::ScaleInHeld if figures.refusals > 0.0 => {
            let refusals = Rounded(figures.refusals);
            write!(f, "; held at {servers} while {refusals} requests/s are refused")
        }
        Reason::ScaleInHeld => {
            let window = figures.stabilization.as_secs();
            write!(f, "; held at {servers}, the highest number of the last {window} s")
        }
        Reason::Steady if figures.servers_needed != servers => {
            write!(f, "; {servers} are close enough")
        }
        Reason::StepLimited => write!(f, "; {servers} in one step from {now}"),
        Reason::AtMax => write!(f, "; the maximum is {servers}"),
        Reason::AtMin => write!(f, "; the minimum is {servers}"),
        Reason::Steady
        | Reason::MoreLoad
        | Reason::Refusals
        | Reason::Queue
        | Reason::LessLoad
        | Reason::NoLoad
        | Reason::UnknownServiceTime
        | Reason::NoLimit => Ok(()),
    }
}

/// A number of servers.
struct Servers(u32);

impl fmt::Display for Servers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.0 == 1 { "" } else { "s" };
        write!(f, "{} server{plural}", self.0)
    }
}

/// A number with one decimal below 10, and none from there.
struct Rounded(f64);

impl fmt::Display for Rounded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tenths = (self.0 * 10.0).round();
        if self.0 >= 9.95 || (tenths % 10.0).abs() < 0.5 {
            write!(f, "{:.0}", self.0)
        } else {
            write!(f, "{:.1}", self.0)
        }
    }
}

/// A time in seconds, with a unit that suits it.
struct Seconds(f64);

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 < 1.0 {
            write!(f, "{} ms", Rounded(self.0 * 1e3))
        } else {
            write!(f, "{} s", Rounded(self.0))
        }
    }
}
