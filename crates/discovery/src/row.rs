//! What an answer contains: rows, and examples of refused entries.

use std::collections::HashSet;
use std::sync::Arc;

use model::{ServerSpec, ServerTarget};

use model::visible;

/// The maximum number of servers that a source may list for one service. An answer with more is an error as a
/// whole: a part of it would be an arbitrary choice.
pub const ROWS_MAX: usize = 16_384;

/// The maximum number of refused entries that an answer keeps as examples.
pub const REFUSED_MAX: usize = 16;

/// The maximum length of the name of an entry.
const OBJECT_BYTES_MAX: usize = 256;

/// The maximum length of the reason why an entry or an answer was refused.
const WHY_BYTES_MAX: usize = 512;

model::words! {
    /// Whether a server should receive requests, according to the source.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Readiness {
        /// It should.
        Ready = "ready",
        /// An operator has set it to maintenance.
        Maintenance = "maintenance",
        /// A check of the source fails.
        Critical = "critical",
    }
}

/// A server that the source lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The server.
    pub server: ServerSpec,
    /// Whether it should receive requests.
    pub readiness: Readiness,
    /// The entry's name in the source, such as `node1/web-1` or `targets/a.json`. Bounded and escaped.
    pub object: Arc<str>,
}

/// An entry that is not a server by Weir's rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The entry's name in the source. Bounded and escaped.
    pub object: String,
    /// The reason, in one line. Bounded and escaped.
    pub why: String,
}

/// The servers in an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// Every server once, in the order of the answer; at most [`ROWS_MAX`].
    pub rows: Vec<Row>,
    /// The first refused entries, at most [`REFUSED_MAX`].
    pub refused: Vec<Refused>,
    /// How many entries were refused.
    pub refused_count: u64,
}

impl Answer {
    /// Adds the servers of another answer, of the same service. A server that is there already counts as it is.
    ///
    /// # Errors
    /// They are more than [`ROWS_MAX`] together.
    pub fn add(&mut self, other: Answer) -> Result<(), String> {
        let mut known: HashSet<ServerTarget> =
            self.rows.iter().map(|row| row.server.target.clone()).collect();
        self.rows
            .extend(other.rows.into_iter().filter(|row| known.insert(row.server.target.clone())));
        self.refused.extend(other.refused);
        self.refused.truncate(REFUSED_MAX);
        self.refused_count += other.refused_count;
        check_count(self.rows.len())
    }

    /// Records a refused entry; both texts are bounded and escaped here.
    pub fn refuse(&mut self, object: &str, why: &str) {
        self.refused_count += 1;
        Refused::keep(&mut self.refused, object, why);
    }
}

impl Refused {
    /// Adds a refused entry to `examples`, unless they are [`REFUSED_MAX`]; both texts are bounded and escaped here.
    pub(crate) fn keep(examples: &mut Vec<Refused>, object: &str, why: &str) {
        if examples.len() < REFUSED_MAX {
            examples.push(Refused { object: object_name(object), why: reason(why) });
        }
    }
}

/// Returns an entry's name, bounded and escaped.
pub(crate) fn object_name(text: &str) -> String {
    visible(text, OBJECT_BYTES_MAX)
}

/// Returns a reason, bounded and escaped.
pub(crate) fn reason(text: &str) -> String {
    visible(text, WHY_BYTES_MAX)
}

/// Checks the number of entries in an answer.
///
/// # Errors
/// There are more than [`ROWS_MAX`].
pub(crate) fn check_count(entries: usize) -> Result<(), String> {
    if entries > ROWS_MAX {
        return Err(format!("{entries} servers; a service has at most {ROWS_MAX}"));
    }
    Ok(())
}
