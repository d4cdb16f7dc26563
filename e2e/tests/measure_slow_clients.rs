//! That others do not have to wait for clients that are slow on purpose takes the machine for itself:
//! `make measure`.

#[path = "scenarios/slow_clients.rs"]
mod scenario;

use std::time::Duration;

use scenario::{Attacked, Harm};

/// Beyond three times what it is without them: the attackers take CPU of the same machine.
const ADDED_MAX: Duration = Duration::from_millis(100);

#[test]
#[ignore = "takes the machine for itself: make measure"]
fn slow_clients_keep_nobody_waiting() {
    let Some(Attacked { quiet, harms }) = scenario::attack("measure-slow") else { return };
    for Harm { attack, failed, busy, .. } in &harms {
        let name = attack.name;
        assert_eq!(*failed, 0, "{name}: requests of others failed");
        // Who waits asks less often: 0.75 of the quiet requests is the fewest that was seen.
        assert!(busy.requests * 2 > quiet.requests, "{name}: {busy:?}, without it {quiet:?}");
        let max = quiet.p99 * 3 + ADDED_MAX;
        assert!(busy.p99 <= max, "{name}: others' p99 is {:?}, above {max:?}", busy.p99);
    }
}
