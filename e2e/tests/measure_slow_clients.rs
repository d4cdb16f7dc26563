//! That others do not have to wait for clients that are slow on purpose takes the machine for itself:
//! `make measure`.

#[path = "scenarios/slow_clients.rs"]
mod scenario;

use std::time::Duration;

use e2e::Promises;
use scenario::{Attacked, Harm};

/// Beyond three times what it is without them: the attackers take CPU of the same machine.
const ADDED_MAX: Duration = Duration::from_millis(100);

#[test]
#[ignore = "takes the machine for itself: make measure"]
fn slow_clients_keep_nobody_waiting() {
    let Some(Attacked { quiet, harms }) = scenario::attack("measure-slow") else { return };
    let mut promises = Promises::of("measure_slow_clients");
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    for Harm { attack, failed, busy, .. } in &harms {
        let name = attack.name;
        promises.at_most(&format!("{name}: failed requests of others"), *failed as f64, 0.0, "");
        // Who waits asks less often: 0.75 of the quiet requests is the fewest that was seen.
        let share = busy.requests as f64 / quiet.requests as f64;
        promises.at_least(&format!("{name}: requests of others, of those without"), share, 0.5, "");
        let most = quiet.p99 * 3 + ADDED_MAX;
        promises.at_most(&format!("{name}: p99 of others"), ms(busy.p99), ms(most), "ms");
    }
    promises.hold();
}
