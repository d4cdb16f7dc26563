//! The built-in incidents.

/// An incident's name and its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its name.
    pub name: &'static str,
    /// The file's text.
    pub text: &'static str,
}

macro_rules! entries {
    ($($name:literal),* $(,)?) => {
        const ENTRIES: &[Entry] = &[$(Entry {
            name: $name,
            text: include_str!(concat!("../../incidents/", $name, ".toml")),
        }),*];
    };
}

entries! {
    "hidden-backlog",
    "small-link",
    "workers-and-slots",
    "doubled-load",
    "stale-keep-alive",
    "health-check-storm",
    "out-of-order",
    "throttled-sources",
    "zone-loss",
    "zone-mesh",
}

/// Returns all of them, in the order of the docs.
pub fn entries() -> &'static [Entry] {
    ENTRIES
}

/// Returns the incident of that name.
pub fn find(name: &str) -> Option<Entry> {
    ENTRIES.iter().find(|entry| entry.name == name).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::incident::Incident;

    #[test]
    fn every_incident_can_be_read_and_expects_something() {
        for entry in entries() {
            let incident = Incident::read(entry.name, entry.text).unwrap_or_else(|e| panic!("{e}"));
            assert!(!incident.expect.is_empty(), "{}", entry.name);
        }
        assert!(find("no-such-incident").is_none());
    }
}
