//! Certificates that the processes of a fleet share: which they are, and who orders them.

use std::sync::Arc;

/// Identifies a certificate: a digest of the URL of the authority's directory and of the names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CertificateId(pub [u8; 16]);

/// One of the certificates that were issued for a [`CertificateId`]. Versions are ordered by their validity, as the
/// authority set it; the clocks of members play no part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CertificateVersion {
    /// First second in which it is valid, from 1970-01-01 UTC.
    pub not_before_s: i64,
    /// Last second, likewise.
    pub not_after_s: i64,
    /// A digest of its text.
    pub digest: [u8; 16],
}

/// Who orders a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CertificateOwner {
    /// This process.
    Own,
    /// The member of this name.
    Other(Arc<str>),
    /// That is not known yet.
    Unknown,
}
