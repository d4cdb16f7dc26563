//! Certificates from a current Pebble, Let's Encrypt's ACME server for tests, for a running `weir serve`:
//! `make prove`. `scripts/install-pebble` builds it.

#[path = "prove_acme/fleet.rs"]
mod fleet;

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use e2e::clients::{client, s_client};
use e2e::{Authority, NAMESPACES, PEBBLE, PEBBLE_DNS, Process, Scene, Weir, find, http, wait};
use rustix::process::Signal;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

/// How long what takes seconds may take.
const PATIENCE: Duration = Duration::from_mins(1);
/// Between two requests of a client.
const PAUSE: Duration = Duration::from_millis(2);
const NAMES: [&str; 2] = ["a.example.com", "b.example.com"];
const ASK: &str = "GET / HTTP/1.1\r\nHost: a.example.com\r\nConnection: close\r\n\r\n";
/// An answer about a renewal: it is overdue.
const PAST: &str =
    r#"{"suggestedWindow": {"start": "2020-01-01T00:00:00Z", "end": "2020-01-02T00:00:00Z"}}"#;

/// Pebble, and the DNS server that tells it where every name is: at Weir.
struct Pebble {
    authority: Authority,
    address: SocketAddr,
    management: SocketAddr,
    /// The management address of the DNS server.
    names: SocketAddr,
    server: Process,
    dns: Process,
}

/// Where Weir's listener for TLS is.
fn secure(scene: &Scene) -> SocketAddr {
    scene.address(1, 8443)
}

impl Pebble {
    /// Starts it; a validation takes up to `slowness_s` seconds.
    fn start(scene: &Scene, slowness_s: u32) -> Pebble {
        Pebble::start_with(scene, slowness_s, Duration::from_hours(24 * 90))
    }

    /// As [`Pebble::start`]; what it issues is valid for `validity`.
    fn start_with(scene: &Scene, slowness_s: u32, validity: Duration) -> Pebble {
        let (address, management) = (scene.address(20, 14000), scene.address(20, 15000));
        let (dns_address, weir) = (scene.address(20, 8053), scene.ip(1));
        let authority = Authority::new(scene, "directory-ca");
        let pair = authority.issue("pebble", &[&address.ip().to_string()]);
        let names = scene.address(20, 8055);
        let dns = Process::start(
            scene,
            "dns",
            &find(PEBBLE_DNS).unwrap(),
            ["-defaultIPv4", &weir.to_string(), "-defaultIPv6", "", "-http01", "", "-https01", ""]
                .iter()
                .chain(&["-tlsalpn01", "", "-doh", "", "-management", &names.to_string()])
                .chain(&["-dnsserver", &dns_address.to_string()]),
        );
        let (chain, key) = (pair.chain.display(), pair.key.display());
        let (http, tls) = (scene.front().port(), secure(scene).port());
        let config = scene.file(
            "pebble.json",
            format!(
                r#"{{"pebble": {{"listenAddress": "{address}", "httpPort": {http}, "tlsPort": {tls},
                "managementListenAddress": "{management}", "ocspResponderURL": "",
                "certificate": "{chain}", "privateKey": "{key}", "keyAlgorithm": "ecdsa",
                "profiles": {{"default": {{"description": "for tests", "validityPeriod": {}}}}},
                "retryAfter": {{"authz": 1, "order": 1}}}}}}"#,
                validity.as_secs()
            ),
        );
        let faults = match slowness_s {
            0 => "PEBBLE_VA_NOSLEEP=1".to_owned(),
            seconds => format!("PEBBLE_VA_SLEEPTIME={seconds}"),
        };
        let (program, config) = (find(PEBBLE).unwrap(), config.display().to_string());
        let words = [&faults, "PEBBLE_WFE_NONCEREJECT=10", &program.to_string_lossy(), "-strict"];
        let more = ["-config", &config, "-dnsserver", &dns_address.to_string()];
        let env = find("env").expect("env");
        let server = Process::start(scene, "pebble", &env, words.iter().chain(&more));
        for address in [address, management, names] {
            wait::until("Pebble", PATIENCE, || TcpStream::connect(address).ok());
        }
        Pebble { authority, address, management, names, server, dns }
    }

    /// Has all names be at this address from now on.
    fn set_names(&self, scene: &Scene, ip: IpAddr) {
        let url = format!("http://{}/set-default-ipv4", self.names);
        let data = serde_json::json!({ "ip": ip }).to_string();
        let seen = client(scene, "curl", &["-s", "-f", "--data-binary", &data, &url], 20);
        assert_eq!(seen.code, Some(0), "{seen:?}");
    }

    /// A configuration for Weir. Nothing gets past the rules of the plain listener but challenges.
    fn config(&self, scene: &Scene, top: &str, acme: &str, tls: &str) -> String {
        let state = scene.folder().join("state");
        scene.config(
            &format!("workers = 2\nstate_directory = \"{}\"\n{top}", state.display()),
            &format!(
                "[[listener]]\nname = \"secure\"\naddress = \"{}\"\n\
                 tls = {{ certificates = [{{ acme = {NAMES:?} }}]{tls} }}\n\
                 [acme]\ndirectory = \"https://{}/dir\"\nterms_agreed = true\n{}\n{acme}\n\
                 [[route]]\nlistener = \"public\"\nclient_not = \"192.0.2.0/24\"\ndeny = 403\n\
                 [[route]]\nlistener = \"public\"\nredirect = {{ scheme = \"https\" }}\n\
                 [[route]]\nlistener = \"secure\"\nrespond = {{ body = \"ok\" }}\n",
                secure(scene),
                self.address,
                self.authority.ca(),
            ),
        )
    }

    /// The client's settings that trust what it issues, and nothing else.
    fn trusted(&self, scene: &Scene) -> Arc<ClientConfig> {
        let url = format!("https://{}/roots/0", self.management);
        let root = client(scene, "curl", &["-k", "-s", "-f", &url], 20);
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(root.stdout.as_bytes()).unwrap()).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        Arc::new(config)
    }

    /// Has it answer questions about the renewal of the stored certificate that it is overdue.
    fn ask_for_renewal(&self, scene: &Scene) {
        let pem = std::fs::read_to_string(stored(scene).unwrap()).unwrap();
        let chain = &pem[pem.find("-----BEGIN CERTIFICATE").unwrap()..];
        let body = serde_json::json!({ "Certificate": chain, "ARIResponse": PAST });
        let file = scene.file("renewal.json", body.to_string());
        let data = format!("@{}", file.display());
        let url = format!("https://{}/set-renewal-info/", self.management);
        let seen = client(scene, "curl", &["-k", "-s", "-f", "--data-binary", &data, &url], 20);
        assert_eq!(seen.code, Some(0), "{seen:?}");
    }

    fn is_well(&mut self) {
        assert!(self.server.is_running() && self.dns.is_running());
    }
}

/// A client that verifies the certificate, on a connection that it keeps.
struct Tls(StreamOwned<ClientConnection, TcpStream>);

impl Tls {
    fn connect(address: SocketAddr, config: &Arc<ClientConfig>, name: &'static str) -> Tls {
        let session = ClientConnection::new(Arc::clone(config), name.try_into().unwrap()).unwrap();
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Tls(StreamOwned::new(session, stream))
    }

    /// Sends a request, and reads the response with its body `ok`.
    fn ask(&mut self) -> std::io::Result<()> {
        self.0.write_all(b"GET / HTTP/1.1\r\nHost: a.example.com\r\n\r\n")?;
        let mut seen = Vec::new();
        while !seen.ends_with(b"\r\n\r\nok") {
            let mut piece = [0; 1024];
            match self.0.read(&mut piece)? {
                0 => return Err(std::io::ErrorKind::UnexpectedEof.into()),
                count => seen.extend_from_slice(&piece[..count]),
            }
        }
        assert!(seen.starts_with(b"HTTP/1.1 200 "), "{}", String::from_utf8_lossy(&seen));
        Ok(())
    }
}

/// Ends the clients of a test when it is dropped.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Every file below `folder`.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path());
    paths.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

fn with_extension(scene: &Scene, extension: &str) -> Option<PathBuf> {
    let state = scene.folder().join("state");
    files(&state).into_iter().find(|file| file.extension().is_some_and(|e| e == extension))
}

/// The stored certificate.
fn stored(scene: &Scene) -> Option<PathBuf> {
    with_extension(scene, "pem")
}

fn issued(weir: &Weir, from: usize) -> String {
    weir.wait_for_log_from(from, &["certificate issued by ACME", "a.example.com"], PATIENCE)
}

#[test]
#[ignore = "needs Pebble: make prove"]
fn http_01_passes_redirects_and_rules_and_a_renewal_fails_no_request() {
    let Some(scene) = Scene::new("prove-acme-http", &["curl", "openssl", PEBBLE]) else { return };
    let mut pebble = Pebble::start(&scene, 3);
    let config = pebble.config(&scene, "", "", "");
    let mut weir = Weir::start(&scene, &config);
    let seen = s_client(&scene, secure(&scene), &["-servername", NAMES[0]], ASK);
    assert!(seen.stdout.contains("no certificate has been issued yet"), "{seen:?}");
    issued(&weir, 0);
    let trusted = pebble.trusted(&scene);
    for name in NAMES {
        let ask = || Tls::connect(secure(&scene), &trusted, name).ask().ok();
        wait::until("the certificate to take effect", PATIENCE, ask);
    }
    // Everything else is subject to the rules, whatever it looks like.
    let path = "/.well-known/acme-challenge/other";
    assert_eq!(http::get(weir.front(), path).unwrap().status, 403);
    let answered = weir.access().into_iter().filter(|line| line["cause"] == "responded").count();
    assert!(answered >= NAMES.len(), "{answered}");
    let acme = weir.api("/api/v1/status")["acme"].clone();
    assert!(acme["certificates"][0]["not_after"].is_string(), "{acme:#}");
    assert!(acme["certificates"][0]["failure"].is_null(), "{acme:#}");
    let answer = weir.ask("/api/v1/reload");
    assert_eq!(answer.json()["result"], "unchanged", "{}", answer.text());
    weir.begin_to_stop();
    weir.wait(PATIENCE);

    // Renewals are at least an hour apart.
    let file = stored(&scene).unwrap();
    let before = std::fs::read(&file).unwrap();
    let past = SystemTime::now() - Duration::from_hours(2);
    std::fs::File::options().write(true).open(&file).unwrap().set_modified(past).unwrap();
    pebble.ask_for_renewal(&scene);
    // Both processes write into one file.
    let from = weir.log().len();
    let weir = Weir::start(&scene, &config);
    let end = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // Also if an assertion fails: the scope waits for the clients.
        let ends = Ends(&end);
        let load = |kept: bool| {
            let (address, end, trusted) = (secure(&scene), &end, &trusted);
            scope.spawn(move || {
                let mut connection = Tls::connect(address, trusted, NAMES[1]);
                let mut count = 0;
                while !end.load(Ordering::Relaxed) {
                    if !kept {
                        connection = Tls::connect(address, trusted, NAMES[1]);
                    }
                    connection.ask().expect("no request to fail");
                    count += 1;
                    std::thread::sleep(PAUSE);
                }
                count
            })
        };
        let clients = [load(true), load(false)];
        let line = issued(&weir, from);
        // It is in use when new connections get it.
        let renewed = std::fs::read(&file).unwrap();
        assert_ne!(renewed, before, "{line}");
        wait::until("the renewed certificate", PATIENCE, || {
            let seen = s_client(&scene, secure(&scene), &["-servername", NAMES[0]], ASK);
            let shown = seen.stdout.split("-----BEGIN CERTIFICATE-----\n").nth(1)?;
            let line = shown.lines().next()?.to_owned();
            let leaf = shown.split("-----END").next()?.replace('\n', "");
            let text = String::from_utf8_lossy(&renewed).replace(['\n', '\r'], "");
            (!line.is_empty() && text.contains(&leaf)).then_some(())
        });
        drop(ends);
        let counts: Vec<u32> = clients.map(|client| client.join().unwrap()).into();
        assert!(counts.iter().all(|count| *count > 10), "{counts:?}");
    });
    pebble.is_well();
}

#[test]
#[ignore = "needs Pebble: make prove"]
fn tls_alpn_01_passes_client_certificates() {
    let Some(scene) = Scene::new("prove-acme-alpn", &["curl", "openssl", PEBBLE]) else { return };
    let mut pebble = Pebble::start(&scene, 0);
    let clients = Authority::new(&scene, "clients");
    let tls = format!(", client_certificates = {{ {} }}", clients.ca());
    let config = pebble.config(&scene, "", "challenge = \"tls-alpn-01\"", &tls);
    let weir = Weir::start(&scene, &config);
    issued(&weir, 0);
    let trusted = pebble.trusted(&scene);
    wait::until("the certificate to take effect", PATIENCE, || {
        // Verified, and then refused, as it presents none itself.
        let refused = Tls::connect(secure(&scene), &trusted, NAMES[0]).ask().unwrap_err();
        refused.to_string().contains("CertificateRequired").then_some(())
    });
    // An authority gets nothing when no challenge is pending.
    let seen = s_client(&scene, secure(&scene), &["-alpn", "acme-tls/1"], ASK);
    assert!(!seen.stdout.contains("ALPN protocol: acme-tls/1"), "{seen:?}");
    pebble.is_well();
}

#[test]
#[ignore = "needs Pebble: make prove"]
fn an_order_survives_a_kill_and_an_upgrade() {
    let Some(scene) = Scene::new("prove-acme-restart", &["curl", PEBBLE]) else { return };
    let mut pebble = Pebble::start(&scene, 5);
    let config = pebble.config(&scene, "", "", "");
    let mut weir = Weir::start(&scene, &config);
    let order = || with_extension(&scene, "order");
    let first = wait::until("an order", PATIENCE, order);
    // It must not validate while no Weir answers its challenges.
    pebble.server.signal(Signal::STOP);
    let url = |file: &Path| std::fs::read_to_string(file).unwrap();
    let before = url(&first);
    weir.kill();
    weir.wait(PATIENCE);

    let mut weir = Weir::start(&scene, &config);
    pebble.server.signal(Signal::CONT);
    assert_eq!(url(&first), before);
    let from = weir.log().len();
    let (_, successor) = weir.upgrade(PATIENCE);
    assert!(successor.is_running());
    // The new process writes to the same log.
    if stored(&scene).is_none() {
        issued(&weir, from);
    }
    let trusted = pebble.trusted(&scene);
    wait::until("the certificate to take effect", PATIENCE, || {
        Tls::connect(secure(&scene), &trusted, NAMES[0]).ask().ok()
    });
    assert!(!weir.log().contains("no certificate for"), "{}", weir.log());
    assert_eq!(order(), None);
    pebble.is_well();
}

#[test]
#[ignore = "needs Pebble: make prove"]
fn the_state_directory_stays_writable_for_another_user() {
    let Some(scene) = Scene::new("prove-acme-user", &["curl", NAMESPACES, PEBBLE]) else { return };
    let mut pebble = Pebble::start(&scene, 0);
    let user = "user = \"nobody\"\ngroup = \"nogroup\"\n";
    let weir = Weir::start(&scene, &pebble.config(&scene, user, "", ""));
    issued(&weir, 0);
    let state = scene.folder().join("state");
    let kept = files(&state);
    assert!(kept.len() >= 3, "{kept:?}");
    for path in kept.iter().map(PathBuf::as_path).chain([&*state, &state.join("acme")]) {
        let metadata = path.metadata().unwrap();
        assert_eq!(metadata.uid(), 65534, "{}", path.display());
        assert_eq!(metadata.permissions().mode() & 0o077, 0, "{}", path.display());
    }
    let trusted = pebble.trusted(&scene);
    wait::until("the certificate to take effect", PATIENCE, || {
        Tls::connect(secure(&scene), &trusted, NAMES[0]).ask().ok()
    });
    pebble.is_well();
}
