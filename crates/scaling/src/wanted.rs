//! The function: a load, the current servers, terms, memory and now → how many servers there should be.

use std::time::Duration;

use crate::load::{Load, bounded};
use crate::memory::Memory;
use crate::reason::{Figures, Reason, Wanted};
use crate::staffing::Slots;
use crate::terms::{GROWTH_SERVERS_MIN, Terms};

/// Share of a number of servers that does not round it up, and the least such difference. Loads travel in single
/// precision, with relative errors of up to 6e-8.
const ROUNDING: f64 = 1e-6;

/// Lower bound on the service time in a division, in seconds.
const SERVICE_SECONDS_MIN: f64 = 1e-6;

/// Share of the arrivals that may be refused without an effect on scale-in. Single refusals can
/// have causes that more servers do not remove, such as requests that are bound to one server.
const REFUSED_SHARE: f64 = 0.001;

/// Returns how many servers the service should have.
///
/// - `load`: the sum of the loads of all instances, over the last window (such as 15 s).
/// - `servers`: the servers that take requests now. Servers that are still starting do not count.
/// - `now`: the time since any fixed moment. Calls may be as far apart as the caller likes; loads of a few
///   calls may overlap. Each counts for the time since the call before.
///
/// A higher number is returned at once, but at most `growth_max` times `servers` (and always up to 4 more). A lower
/// number is returned once it has held for the stabilization window, and not while more than 0.1 % of the requests
/// are refused.
pub fn wanted(
    load: &Load,
    servers: u32,
    terms: &Terms,
    memory: &mut Memory,
    now: Duration,
) -> Wanted {
    let terms = terms.bounded();
    let load = &(*load + Load::default());
    memory.add(load, servers, now);
    let Some(server_slots) = terms.capacity.slots(terms.utilization) else {
        let figures = Figures { servers_now: servers, ..Figures::default() };
        return Wanted { servers: None, reason: Reason::NoLimit, figures };
    };
    let mut figures = figures(load, servers, server_slots, &terms, memory, now);
    if load.is_idle() && figures.idle >= terms.idle {
        memory.highest.clear();
        return Wanted { servers: Some(terms.servers_min), reason: Reason::NoLoad, figures };
    }
    figures.servers_held = memory.highest.get();
    let target = target(&figures, &terms);
    memory.highest.add(target, terms.stabilization, now);
    figures.servers_held = memory.highest.get();
    let number = figures.servers_held.max(terms.servers_min).min(terms.servers_max);
    Wanted { servers: Some(number), reason: reason(number, target, &figures, &terms), figures }
}

/// Returns what the load needs, before all bounds.
fn figures(
    load: &Load,
    servers: u32,
    server_slots: f64,
    terms: &Terms,
    memory: &mut Memory,
    now: Duration,
) -> Figures {
    let service_seconds = memory.service_seconds();
    // What one server can serve counts in any case: a service without servers completes nothing.
    let one = service_seconds
        .map_or(0.0, |s| terms.utilization * server_slots / s.max(SERVICE_SECONDS_MIN));
    let counted = load.refusals.min(load.completions.max(one) * terms.refusals_counted_max);
    let arrivals = (load.arrivals - load.refusals).max(0.0) + counted;
    let arrivals = service_seconds.map_or(arrivals, |s| memory.mean_arrivals(arrivals, s));
    let (slots, drain_slots) = match service_seconds {
        Some(seconds) => {
            let drain_slots = load.waiting * seconds / terms.drain.as_secs_f64();
            (Slots::of(bounded(arrivals * seconds), terms.utilization), drain_slots)
        }
        // Nothing has ended: those in flight need their slots, and at most as many may follow from the queue.
        None => {
            (Slots::of(load.in_flight, 1.0).without_reserve(), load.waiting.min(load.in_flight))
        }
    };
    // Requests that last for hours are in flight and hardly arrive. While others find no slot, they must not fill all.
    let crowded = load.waiting > 0.0 || load.refusals > REFUSED_SHARE * load.arrivals;
    let occupied = if crowded { load.in_flight / terms.utilization } else { load.in_flight };
    let servers_exact = (slots.total() + drain_slots).max(occupied) / server_slots;
    // Until it is idle, a service with servers keeps one; one without gets one with its first request.
    let least = u32::from(servers > 0 || !load.is_idle());
    Figures {
        servers_now: servers,
        arrivals_offered: load.arrivals,
        arrivals,
        refusals: load.refusals,
        refusals_counted: counted,
        service_seconds,
        slots,
        drain_slots,
        waiting: load.waiting,
        in_flight: load.in_flight,
        server_slots,
        utilization: terms.utilization,
        servers_exact,
        servers_needed: rounded_up(servers_exact).max(least),
        servers_held: 0,
        stabilization: terms.stabilization,
        drain: terms.drain,
        idle: memory.idle(now),
    }
}

/// Returns the number for this moment: higher by one step at most, and lower only if the difference exceeds the
/// tolerance. While requests are refused, it is not lower than before.
fn target(figures: &Figures, terms: &Terms) -> u32 {
    let (needed, now) = (figures.servers_needed, figures.servers_now);
    let number = if needed > now {
        needed.min(step(now, terms))
    } else {
        let near = rounded_up(figures.servers_exact * (1.0 + terms.tolerance)) >= now;
        // Before a request has ended, nothing is known that allows less.
        let unknown = figures.service_seconds.is_none();
        if near || unknown { now } else { needed }
    };
    if is_refusing(figures) { number.max(figures.servers_held) } else { number }
}

fn is_refusing(figures: &Figures) -> bool {
    figures.refusals > REFUSED_SHARE * figures.arrivals_offered
}

/// Returns the highest number that one step may ask for.
fn step(now: u32, terms: &Terms) -> u32 {
    rounded_up(f64::from(now) * terms.growth_max).max(now.saturating_add(GROWTH_SERVERS_MIN))
}

fn rounded_up(servers: f64) -> u32 {
    (servers - (servers * ROUNDING).max(ROUNDING)).ceil() as u32
}

/// Returns why the number is what it is.
fn reason(number: u32, target: u32, figures: &Figures, terms: &Terms) -> Reason {
    let (needed, now) = (figures.servers_needed, figures.servers_now);
    if figures.service_seconds.is_none() {
        return Reason::UnknownServiceTime;
    }
    if number == terms.servers_max && target.max(needed) > number {
        return Reason::AtMax;
    }
    if number > target && number > figures.servers_held {
        return Reason::AtMin;
    }
    if number > now && needed > number {
        return Reason::StepLimited;
    }
    if number > needed && number >= now && (number > target || is_refusing(figures)) {
        return Reason::ScaleInHeld;
    }
    if number <= now {
        return if number < now { Reason::LessLoad } else { Reason::Steady };
    }
    // Without the queue the present servers would do.
    let others = figures.slots.total().max(figures.in_flight) / figures.server_slots;
    if figures.refusals > 0.0 {
        Reason::Refusals
    } else if rounded_up(others) <= now {
        Reason::Queue
    } else {
        Reason::MoreLoad
    }
}

#[cfg(test)]
mod tests;
