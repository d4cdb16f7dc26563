//! Durations in flags, as in the configuration.

use std::time::Duration;

use model::units;

/// A duration longer than 0.
pub(super) fn duration_above_zero(text: &str) -> Result<Duration, String> {
    match duration(text) {
        Ok(time) if time.is_zero() => Err("longer than 0".to_owned()),
        read => read,
    }
}

/// A duration as in the configuration: `300ms`, `5s`, `2m`, `1h`.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    units::duration(text).map_err(|error| error.to_string())
}
