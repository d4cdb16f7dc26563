//! No client can cause a working server to be ejected: 23 kinds of hostile clients, in every pairing of
//! HTTP/1.1 and HTTP/2. `PROVE=long`: ten times the good requests, for twice as long.

#[path = "scenarios/eject.rs"]
mod scenario;

use std::time::Duration;

use scenario::{Http, Load, nobody_can_eject};

fn load() -> Load {
    if e2e::is_long() {
        Load { good_per_s: 200, time: Duration::from_secs(20) }
    } else {
        Load { good_per_s: 20, time: Duration::from_secs(10) }
    }
}

#[test]
#[ignore = "ten seconds of attacks: make prove"]
fn nobody_can_eject_http1_to_http1() {
    nobody_can_eject("prove-eject-11", Http::One, Http::One, load());
}

#[test]
#[ignore = "ten seconds of attacks: make prove"]
fn nobody_can_eject_http1_to_http2() {
    nobody_can_eject("prove-eject-12", Http::One, Http::Two, load());
}

#[test]
#[ignore = "ten seconds of attacks: make prove"]
fn nobody_can_eject_http2_to_http1() {
    nobody_can_eject("prove-eject-21", Http::Two, Http::One, load());
}

#[test]
#[ignore = "ten seconds of attacks: make prove"]
fn nobody_can_eject_http2_to_http2() {
    nobody_can_eject("prove-eject-22", Http::Two, Http::Two, load());
}
