//! Is a value good? What is the same for all settings; the verdicts themselves stand below.

mod limits;
mod special;
mod usual;

use serde::{Deserialize, Serialize};

pub(in crate::sysctl) use limits::*;
pub(in crate::sysctl) use special::*;
pub(in crate::sysctl) use usual::*;

use super::{Machine, Setting};
use crate::words;

model::words! {
    /// What a value does.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Effect {
        /// Makes something worse, or dangerous.
        Harms = "harms",
        /// Probably a typo.
        Slip = "slip",
        /// Does nothing: the setting is gone, or no longer looked at.
        Dead = "dead",
        /// Its worth depends on what is not known here; the reason says on what.
        Doubtful = "doubtful",
        /// Makes something better for a server or a balancer.
        Helps = "helps",
        /// Neither.
        Fine = "fine",
        /// Not a network setting, or one that is not known here.
        Unknown = "unknown",
    }
}
crate::word::serde_as_word!(Effect);

/// What a value does, and why, in one sentence or a few.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Judgement {
    /// What it does.
    pub effect: Effect,
    /// Why.
    pub why: String,
    /// What was probably meant instead, where a slip is suspected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub meant: Option<String>,
}

impl Judgement {
    pub(in crate::sysctl) fn new(effect: Effect, why: impl Into<String>) -> Judgement {
        Judgement { effect, why: why.into(), meant: None }
    }
}

/// A value to be judged.
pub(in crate::sysctl) struct Value<'a> {
    /// As written, with single spaces.
    pub(in crate::sysctl) text: &'a str,
    /// Its numbers; empty when any part of it is none.
    pub(in crate::sysctl) numbers: Vec<u64>,
    /// The kernel's default as numbers; empty when it is not known.
    pub(in crate::sysctl) default: Vec<u64>,
    pub(in crate::sysctl) machine: &'a Machine,
}

impl Value<'_> {
    pub(in crate::sysctl) fn first(&self) -> u64 {
        self.numbers.first().copied().unwrap_or_default()
    }
}

/// What a value of `setting` does on `machine`.
pub(super) fn judge(setting: &Setting, text: &str, machine: &Machine) -> Judgement {
    let text = text.split_ascii_whitespace().collect::<Vec<_>>().join(" ");
    if let Some((since, why)) = setting.gone
        && machine.kernel >= since
    {
        let super::Kernel(major, minor) = since;
        return Judgement::new(Effect::Dead, format!("Removed in Linux {major}.{minor}: {why}."));
    }
    let numbers_of = |text: &str| -> Vec<u64> {
        let all: Result<Vec<u64>, _> = text.split(' ').map(str::parse).collect();
        all.unwrap_or_default()
    };
    let default = (setting.default)(machine);
    let numbers = numbers_of(&text);
    let count = default.as_deref().map_or(1, |default| default.split(' ').count());
    if !matches!(setting.unit, super::Unit::Word | super::Unit::Switch) && numbers.len() != count {
        let wants = words::plural(count as u64, "number");
        return Judgement::new(
            Effect::Harms,
            format!("It takes {wants}; the kernel refuses `{text}`."),
        );
    }
    if default.as_deref() == Some(&text) {
        return Judgement::new(Effect::Fine, "The kernel's default.");
    }
    let default = default.as_deref().map(numbers_of).unwrap_or_default();
    let value = Value { text: &text, numbers, default, machine };
    if setting.unit == super::Unit::Bytes
        && let Some((mut slip, meant)) = slip(&value)
    {
        let rest = (setting.judge)(&Value { numbers: meant, ..value });
        if rest.effect == Effect::Harms {
            slip.why.push_str(" Even so: ");
            slip.why.push_str(&rest.why);
        }
        return slip;
    }
    (setting.judge)(&value)
}

/// A zero too many: ten times a number that people write, in a place where it is not one itself.
/// With the numbers that were probably meant.
fn slip(value: &Value<'_>) -> Option<(Judgement, Vec<u64>)> {
    /// Below this a factor of ten is often meant.
    const SIZE_MIN: u64 = 16_384;
    /// What old kernels had as the default of `tcp_rmem`, and most lists on the web copy.
    const OLD_DEFAULT: u64 = 87_380;
    let is_written =
        |number: u64| number >= SIZE_MIN && (number.is_power_of_two() || number == OLD_DEFAULT);
    let at = value.numbers.iter().position(|&number| {
        number.is_multiple_of(10) && is_written(number / 10) && !number.is_power_of_two()
    })?;
    let mut meant = value.numbers.clone();
    meant[at] /= 10;
    let (found, instead) = (value.numbers[at], value.numbers[at] / 10);
    let known = if instead == OLD_DEFAULT {
        "the default of old kernels".to_owned()
    } else {
        format!("{}, a power of two", words::bytes(instead))
    };
    let words: Vec<String> = meant.iter().map(u64::to_string).collect();
    let judgement = Judgement {
        effect: Effect::Slip,
        why: format!(
            "{found} looks like a zero too many: {instead} is {known}. Is that value intended?"
        ),
        meant: Some(words.join(" ")),
    };
    Some((judgement, meant))
}
