//! Peak EWMA: of two servers drawn by weight, the one with the lower product of latency and
//! requests in flight.
//!
//! The latency is a moving average that jumps to a slow response at once and decays over [`DECAY`],
//! as in Finagle and Linkerd: a server that stalls is avoided after one response, and since the
//! average of a server without requests decays too, it is tried again later.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use model::{Moment, ServerState};

use super::{Candidate, Servers, random::better_of_two, weights};
use crate::weights::Draw;

/// Time after which an observation counts for 1/e of itself.
pub const DECAY: Duration = Duration::from_secs(10);

/// The latency assumed for a server with requests in flight that has not answered yet, in
/// microseconds: so long that it gets its first request at once and its second only after it has
/// answered, or when no other server has answered either.
const UNKNOWN_US: f64 = 1e12;

/// The lower product of latency and requests in flight, of two drawn at random.
#[derive(Clone, Debug)]
pub struct PeakEwma {
    servers: usize,
    draw: Draw,
}

impl PeakEwma {
    /// Builds the algorithm over these servers.
    pub fn new(candidates: &[Candidate]) -> PeakEwma {
        PeakEwma { servers: candidates.len(), draw: Draw::new(&weights(candidates)) }
    }

    /// Returns the cheaper of two servers that have room.
    pub fn pick(&self, servers: &impl Servers, rng: &mut fastrand::Rng) -> Option<usize> {
        better_of_two(&self.draw, self.servers, servers, rng, |a, b| {
            cost(servers, a) < cost(servers, b)
        })
    }
}

fn cost(servers: &impl Servers, server: usize) -> f64 {
    let in_flight = servers.in_flight(server);
    match servers.latency_us(server) {
        Some(latency) => latency * f64::from(in_flight + 1),
        None if in_flight == 0 => 0.0,
        None => UNKNOWN_US * f64::from(in_flight + 1),
    }
}

/// Records that a response head arrived `time` after its request: the average jumps up to it or
/// decays towards it. Of two concurrent updates one may be lost; the next response corrects that.
pub fn observe_latency(state: &ServerState, time: Duration, now: Moment) {
    let sample = time.as_micros() as f64;
    let before = f64::from_bits(state.latency_us_bits.load(Relaxed));
    let at = Moment::from_micros(state.latency_at_us.load(Relaxed));
    let next = if sample >= before {
        sample
    } else {
        let kept = kept_after(now.since(at));
        before * kept + sample * (1.0 - kept)
    };
    // 0.0 means unknown, so a known latency stays above it.
    state.latency_us_bits.store(next.max(1.0).to_bits(), Relaxed);
    state.latency_at_us.store(now.as_micros(), Relaxed);
}

/// Returns the estimate at `now`, in microseconds, decayed since the last response; `None` if there
/// never was one.
pub fn latency_us(state: &ServerState, now: Moment) -> Option<f64> {
    let latency = f64::from_bits(state.latency_us_bits.load(Relaxed));
    if latency <= 0.0 {
        return None;
    }
    let at = Moment::from_micros(state.latency_at_us.load(Relaxed));
    Some(latency * kept_after(now.since(at)))
}

fn kept_after(elapsed: Duration) -> f64 {
    (-elapsed.as_secs_f64() / DECAY.as_secs_f64()).exp()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pick::testing::{Sim, candidates, seeded};

    const MS: Duration = Duration::from_millis(1);

    fn estimate_ms(state: &ServerState, at_ms: u64) -> f64 {
        latency_us(state, Moment::from_millis(at_ms)).unwrap() / 1_000.0
    }

    #[test]
    fn the_average_rises_at_once_and_sinks_over_ten_seconds() {
        let state = ServerState::default();
        assert_eq!(latency_us(&state, Moment::from_millis(1)), None);
        observe_latency(&state, 10 * MS, Moment::from_millis(1_000));
        assert!((estimate_ms(&state, 1_000) - 10.0).abs() < 0.1);
        observe_latency(&state, 500 * MS, Moment::from_millis(1_001));
        assert!((estimate_ms(&state, 1_001) - 500.0).abs() < 0.1);
        // Fast responses for one decay time bring it most of the way back.
        for at in (1_100..=11_000).step_by(100) {
            observe_latency(&state, 10 * MS, Moment::from_millis(at));
        }
        let after = estimate_ms(&state, 11_000);
        assert!((180.0..200.0).contains(&after), "{after}");
        // Without responses it decays as well.
        assert!((estimate_ms(&state, 21_000) - after / std::f64::consts::E).abs() < 1.0);
    }

    /// Simulates four servers, one of which is ten times slower from `slow_from` on; returns the
    /// share that it gets before and after.
    fn shares_of_the_slow_server(slow_from_ms: u64) -> (f64, f64) {
        let mut rng = seeded();
        let algorithm = PeakEwma::new(&candidates(&[1; 4]));
        let states: [ServerState; 4] = std::array::from_fn(|_| ServerState::default());
        let mut sim = Sim::new(4);
        let mut running: Vec<(u64, u64, usize)> = Vec::new();
        let (mut before, mut after) = ((0.0, 0.0), (0.0, 0.0));
        for now_ms in 1..20_000 {
            let now = Moment::from_millis(now_ms);
            running.retain(|&(end, start, server)| {
                if end == now_ms {
                    sim.in_flight[server] -= 1;
                    let time = Duration::from_millis(end - start);
                    observe_latency(&states[server], time, now);
                }
                end != now_ms
            });
            sim.latency_us = states.iter().map(|state| latency_us(state, now)).collect();
            let server = algorithm.pick(&sim, &mut rng).unwrap();
            sim.in_flight[server] += 1;
            let time = if server == 0 && now_ms >= slow_from_ms { 200 } else { 20 };
            running.push((now_ms + time, now_ms, server));
            let share = if now_ms < slow_from_ms { &mut before } else { &mut after };
            share.0 += f64::from(u8::from(server == 0));
            share.1 += 1.0;
        }
        (before.0 / before.1, after.0 / after.1)
    }

    #[test]
    fn a_server_that_becomes_slow_is_avoided_but_not_forgotten() {
        let (before, after) = shares_of_the_slow_server(5_000);
        assert!((0.2..0.3).contains(&before), "share while equal: {before}");
        assert!((0.001..0.1).contains(&after), "share while slow: {after}");
    }

    #[test]
    fn a_new_server_gets_one_request_and_no_more_until_it_answers() {
        let mut rng = seeded();
        let algorithm = PeakEwma::new(&candidates(&[1; 2]));
        let mut sim = Sim::new(2);
        sim.latency_us[0] = Some(1_000.0);
        sim.in_flight[0] = 10;
        assert_eq!(algorithm.pick(&sim, &mut rng), Some(1));
        sim.in_flight[1] = 1;
        for _ in 0..50 {
            assert_eq!(algorithm.pick(&sim, &mut rng), Some(0));
            sim.in_flight[0] += 1;
        }
    }
}
