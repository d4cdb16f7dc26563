//! Whether and when a failed request is sent again.

use std::time::Duration;

use crate::error::UploadError;
use crate::plan::Plan;

/// The pause before the first further attempt; it doubles with each.
const PAUSE: Duration = Duration::from_millis(100);
/// The longest pause.
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// Attempts that have failed.
#[derive(Default)]
pub(crate) struct Retries(pub(crate) u32);

/// Waits before another attempt, or yields the error when there shall be none.
pub(crate) async fn again(
    plan: &Plan,
    retries: &mut Retries,
    error: UploadError,
) -> Result<UploadError, UploadError> {
    if !error.may_pass() || retries.0 >= plan.retries_max {
        return Err(error);
    }
    let pause = PAUSE.saturating_mul(1 << retries.0.min(16)).min(PAUSE_MAX);
    retries.0 += 1;
    // Between half of it and all of it, so that parts which failed together come back apart.
    tokio::time::sleep(pause.mul_f64(0.5 + 0.5 * fastrand::f64())).await;
    Ok(error)
}
