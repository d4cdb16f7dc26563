//! That others do not have to wait for clients that are slow on purpose takes the machine for itself:
//! `make prove`.

mod slow;

use std::time::Duration;

/// Beyond three times what it is without them: the attackers take CPU of the same machine.
const ADDED_MAX: Duration = Duration::from_millis(250);

#[test]
#[ignore = "takes the machine for itself: make prove"]
fn slow_clients_keep_nobody_waiting() {
    let Some(harms) = slow::attack("prove-slow") else { return };
    for slow::Harm { attack, quiet, busy, .. } in &harms {
        let max = quiet.p99 * 3 + ADDED_MAX;
        assert!(busy.p99 <= max, "{}: others' p99 is {:?}, above {max:?}", attack.name, busy.p99);
    }
}
