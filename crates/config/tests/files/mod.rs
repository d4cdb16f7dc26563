//! The files that the cases name, generated here: certificates with fixed dates and a fixed clock,
//! so that the diagnostics are always the same.

#![allow(clippy::unwrap_used, reason = "a helper that fails fails its test")]

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use config::{Found, Included, Surroundings, Unreadable};
use model::Material;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, date_time_ymd,
};

/// 2026-11-21 12:00 UTC.
const NOW_S: i64 = 1_795_262_400;

/// Files by name, whatever directory they are looked for in.
pub(crate) struct Made(HashMap<&'static str, Arc<[u8]>>);

impl Surroundings for Made {
    fn file(&self, path: &Path) -> Result<Found, Unreadable> {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let denied = name == "denied.pem";
        match self.0.get(name) {
            Some(bytes) if !denied => Ok(Found {
                material: Material { path: path.to_path_buf(), bytes: Arc::clone(bytes) },
                only_root: name == "root-only.key",
                open_to_others: name == "open.htpasswd",
            }),
            _ => Err(Unreadable {
                why: if denied { "permission denied" } else { "no such file" }.to_owned(),
                help: Some("is the path right?".to_owned()),
                is_denied: denied,
                is_missing: !denied,
            }),
        }
    }

    fn names(&self, folder: &Path, pattern: &str) -> Result<Vec<OsString>, Unreadable> {
        // Of files that are made.
        let made: Option<&[&str]> = match folder.to_str() {
            Some("certs") => Some(&[
                "a.key",
                "a.pem",
                "combined.pem",
                "expired.key",
                "expired.pem",
                "staff.htpasswd",
            ]),
            Some("certs-broken") => {
                Some(&["combined.pem", "cut.pem", "denied.pem", "empty.pem", "gap.pem", "gone.pem"])
            }
            _ => None,
        };
        if let Some(made) = made {
            return Ok(made.iter().map(OsString::from).collect());
        }
        let entries = std::fs::read_dir(cases().join(folder));
        let entries = entries.map_err(|error| unreadable(&error))?;
        let names = entries.map(|entry| entry.unwrap().file_name());
        Ok(names.filter(|name| config::matches(pattern, name)).collect())
    }

    fn text(&self, path: &Path) -> Result<Included, Unreadable> {
        let bytes = std::fs::read(cases().join(path)).map_err(|error| unreadable(&error))?;
        let material = Material { path: path.to_path_buf(), bytes: bytes.into() };
        Ok(Included { is_main: path.ends_with("include-main.conf"), material })
    }

    fn variable(&self, name: &str) -> Result<String, String> {
        Ok(match name {
            "ZONE" => "eu-west-1a",
            "FOLDER" => "substitute",
            "PORT" => "8080",
            "WRONG_PORT" => "80800",
            "TIME" => "10s",
            "ONE" => "1",
            "ODD" => "\"] } [service.c] ${ZONE} ${file:token}",
            "ODD_REGEX" => "[}]",
            "LATIN" => return Err("not UTF-8".to_owned()),
            _ => return Err("not set".to_owned()),
        }
        .to_owned())
    }

    fn now_s(&self) -> Option<i64> {
        Some(NOW_S)
    }
}

/// The folder of the cases, where the files are that they include.
fn cases() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cases"))
}

fn unreadable(error: &std::io::Error) -> Unreadable {
    Unreadable {
        why: error.kind().to_string(),
        help: None,
        is_denied: false,
        is_missing: error.kind() == std::io::ErrorKind::NotFound,
    }
}

/// Returns the files, generated once for all tests of a program.
pub(crate) fn made() -> &'static Made {
    static MADE: OnceLock<Made> = OnceLock::new();
    MADE.get_or_init(make)
}

/// Made by `htpasswd -nbBC 4 ann secret`.
const USERS: &str = "ann:$2y$04$CwQcP2leVdX4hmU2oeI.R.ggy/N96dMpc.jGUz6/qp3PJfEfhJ4yG\n";
/// A hash that takes 256 MiB to verify.
const HEAVY_USERS: &str = "ann:$argon2id$v=19$m=262144,t=1,p=1$c2FsdCBvZiBhIHVzZXIuLg$wkk0SOIzhVZmVOfVYx7cbQuLhpODW/cuU4d6fwKAjWk\n";
/// The example key of RFC 8037 appendix A.2, and one that verifies nothing.
const KEYS: &str = r#"{"keys": [
    {"kty": "OKP", "crv": "Ed25519", "kid": "a", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"},
    {"kty": "RSA", "use": "enc", "kid": "b", "n": "AQAB", "e": "AQAB"}
]}"#;

type Dates = ((i32, u8, u8), (i32, u8, u8));

/// Secrets of a fleet: one, the same with white space around it, another, and one that is too long.
fn fleet_keys() -> [(&'static str, String); 4] {
    let key = "hunter2 of the fleet, longer than 32 bytes";
    [
        ("fleet.key", format!("{key}\n")),
        ("padded.key", format!("  {key}\t\n\n")),
        ("fleet-old.key", format!("old {key}")),
        ("long.key", "hunter2 ".repeat(600)),
    ]
}

fn authority(name: &str) -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

fn make() -> Made {
    let mut files: HashMap<&'static str, Arc<[u8]>> = HashMap::new();
    let mut put = |name, bytes: &[u8]| drop(files.insert(name, bytes.into()));
    let ca = authority("Example Authority");
    for name in ["ca.pem", "clients.pem", "internal.pem", "fleet-ca.pem", "ca-certificates.crt"] {
        put(name, ca.pem().as_bytes());
    }
    put("stranger-ca.pem", authority("Stranger").pem().as_bytes());
    for (name, text) in fleet_keys() {
        put(name, text.as_bytes());
    }
    put("nomad.token", b"hunter2 of Nomad");
    put("empty.pem", b"");
    put("office.txt", b"# the office\n192.0.2.0/24\n\n2001:db8::/32 # IPv6\n");
    put("none.txt", b"\xef\xbb\xbf# no network yet\n");
    put("wrong.txt", b"192.0.2.0/24\n192.0.2.1/24\nexample.com\n10/8\n300.0.0.1\n");
    put("staff.htpasswd", USERS.as_bytes());
    put("open.htpasswd", USERS.as_bytes());
    put("heavy.htpasswd", HEAVY_USERS.as_bytes());
    put("bad-users", b"ann:plain\nbob:$apr1$x$y\n\ncarl\n");
    put("jwks.json", KEYS.as_bytes());
    put("bad-keys.json", b"{\"keys\": []}");
    put("icon.svg", b"<svg xmlns='http://www.w3.org/2000/svg'/>");
    put("affinity.key", b"000102030405060708090a0b0c0d0e0f\n");
    put("eab.key", b"zWNDZM6eQGHWpSRTPal5eIUYFTu7EajVIoguysqZ9wG44nMEtx3MUAsUDkMTQ12W\n");
    put("token", b"hunter2-hunter2\n");
    put("other", b"another");
    put("lines", b"hunter2\nhunter3\n");
    put("control", b"hunter2\x1b[31m\n");
    put("latin", b"hunter2\xe9\n");
    put("large", &vec![b'l'; 64 * 1024]);
    put("huge", &vec![b'h'; 64 * 1024 + 1]);
    put("a.der", &[0x30, 3, 0x0a, 1, 0]);

    const USUAL: Dates = ((2026, 1, 1), (2027, 6, 1));
    let leaves: &[(&'static str, &'static str, &[&str], Dates)] = &[
        ("a.pem", "a.key", &["a.example.com"], USUAL),
        ("b.pem", "b.key", &["b.example.com", "*.b.example.com"], USUAL),
        ("also-a.pem", "also-a.key", &["c.example.com", "a.example.com"], USUAL),
        ("client.pem", "client.key", &["weir.example.com"], USUAL),
        ("member.pem", "member.key", &["fleet.internal"], USUAL),
        ("expired.pem", "expired.key", &["old.example.com"], ((2025, 1, 1), (2026, 11, 9))),
        (
            "soon.pem",
            "soon.key",
            &["s.example.com", "t.example.com"],
            ((2026, 9, 1), (2026, 12, 1)),
        ),
        ("future.pem", "future.key", &["new.example.com"], ((2026, 12, 24), (2027, 6, 1))),
    ];
    for (chain_name, key_name, names, (from, until)) in leaves {
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        let mut params = CertificateParams::new(names).unwrap();
        params.not_before = date_time_ymd(from.0, from.1, from.2);
        params.not_after = date_time_ymd(until.0, until.1, until.2);
        let key = KeyPair::generate().unwrap();
        let pem = params.signed_by(&key, &ca).unwrap().pem();
        put(chain_name, pem.as_bytes());
        put(key_name, key.serialize_pem().as_bytes());
        match *chain_name {
            "b.pem" => put("combined.pem", format!("{pem}{}", key.serialize_pem()).as_bytes()),
            "a.pem" => {
                put("root-only.key", key.serialize_pem().as_bytes());
                put("nomad.token", b"hunter2 of Nomad");
                put("empty.pem", b"");
                put("cut.pem", &pem.as_bytes()[..pem.len() / 2]);
                // A leaf in place of its issuer.
                put("gap.pem", format!("{pem}{pem}").as_bytes());
            }
            _ => {}
        }
    }
    Made(files)
}
