//! Tests of belief and tally together: one member against scripted probers, and a whole zone. And of
//! results that wait.

mod bound;
mod waiting;
mod zone;

use std::time::Duration;

use model::{Check, CheckKind};

use crate::verdict::ServerLoad;

const INTERVAL: Duration = Duration::from_secs(2);
const TIMEOUT: Duration = Duration::from_millis(500);
const CALM: ServerLoad = ServerLoad { at_limit: false, answered_since_start: false };

fn check(rise: u32, fall: u32) -> Check {
    Check {
        kind: CheckKind::Tcp,
        port: None,
        clear_text: false,
        http: None,
        interval: INTERVAL,
        timeout: TIMEOUT,
        rise,
        fall,
    }
}

/// Returns the time in which a dead server must be down at every member.
fn bound(fall: u32) -> Duration {
    INTERVAL.mul_f64(1.1) * fall + TIMEOUT + Duration::from_secs(1)
}
