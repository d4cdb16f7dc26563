//! Fleets that share health checks, in virtual time: membership, exchange, plan and tallies of each member,
//! a network that loses, delays and doubles datagrams, servers that die and return, members that crash, pause and
//! lie. `judge` says what must hold.
//!
//! Each schedule follows from a seed, which a failure prints. `FLEET_SEED=7 FLEET_SCHEDULES=1` repeats one; with
//! `FLEET_TRACE=1`, it prints what happens. Datagrams are not sealed here; `crates/fleet/tests/sim` covers that, and
//! membership alone.
//!
//! The way to a server loses nothing: TCP repeats what is lost, and what that costs is up to the network. Single
//! runs fail by chance in some schedules, but no two in a row at one member.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test code")]

mod judge;
mod plot;
mod process;
mod world;

use judge::SECOND;
use plot::Size;
use world::{Figures, ZONES};

/// A member of a small fleet sends less than this in a second of a calm stretch.
const CALM_BYTES_MAX: f64 = 10_000.0;

fn variable(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |value| value.parse().unwrap())
}

fn schedules(size: Size, default: u64) {
    let (first, count) = (variable("FLEET_SEED", 1), variable("FLEET_SCHEDULES", default));
    let mut all = Figures::default();
    let mut failed = 0;
    for seed in first..first + count {
        let (nature, figures, failure) = plot::play(seed, size);
        all.add(&figures);
        if let Some(what) = failure {
            failed += 1;
            eprintln!("FLEET_SEED={seed} FLEET_SCHEDULES=1: {what} ({nature:?})");
        }
        if (seed + 1 - first).is_multiple_of(500) {
            eprintln!("{} schedules, {failed} failed", seed + 1 - first);
        }
    }
    eprintln!("{count} schedules of {} members from seed {first}, {failed} failed", size.members);
    show(&all);
    assert_eq!(failed, 0, "see above for the seeds");
    assert!(all.calm_bytes_most < CALM_BYTES_MAX, "{} B/s", all.calm_bytes_most);
}

fn show(figures: &Figures) {
    let seconds = |time: u64| time as f64 / SECOND as f64;
    eprintln!(
        "{} events, {} probes, {} changes of health; in calm schedules down after at most {:.2} s, up after {:.2} s; \
         in calm stretches {:.0} B/s sent by a member, at most {:.0}",
        figures.events,
        figures.runs,
        figures.changes,
        seconds(figures.slowest_down),
        seconds(figures.slowest_up),
        figures.calm_bytes as f64 / seconds(figures.calm_time.max(1)),
        figures.calm_bytes_most,
    );
}

#[test]
fn every_schedule_keeps_health_and_load_in_bounds() {
    schedules(Size { members: 8 * ZONES, servers: 4 * ZONES }, 30);
}

#[test]
#[ignore = "10,000 schedules: 20 minutes in a release build"]
fn prove_every_schedule_keeps_health_and_load_in_bounds() {
    schedules(Size { members: 8 * ZONES, servers: 4 * ZONES }, 10_000);
}

fn large(size: Size, default: u64, seconds: [u64; 2]) {
    let first = variable("FLEET_SEED", 1);
    for seed in first..first + variable("FLEET_SCHEDULES", default) {
        let (figures, failure) = plot::play_large(seed, size, seconds);
        show(&figures);
        assert_eq!(failure, None, "FLEET_SEED={seed} FLEET_SCHEDULES=1");
    }
}

#[test]
fn two_hundred_members_share_the_checks_of_two_hundred_servers() {
    large(Size { members: 200, servers: 200 }, 1, [3, 9]);
}

#[test]
#[ignore = "20 fleets of 1,000 members: more than two hours in a release build"]
fn prove_a_thousand_members_share_their_checks() {
    let servers = variable("FLEET_SERVERS", 200) as usize;
    large(Size { members: variable("FLEET_MEMBERS", 1_000) as usize, servers }, 20, [32, 10]);
}
