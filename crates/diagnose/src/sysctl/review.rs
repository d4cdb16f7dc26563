//! A review of the settings in use, and of those that a file sets.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::judge::judge;
use super::{Effect, Judgement, Line, Machine, Setting, lines};
use crate::facts::{Settings, SysctlFile};

/// A line of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetBy {
    /// The file.
    pub path: String,
    /// The line, from 1.
    pub line: usize,
}

/// What is said about one setting.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reviewed {
    /// Its name, with dots.
    pub name: String,
    /// Its value, with single spaces.
    pub value: String,
    /// The value with its unit: `8,388,608 pages = 32 GiB`.
    pub spelt: String,
    /// The default of this kernel; `None`: not known, or computed from what is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
    /// What set it; `None`: no file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub set_by: Option<SetBy>,
    /// What it does.
    #[serde(flatten)]
    pub judgement: Judgement,
}

/// Reviews a file's text: every line that sets something, in order.
pub fn of_file(path: &str, text: &str, machine: &Machine) -> Vec<Reviewed> {
    let all = lines(text);
    all.iter()
        .enumerate()
        .map(|(at, line)| {
            let set_by = SetBy { path: path.to_owned(), line: line.number };
            let mut reviewed = review(&line.name, &line.value, Some(set_by), machine);
            if let Some(later) = all[at + 1..].iter().find(|later| later.name == line.name) {
                reviewed.judgement = overwritten(later);
            }
            reviewed
        })
        .collect()
}

/// Which of the settings in use are reviewed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// Every one that is known here or that a file sets.
    All,
    /// Those that differ from their default, and those that a file sets.
    Changed,
}

/// Reviews the settings in use, in order of name.
pub fn in_use(
    settings: &Settings,
    files: &[SysctlFile],
    machine: &Machine,
    which: Which,
) -> Vec<Reviewed> {
    let mut set_by: BTreeMap<String, SetBy> = BTreeMap::new();
    for file in files {
        for line in lines(&file.text) {
            set_by.insert(line.name, SetBy { path: file.path.clone(), line: line.number });
        }
    }
    settings
        .values
        .iter()
        .map(|(name, value)| (name, value, set_by.get(name)))
        .filter(|(name, _, set_by)| set_by.is_some() || Setting::by_name(name).is_some())
        .map(|(name, value, set_by)| review(name, value, set_by.cloned(), machine))
        .filter(|one| which == Which::All || one.set_by.is_some() || differs(one, machine))
        .collect()
}

/// Whether a value is not the default, as far as the default is known. Those computed from the
/// memory are only roughly known.
fn differs(one: &Reviewed, machine: &Machine) -> bool {
    const NEAR: f64 = 0.15;
    let Some(default) = Setting::by_name(&one.name).and_then(|one| one.default_on(machine)) else {
        return matches!(one.judgement.effect, Effect::Harms | Effect::Slip);
    };
    let near = |(one, other): (&str, &str)| match (one.parse::<f64>(), other.parse::<f64>()) {
        (Ok(one), Ok(other)) if one > 10_000.0 => (one - other).abs() <= NEAR * other,
        _ => one == other,
    };
    let (words, defaults) = (one.value.split(' '), default.split(' '));
    words.clone().count() != defaults.clone().count() || !words.zip(defaults).all(near)
}

fn review(name: &str, value: &str, set_by: Option<SetBy>, machine: &Machine) -> Reviewed {
    let value = value.split_ascii_whitespace().collect::<Vec<_>>().join(" ");
    let Some(setting) = Setting::by_name(name) else {
        return Reviewed {
            name: name.to_owned(),
            spelt: value.clone(),
            judgement: unknown(name, &value),
            value,
            default: None,
            set_by,
        };
    };
    let judgement = if value.is_empty() && setting.default_on(machine).as_deref() != Some("") {
        Judgement::new(Effect::Harms, "The line sets nothing: it has no value.")
    } else {
        judge(setting, &value, machine)
    };
    Reviewed {
        name: name.to_owned(),
        spelt: setting.unit.spell(&value, machine.page_bytes),
        value,
        default: setting.default_on(machine),
        set_by,
        judgement,
    }
}

fn unknown(name: &str, value: &str) -> Judgement {
    if value.is_empty() {
        return Judgement::new(Effect::Harms, "This is no line of settings: `name = value`.");
    }
    if let Some(meant) = Setting::nearest(name) {
        return Judgement {
            effect: Effect::Slip,
            why: format!("There is no {name}; {meant} was probably meant."),
            meant: Some(meant.to_owned()),
        };
    }
    let why = if name.starts_with("net.") {
        "Not known here, so not judged."
    } else {
        "Not a network setting, so not judged."
    };
    Judgement::new(Effect::Unknown, why)
}

fn overwritten(later: &Line) -> Judgement {
    let why = format!("Line {} sets it again, and that one counts.", later.number);
    Judgement::new(Effect::Dead, why)
}

#[cfg(test)]
mod tests;
