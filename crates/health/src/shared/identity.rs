//! The name of a probe among the members of a fleet: a keyed hash of everything that could change
//! its result.
//!
//! HMAC-SHA-256 (RFC 2104), truncated to 128 bits, over an unambiguous encoding: every field has a
//! tag or a length, in a fixed order. Equal in all processes that have the key and the same
//! `VERSION`.
//!
//! Two probes are confused only if their hashes collide. By chance that has a probability of n² / 2¹²⁹:
//! about 10⁻³⁰ for 20,000 probes. On purpose it takes about 2⁶⁴ hashes, and only those who have the key can
//! compute them; those who merely register servers, and so choose addresses and names, cannot. A
//! member of the fleet can report false results without any collision.
//!
//! The key also protects secrets in fields: without it, a hash would let its reader try passwords.

use std::collections::HashMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::hmac::{Context, HMAC_SHA256, Key};
use model::{
    Address, BodyExpectation, Certificate, CheckKind, Material, ProbeIdentity, ProbeSpec, ProbeTls,
    ServiceTls,
};

/// Starts every message. Changes with the encoding, so that members with different encodings never
/// share a probe.
const VERSION: &[u8] = b"weir probe 1";

/// The hash of a [`ProbeIdentity`], the same at all members of a fleet.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProbeHash(pub [u8; 16]);

impl ProbeHash {
    /// Returns a part of it, for the scores of an assignment.
    pub(crate) fn low(self) -> u64 {
        u128::from_le_bytes(self.0) as u64
    }
}

/// Writes it as hexadecimal digits.
impl fmt::Debug for ProbeHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

/// Computes the hashes of probes under a fleet's key.
pub struct ProbeHasher {
    key: Key,
    /// The digests of files by the address of their contents, which cannot be reused while they are
    /// held here. Thousands of probes share a few files of authorities, of 200 KB each.
    files: HashMap<usize, (Arc<[u8]>, [u8; 32])>,
}

impl ProbeHasher {
    /// Returns a hasher with this key, which all members of the fleet must have; derive it from the
    /// fleet's secret for this purpose only.
    pub fn new(key: &[u8; 32]) -> ProbeHasher {
        ProbeHasher { key: Key::new(HMAC_SHA256, key), files: HashMap::new() }
    }

    /// Returns the hash of a probe. A file counts by its contents, not its path, which may differ
    /// between machines. So do the authorities of the system: members with different ones do not
    /// share the probe, and each runs its own.
    pub fn hash(&mut self, probe: &ProbeIdentity) -> ProbeHash {
        let ProbeIdentity { address, spec } = probe;
        let ProbeSpec { kind, tls, http, send_proxy } = spec;
        let mut message = Message(Context::with_key(&self.key));
        message.text(VERSION);
        message.address(*address);
        message.kind(kind);
        message.option(tls.as_ref(), |message, tls| self.tls(message, tls));
        message.text(http.as_str().as_bytes());
        message.option(*send_proxy, |message, version| message.text(version.as_str().as_bytes()));
        let mut hash = [0; 16];
        for (to, from) in hash.iter_mut().zip(message.0.sign().as_ref()) {
            *to = *from;
        }
        ProbeHash(hash)
    }

    /// Forgets the digests of files that only this hasher still holds. To be called after each
    /// change of the configuration.
    pub fn forget_unused(&mut self) {
        self.files.retain(|_, (bytes, _)| Arc::strong_count(bytes) > 1);
    }

    fn tls(&mut self, message: &mut Message, tls: &ProbeTls) {
        let ProbeTls { name, settings } = tls;
        // The name in the settings is not used: a probe has its own.
        let ServiceTls { name: _, names, verify, ca, certificate } = &**settings;
        message.text(name.as_bytes());
        message.byte(u8::from(*verify));
        self.file(message, ca);
        for name in names {
            message.text(name.to_string().as_bytes());
        }
        message.option(certificate.as_ref(), |message, certificate| {
            // A chain contains the public key, which stands for the private one, and a stapled
            // response does not change what a server answers. ACME's names are how it was obtained.
            let Certificate { chain, key: _, ocsp: _, acme: _ } = certificate;
            self.file(message, chain);
        });
    }

    fn file(&mut self, message: &mut Message, file: &Material) {
        let address = file.bytes.as_ptr() as usize;
        let (_, digest) = self.files.entry(address).or_insert_with(|| {
            let mut kept = [0; 32];
            for (to, from) in kept.iter_mut().zip(digest(&SHA256, &file.bytes).as_ref()) {
                *to = *from;
            }
            (Arc::clone(&file.bytes), kept)
        });
        message.text(digest.as_slice());
    }
}

/// The encoding, as it enters the hash.
struct Message(Context);

impl Message {
    fn byte(&mut self, byte: u8) {
        self.0.update(&[byte]);
    }

    fn number(&mut self, number: u64) {
        self.0.update(&number.to_le_bytes());
    }

    fn text(&mut self, text: &[u8]) {
        self.number(text.len() as u64);
        self.0.update(text);
    }

    fn option<T>(&mut self, value: Option<T>, write: impl FnOnce(&mut Message, T)) {
        self.byte(u8::from(value.is_some()));
        if let Some(value) = value {
            write(self, value);
        }
    }

    fn address(&mut self, address: Address) {
        let address = match address {
            Address::Unix(path) => {
                self.byte(0);
                return self.text(path.as_str().as_bytes());
            }
            Address::Ip(address) => address,
        };
        match address.ip() {
            IpAddr::V4(ip) => {
                self.byte(4);
                self.text(&ip.octets());
            }
            IpAddr::V6(ip) => {
                self.byte(6);
                self.text(&ip.octets());
            }
        }
        self.number(u64::from(address.port()));
        if let std::net::SocketAddr::V6(address) = address {
            self.number(u64::from(address.scope_id()));
        }
    }

    fn kind(&mut self, kind: &CheckKind) {
        self.text(kind.as_str().as_bytes());
        match kind {
            CheckKind::Tcp => {}
            CheckKind::Http { method, path, host, fields, expect, body, reuse } => {
                self.text(method.as_bytes());
                self.text(path.as_bytes());
                self.option(host.as_ref(), |message, host| message.text(host.as_bytes()));
                self.number(fields.len() as u64);
                for (name, value) in fields {
                    self.text(name.as_bytes());
                    self.text(value.as_bytes());
                }
                self.number(expect.0.len() as u64);
                for (low, high) in &expect.0 {
                    self.number(u64::from(*low));
                    self.number(u64::from(*high));
                }
                self.body(body);
                self.byte(u8::from(*reuse));
            }
            CheckKind::Grpc { service, host } => {
                self.text(service.as_bytes());
                self.option(host.as_ref(), |message, host| message.text(host.as_bytes()));
            }
        }
    }

    fn body(&mut self, body: &BodyExpectation) {
        let BodyExpectation { pattern, json } = body;
        self.option(pattern.as_ref(), |message, pattern| message.text(pattern.as_str().as_bytes()));
        self.number(json.len() as u64);
        for (path, text) in json {
            self.text(path.as_bytes());
            self.text(text.as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use model::{HttpVersion, Pattern, ProxyVersion, StatusSet, Text};

    use super::*;

    fn http() -> CheckKind {
        CheckKind::Http {
            method: "GET".to_owned(),
            path: "/health".to_owned(),
            host: Some("a.internal".to_owned()),
            fields: vec![("x-key".to_owned(), Text::secret("s3cret".to_owned()))],
            expect: StatusSet(vec![(200, 299)]),
            body: BodyExpectation::default(),
            reuse: true,
        }
    }

    fn tls(name: &str, verify: bool, ca: &[u8], chain: Option<&[u8]>) -> ProbeTls {
        let material = |bytes: &[u8]| Material { path: "/a".into(), bytes: bytes.into() };
        let certificate = chain.map(|chain| Certificate {
            chain: material(chain),
            key: material(b"key"),
            ocsp: None,
            acme: None,
        });
        let settings =
            ServiceTls { name: None, names: Vec::new(), verify, ca: material(ca), certificate };
        ProbeTls { name: name.into(), settings: Arc::new(settings) }
    }

    fn probe(address: &str, kind: CheckKind) -> ProbeIdentity {
        ProbeIdentity {
            address: address.parse().expect("an address"),
            spec: ProbeSpec { kind, tls: None, http: HttpVersion::Http11, send_proxy: None },
        }
    }

    /// Changes one detail of the check at a time.
    fn kinds() -> Vec<CheckKind> {
        let mut kinds = vec![http(), CheckKind::Tcp];
        for detail in 0..11 {
            let mut kind = http();
            let CheckKind::Http { method, path, host, fields, expect, body, reuse } = &mut kind
            else {
                unreachable!()
            };
            match detail {
                0 => *method = "HEAD".to_owned(),
                1 => *path = "/healthz".to_owned(),
                2 => *host = None,
                3 => *host = Some("b.internal".to_owned()),
                4 => fields[0].1 = Text::secret("s3cret2".to_owned()),
                5 => fields[0].0 = "x-ke".to_owned(),
                6 => fields.push(("x".to_owned(), Text::default())),
                7 => expect.0 = vec![(200, 204)],
                8 => body.pattern = Pattern::parse("ok").ok(),
                9 => body.json.push(("status".to_owned(), "UP".to_owned())),
                _ => *reuse = false,
            }
            kinds.push(kind);
        }
        let grpc = |service: &str, host: &str| {
            let host = Some(host.to_owned());
            CheckKind::Grpc { service: service.to_owned(), host }
        };
        // The border between two texts is part of the encoding.
        kinds.extend([grpc("ab", "c"), grpc("a", "bc")]);
        kinds
    }

    #[test]
    fn every_detail_of_a_probe_changes_its_hash() {
        let mut all: Vec<_> = kinds().into_iter().map(|kind| probe("10.0.0.1:80", kind)).collect();
        for address in ["10.0.0.2:80", "10.0.0.1:81", "[::ffff:10.0.0.1]:80", "unix:/run/a"] {
            all.push(probe(address, http()));
        }
        let mut by_proxy = probe("10.0.0.1:80", http());
        by_proxy.spec.send_proxy = Some(ProxyVersion::V1);
        all.push(by_proxy.clone());
        by_proxy.spec.send_proxy = Some(ProxyVersion::V2);
        all.push(by_proxy);
        let mut by_http2 = probe("10.0.0.1:80", http());
        by_http2.spec.http = HttpVersion::Http2;
        all.push(by_http2);
        for tls in [
            tls("a", true, b"ca", None),
            tls("b", true, b"ca", None),
            tls("a", false, b"ca", None),
            tls("a", true, b"other ca", None),
            tls("a", true, b"ca", Some(b"chain")),
            tls("a", true, b"ca", Some(b"other chain")),
        ] {
            let mut over_tls = probe("10.0.0.1:80", http());
            over_tls.spec.tls = Some(tls);
            all.push(over_tls);
        }
        let mut hasher = ProbeHasher::new(&[7; 32]);
        let hashes: HashSet<_> = all.iter().map(|probe| hasher.hash(probe)).collect();
        assert_eq!(hashes.len(), all.len());
    }

    #[test]
    fn the_hash_is_the_same_in_every_process_with_the_key() {
        let mut hasher = ProbeHasher::new(&[7; 32]);
        let hash = hasher.hash(&probe("10.0.0.1:80", http()));
        assert_eq!(hash, ProbeHasher::new(&[7; 32]).hash(&probe("10.0.0.1:80", http())));
        assert_ne!(hash, ProbeHasher::new(&[8; 32]).hash(&probe("10.0.0.1:80", http())));
        assert_eq!(format!("{hash:?}"), "a40d4cf881c156d123fb36cc56e1e0e6");
    }

    #[test]
    fn a_file_counts_by_its_contents_and_is_forgotten_after_its_probes() {
        let mut hasher = ProbeHasher::new(&[7; 32]);
        let mut one = probe("10.0.0.1:80", http());
        one.spec.tls = Some(tls("a", true, b"ca", None));
        let mut other = one.clone();
        let mut settings = (*tls("a", true, b"ca", None).settings).clone();
        settings.ca.path = "/elsewhere".into();
        other.spec.tls = Some(ProbeTls { name: "a".into(), settings: Arc::new(settings) });
        assert_eq!(hasher.hash(&one), hasher.hash(&other));
        assert_eq!(hasher.files.len(), 2);
        drop(other);
        hasher.forget_unused();
        assert_eq!(hasher.files.len(), 1);
    }
}
