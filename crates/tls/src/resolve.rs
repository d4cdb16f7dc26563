//! Selects the certificate for a client.
//!
//! By the server name that it sends (SNI, RFC 6066 section 3): a certificate for exactly that name,
//! else one whose wildcard covers it (one label, RFC 9525 section 6.3), else the first. Among
//! several for one name, the first whose key type the client supports: so an ECDSA and an RSA
//! certificate can be configured side by side.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use rustls::SignatureScheme;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use crate::facts::Facts;

/// Certificates by name. Lookup takes two steps, however many there are.
pub(crate) struct ByName {
    certificates: Vec<Arc<CertifiedKey>>,
    exact: HashMap<String, Vec<usize>>,
    /// By what follows `*.`.
    wildcard: HashMap<String, Vec<usize>>,
}

impl ByName {
    /// At least one, in order of preference.
    pub(crate) fn new(certificates: Vec<(CertifiedKey, Facts)>) -> ByName {
        let mut by_name =
            ByName { certificates: Vec::new(), exact: HashMap::new(), wildcard: HashMap::new() };
        for (index, (certified, facts)) in certificates.into_iter().enumerate() {
            for name in facts.names {
                let (map, name) = match name.strip_prefix("*.") {
                    Some(behind) => (&mut by_name.wildcard, behind.to_owned()),
                    None => (&mut by_name.exact, name),
                };
                map.entry(name).or_default().push(index);
            }
            by_name.certificates.push(Arc::new(certified));
        }
        by_name
    }

    /// Returns the certificate for `name`, for a client that supports what `takes` accepts.
    pub(crate) fn find(
        &self,
        name: Option<&str>,
        takes: impl Fn(&CertifiedKey) -> bool,
    ) -> Option<Arc<CertifiedKey>> {
        let name = name.map(|name| name.trim_end_matches('.').to_ascii_lowercase());
        let exact = name.as_deref().and_then(|name| self.exact.get(name));
        let behind = name.as_deref().and_then(|name| name.split_once('.')).map(|(_, rest)| rest);
        let wildcard = behind.and_then(|behind| self.wildcard.get(behind));
        let named = exact.into_iter().chain(wildcard).flatten();
        let named = named.filter_map(|&index| self.certificates.get(index));
        let all = named.clone().chain(&self.certificates);
        // If the client supports none of them, the handshake fails with the one that fits best.
        let best = all.clone().next();
        all.into_iter().find(|certified| takes(certified)).or(best).cloned()
    }
}

impl ResolvesServerCert for ByName {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let schemes: &[SignatureScheme] = hello.signature_schemes();
        self.find(hello.server_name(), |certified| certified.key.choose_scheme(schemes).is_some())
    }
}

impl fmt::Debug for ByName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} certificates", self.certificates.len())
    }
}
