//! Changes to the fields of requests and responses.

/// Changes to the fields of a message. Names are in lower case.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeaderChanges {
    /// Replaces all fields of the name.
    pub set: Vec<(String, String)>,
    /// Adds a field.
    pub add: Vec<(String, String)>,
    /// Removes all fields of the name.
    pub remove: Vec<String>,
}

impl HeaderChanges {
    /// Returns whether nothing changes.
    pub fn is_empty(&self) -> bool {
        self.set.is_empty() && self.add.is_empty() && self.remove.is_empty()
    }
}
