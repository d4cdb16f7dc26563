//! Verdicts for kinds of settings: switches, limits, what hardly matters.

use super::{Effect, Judgement, Value};
use crate::words;

/// 1 is right, 0 harms.
pub(in crate::sysctl) fn on(value: &Value<'_>) -> Judgement {
    if value.text == "0" {
        return Judgement::new(
            Effect::Harms,
            "It should be on; its page describes what is lost otherwise.",
        );
    }
    Judgement::new(Effect::Fine, "On.")
}

/// 0 is right, anything else harms.
pub(in crate::sysctl) fn off(value: &Value<'_>) -> Judgement {
    if value.text == "0" {
        return Judgement::new(Effect::Fine, "Off, as it should be.");
    }
    Judgement::new(Effect::Harms, "It should be off; its page describes what it breaks.")
}

/// More room than the default helps where bursts come; less harms.
pub(in crate::sysctl) fn more(value: &Value<'_>) -> Judgement {
    match value.default.first() {
        Some(&default) if value.first() < default => Judgement::new(
            Effect::Harms,
            format!("Less than the default of {}.", words::thousands(default)),
        ),
        Some(_) => Judgement::new(Effect::Helps, "Absorbs larger bursts than the default."),
        None => Judgement::new(Effect::Doubtful, "Compare it with the default of this machine."),
    }
}

/// A taste within wide limits: neither here nor there.
pub(in crate::sysctl) fn any(_: &Value<'_>) -> Judgement {
    Judgement::new(Effect::Fine, "Differs from the default, with no clear benefit or harm.")
}

/// Worth something only for what its page names.
pub(in crate::sysctl) fn depends(_: &Value<'_>) -> Judgement {
    Judgement::new(
        Effect::Doubtful,
        "Useful only in the cases that its page describes; measure the effect.",
    )
}

/// Nothing looks at it, though it can still be set.
pub(in crate::sysctl) fn unused(_: &Value<'_>) -> Judgement {
    Judgement::new(Effect::Dead, "The kernel accepts it, but ignores it.")
}
