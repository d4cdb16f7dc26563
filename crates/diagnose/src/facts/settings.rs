//! Kernel settings (sysctl) of a network namespace, as text from /proc/sys.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::Known;

/// Settings by dotted name (`net.ipv4.tcp_rmem`), values as the kernel prints them, without the
/// newline at the end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Settings {
    /// What could be read.
    pub values: BTreeMap<String, String>,
    /// Why others could not, though they exist.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub unreadable: BTreeMap<String, String>,
    /// What was looked for by name and does not exist in this namespace.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub absent: BTreeSet<String>,
    /// Whether every file below /proc/sys/net was tried, so that a name in none of these does not
    /// exist in this namespace.
    pub complete: bool,
}

/// What is known of one setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Setting<'a> {
    /// Its value.
    Is(&'a str),
    /// This kernel, or this namespace, has no such setting.
    Absent,
    /// Not known, and why.
    Unknown(&'a str),
}

impl Settings {
    /// What is known of the setting `name`.
    pub fn get(&self, name: &str) -> Setting<'_> {
        if let Some(value) = self.values.get(name) {
            return Setting::Is(value);
        }
        if let Some(reason) = self.unreadable.get(name) {
            return Setting::Unknown(reason);
        }
        if self.complete || self.absent.contains(name) {
            Setting::Absent
        } else {
            Setting::Unknown("not collected")
        }
    }

    /// The numbers of a setting, in order; unknown, with a reason, when it
    /// does not exist, could not be read, or is no list of whole numbers.
    pub fn numbers(&self, name: &str) -> Known<Vec<u64>> {
        match self.get(name) {
            Setting::Is(value) => {
                let numbers: Result<Vec<u64>, _> =
                    value.split_ascii_whitespace().map(str::parse).collect();
                match numbers {
                    Ok(numbers) if !numbers.is_empty() => Known::Is(numbers),
                    _ => Known::unknown(format!("it is `{value}`, not a number")),
                }
            }
            Setting::Absent => Known::unknown("does not exist in this namespace".to_owned()),
            Setting::Unknown(reason) => Known::unknown(reason.to_owned()),
        }
    }

    /// The first (mostly only) number of a setting.
    pub fn number(&self, name: &str) -> Known<u64> {
        self.numbers(name).map(|numbers| numbers.first().copied().unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::{Setting, Settings};

    #[test]
    fn what_does_not_exist_differs_from_what_was_not_looked_at() {
        let mut settings = Settings::default();
        settings.values.insert("net.ipv4.tcp_rmem".to_owned(), "4096\t131072\t6291456".to_owned());
        settings.unreadable.insert("net.ipv4.tcp_fastopen_key".to_owned(), "no right".to_owned());
        assert_eq!(settings.get("net.ipv4.tcp_sack"), Setting::Unknown("not collected"));
        settings.absent.insert("net.ipv4.tcp_tw_recycle".to_owned());
        assert_eq!(settings.get("net.ipv4.tcp_tw_recycle"), Setting::Absent);
        settings.complete = true;
        assert_eq!(settings.get("net.ipv4.tcp_sack"), Setting::Absent);
        assert_eq!(settings.get("net.ipv4.tcp_fastopen_key"), Setting::Unknown("no right"));
        let numbers = settings.numbers("net.ipv4.tcp_rmem");
        assert_eq!(numbers.get(), Some(&vec![4096, 131_072, 6_291_456]));
        assert_eq!(settings.number("net.ipv4.tcp_rmem").get(), Some(&4096));
        let reason = settings.number("net.ipv4.tcp_sack");
        assert_eq!(reason.as_result(), Err("does not exist in this namespace"));
    }
}
