//! Selects the certificate for a client.
//!
//! By the server name that it sends (SNI, RFC 6066 section 3): a certificate for exactly that name,
//! else one whose wildcard covers it (one label, RFC 9525 section 6.3), else as the listener says. Among
//! several for one name, the first whose key type the client supports: so an ECDSA and an RSA
//! certificate can be configured side by side.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use model::UnknownNames;
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
    /// For names that none has, in order of preference.
    others: Vec<usize>,
}

impl ByName {
    /// At least one, in order of preference.
    pub(crate) fn new(
        certificates: Vec<(CertifiedKey, Facts)>,
        unknown_names: &UnknownNames,
    ) -> ByName {
        let mut by_name = ByName {
            certificates: Vec::new(),
            exact: HashMap::new(),
            wildcard: HashMap::new(),
            others: Vec::new(),
        };
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
        by_name.others = match unknown_names {
            UnknownNames::First => (0..by_name.certificates.len()).collect(),
            UnknownNames::As(name) => by_name.named(name).collect(),
            UnknownNames::Refuse => Vec::new(),
        };
        by_name
    }

    /// Returns the certificates for a name in lower case, in order of preference.
    fn named(&self, name: &str) -> impl Iterator<Item = usize> {
        let exact = self.exact.get(name);
        let parent = name.split_once('.').map(|(_, parent)| parent);
        let wildcard = parent.and_then(|parent| self.wildcard.get(parent));
        exact.into_iter().chain(wildcard).flatten().copied()
    }

    /// Returns the certificate for `name`, for a client that supports what `takes` accepts.
    pub(crate) fn find(
        &self,
        name: Option<&str>,
        takes: impl Fn(&CertifiedKey) -> bool,
    ) -> Option<Arc<CertifiedKey>> {
        let name = name.map(|name| name.trim_end_matches('.').to_ascii_lowercase());
        let candidates = || {
            let named = name.as_deref().into_iter().flat_map(|name| self.named(name));
            let all = named.chain(self.others.iter().copied());
            all.filter_map(|index| self.certificates.get(index))
        };
        let fitting = candidates().find(|certified| takes(certified));
        // If the client supports none of them, the handshake fails with the one that fits best.
        fitting.or_else(|| candidates().next()).cloned()
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
