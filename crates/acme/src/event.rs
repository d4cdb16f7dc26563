//! What the manager reports.

use std::fmt;

use crate::Stored;

/// Something that a listener, a log or a person needs to know. Contains no secret except the key
/// within a [`Stored`], which `Debug` does not show.
#[derive(Clone, Debug)]
pub enum Event {
    /// A certificate is to be used from now on.
    Certificate(Update),
    /// An attempt failed. The certificate in use stays in use.
    Failed(Failure),
    /// A certificate that was received from another member of the fleet cannot be used. The one in use stays in use.
    NotUsed {
        /// The certificate's names.
        names: Vec<String>,
        /// What is wrong with it: one line.
        why: String,
    },
    /// A certificate that was received from another member of the fleet is in use, but could not be stored.
    NotStored {
        /// The certificate's names.
        names: Vec<String>,
        /// Why: one line.
        why: String,
    },
    /// A file of the state directory is damaged, and is ignored; one line.
    Ignored(String),
}

/// A certificate that is to be used.
#[derive(Clone, Debug)]
pub struct Update {
    /// Its place in the settings' list.
    pub index: usize,
    /// The certificate.
    pub stored: Stored,
    /// Where it comes from.
    pub source: Source,
}

/// Where a certificate comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// It was in the state directory when the manager started.
    Stored,
    /// The authority has just issued it.
    Issued,
    /// Another process with the same state directory has stored it.
    AnotherProcess,
    /// Another member of the fleet has it.
    AnotherMember,
}

/// A failed attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The certificate's place in the settings' list.
    pub index: usize,
    /// The certificate's names.
    pub names: Vec<String>,
    /// What failed: one line, without secrets.
    pub what: String,
    /// The names that could not be validated, each with the authority's reason.
    pub refused: Vec<(String, String)>,
    /// When it is tried again, in seconds since 1970-01-01 UTC.
    pub retry_at_s: i64,
    /// The number of attempts that have failed since the last success.
    pub failures: u32,
    /// The last second in which the certificate in use is valid, from 1970-01-01 UTC; `None`: none
    /// has been issued.
    pub valid_until_s: Option<i64>,
}

/// The state of one certificate, for status pages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// Its names.
    pub names: Vec<String>,
    /// The last second in which it is valid; `None`: it has not been issued.
    pub valid_until_s: Option<i64>,
    /// When it is renewed, as far as is known now.
    pub renew_at_s: Option<i64>,
    /// Whether the authority has chosen that moment (RFC 9773).
    pub renewal_by_authority: bool,
    /// The last failure, unless an attempt has succeeded since.
    pub failure: Option<Failure>,
}

/// One line.
impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no certificate for {}: {}", self.names.join(", "), self.what)?;
        for (name, why) in &self.refused {
            write!(f, "; {name}: {why}")?;
        }
        Ok(())
    }
}
