//! Converts certificates, keys and authorities from file contents to rustls configurations, with
//! readable errors.
//!
//! No file is read and no socket opened here: bytes are arguments. This crate reads no clock
//! either, so the caller checks whether a certificate is valid *today* ([`Facts::validity`]).
//! (rustls itself reads the clock to verify certificates and to rotate its ticket keys.)

mod any_client;
mod any_name;
mod challenges;
mod client;
mod client_authority;
mod facts;
mod identity;
mod kept;
mod member;
mod pem;
mod resolve;
mod server;
mod shared_certificates;
#[cfg(test)]
mod tests;
mod tickets;

use std::fmt;
use std::sync::Arc;

use rustls::crypto::CryptoProvider;

pub use challenges::{
    ACME_TLS_1, Answer, CHALLENGES_PENDING_MAX, Challenges, HTTP_01_PREFIX, Pending,
};
pub use client::{client, own_client, to_peer};
pub use client_authority::ClientAuthority;
pub use facts::{Facts, KeyKind, Validity, certificate, date, facts};
pub use identity::{certificate_names, common_name, identity};
pub use kept::{Kept, listener_alpn, service_alpn};
pub use member::{MemberTls, member};
pub use pem::authorities;
pub use rustls;
pub use server::{cipher_suites, server, server_asking_any_client, server_with_tickets};
pub use shared_certificates::{Issued, SharedCertificates, WantedCertificate, certificate_id};
pub use tickets::{SharedTickets, TicketKey};

/// An error in a certificate, a key or the like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// Which of the files.
    pub about: Part,
    /// The error, without the file's name.
    pub message: String,
    /// The remedy, if it is clear.
    pub help: Option<String>,
}

/// A kind of file that TLS needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// A certificate chain.
    Chain,
    /// Its private key.
    Key,
    /// A stapled OCSP response.
    Ocsp,
    /// Authorities.
    Ca,
}

impl Mistake {
    fn new(about: Part, message: impl Into<String>) -> Mistake {
        Mistake { about, message: message.into(), help: None }
    }

    fn help(mut self, text: impl Into<String>) -> Mistake {
        self.help = Some(text.into());
        self
    }
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.help {
            Some(help) => write!(f, "; {help}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Mistake {}

/// Returns the cryptography provider that everything here uses.
fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::aws_lc_rs::default_provider())
}

/// Collects the entropy that this process's random numbers need, which takes some 40 ms of CPU
/// time: aws-lc gathers jitter of the CPU when the first random number is asked for, and all other
/// threads that ask for one wait meanwhile. Every later call is short.
pub fn collect_entropy() {
    // A machine without random numbers fails where they are needed, with a message.
    let _ = provider().secure_random.fill(&mut [0]);
}
