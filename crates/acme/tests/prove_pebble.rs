//! Certificates from a current Pebble, Let's Encrypt's ACME server for tests, with its faults switched
//! on. `scripts/install-pebble` builds it; `make prove` runs this. Every test runs in a network
//! namespace of its own, so that no other process takes a port that it is about to listen on; that
//! takes root.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test code")]

mod support;

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use acme::{Event, Source, State};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use instant_acme::CertificateIdentifier;
use model::{Acme, AcmeChallenge, ExternalAccount};
use os::namespace::Namespace;
use support::{
    Folder, PATIENCE, Pki, Running, Server, http_01, material, settings, tls_alpn_01, wait_for,
};
use tls::Challenges;
use tls::rustls::pki_types::CertificateDer;
use tls::rustls::pki_types::pem::PemObject as _;

/// Where `scripts/install-pebble` builds it.
fn pebble() -> PathBuf {
    let home = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache"));
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).or_else(home);
    cache.unwrap_or_default().join("weir-peers/pebble-v2.10.1")
}

/// Pebble, the DNS server that tells it where every name is, and the listeners that it validates.
struct Scene {
    folder: Folder,
    pki: Pki,
    challenges: Arc<Challenges>,
    config: String,
    faults: Vec<(String, String)>,
    dns: Process,
    pebble: Option<Process>,
    listeners: Vec<Server>,
}

/// Ports in the namespace of a test, all below those that the kernel gives to outgoing connections.
mod port {
    pub(super) const ACME: u16 = 14_000;
    pub(super) const MANAGEMENT: u16 = 15_000;
    pub(super) const DNS: u16 = 8053;
    pub(super) const DNS_MANAGEMENT: u16 = 8055;
    pub(super) const HTTP: u16 = 5002;
    pub(super) const TLS: u16 = 5001;
}

/// A child process, killed with this, and what it writes.
struct Process(Child, Arc<Mutex<String>>);

impl Process {
    fn start(command: &mut Command) -> Process {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let written = Arc::<Mutex<String>>::default();
        let (out, lines) = (child.stdout.take().unwrap(), Arc::clone(&written));
        std::thread::spawn(move || {
            for line in BufReader::new(out).lines().map_while(Result::ok) {
                let _ = writeln!(lines.lock().unwrap(), "{line}");
            }
        });
        Process(child, written)
    }

    fn written(&self) -> String {
        self.1.lock().unwrap().clone()
    }

    fn kill(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Moves this thread, and what it starts from now on, into a new network namespace, which is gone
/// when they are.
fn enter_new_namespace() {
    let ip = |words: &[&str]| {
        let output = Command::new("ip").args(words).output().expect("`ip` of iproute2");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "ip {}: {said}", words.join(" "));
    };
    // A thread runs one test at a time.
    let thread = std::fs::read_link("/proc/thread-self").unwrap();
    let name = format!("weir-{}-acme", thread.file_name().unwrap().display());
    ip(&["netns", "add", &name]);
    ip(&["-n", &name, "link", "set", "lo", "up"]);
    let namespace = Namespace::open(&Path::new("/run/netns").join(&name)).unwrap();
    namespace.enter().unwrap();
    ip(&["netns", "del", &name]);
}

impl Scene {
    /// Starts everything, with these entries in Pebble's configuration and these variables in its
    /// environment; `None`: Pebble is not there, and the test is left out. In CI that fails.
    fn start(test: &str, entries: &str, faults: &[(&str, &str)]) -> Option<Scene> {
        let mut scene = Scene::prepare(test, entries, faults)?;
        scene.start_pebble();
        Some(scene)
    }

    fn prepare(test: &str, entries: &str, faults: &[(&str, &str)]) -> Option<Scene> {
        if !pebble().join("pebble").exists() {
            let in_ci =
                std::env::var("CI").is_ok_and(|value| !value.is_empty() && value != "false");
            assert!(
                !in_ci,
                "{test}: Pebble is not there; in CI a test that cannot run is a failure"
            );
            eprintln!("{test}: SKIPPED, Pebble is not there (`scripts/install-pebble` builds it)");
            return None;
        }
        enter_new_namespace();
        let (folder, pki) = (Folder::new(test), Pki::new());
        let challenges = Arc::<Challenges>::default();
        let listeners = vec![
            http_01(port::HTTP, &challenges),
            tls_alpn_01(port::TLS, &challenges, pki.server()),
        ];
        let dns = Process::start(
            Command::new(pebble().join("pebble-challtestsrv"))
                .args(["-defaultIPv4", "127.0.0.1", "-defaultIPv6", ""])
                .args(["-dnsserver", &format!("127.0.0.1:{}", port::DNS)])
                .args(["-management", &format!("127.0.0.1:{}", port::DNS_MANAGEMENT)])
                .args(["-http01", "", "-https01", "", "-tlsalpn01", "", "-doh", ""]),
        );
        std::fs::write(folder.0.join("chain.pem"), &pki.chain).unwrap();
        std::fs::write(folder.0.join("key.pem"), &pki.key).unwrap();
        let at = |file: &str| folder.0.join(file).display().to_string();
        let (chain, key) = (at("chain.pem"), at("key.pem"));
        let config = format!(
            r#"{{"pebble": {{"listenAddress": "127.0.0.1:{}", "httpPort": {},
            "managementListenAddress": "127.0.0.1:{}", "tlsPort": {},
            "certificate": "{chain}", "privateKey": "{key}", "ocspResponderURL": "",
            "retryAfter": {{"authz": 1, "order": 1}}, "keyAlgorithm": "ecdsa"{entries}}}}}"#,
            port::ACME,
            port::HTTP,
            port::MANAGEMENT,
            port::TLS,
        );
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let faults = faults.iter().map(owned).collect();
        let pebble = None;
        Some(Scene { folder, pki, challenges, config, faults, dns, pebble, listeners })
    }

    fn start_pebble(&mut self) {
        let config = self.folder.0.join("pebble.json");
        std::fs::write(&config, &self.config).unwrap();
        let mut command = Command::new(pebble().join("pebble"));
        command.arg("-config").arg(config).args(["-strict", "-dnsserver"]);
        command.arg(format!("127.0.0.1:{}", port::DNS)).env_clear();
        // By default it reuses half of the valid authorizations, at random, and then asks for no proof.
        command.env("PEBBLE_AUTHZREUSE", "0");
        command.envs(self.faults.iter().map(|(name, value)| (name, value)));
        let mut pebble = Process::start(&mut command);
        for port in [port::ACME, port::MANAGEMENT] {
            wait_for("Pebble", || std::net::TcpStream::connect(("127.0.0.1", port)).is_ok());
        }
        assert!(pebble.0.try_wait().unwrap().is_none(), "{}", pebble.written());
        self.pebble = Some(pebble);
        assert!(self.dns.0.try_wait().unwrap().is_none(), "{}", self.dns.written());
    }

    /// What Pebble has logged.
    fn log(&self) -> String {
        self.pebble.as_ref().unwrap().written()
    }

    fn settings(&self, certificates: &[&str]) -> Acme {
        let url = format!("https://localhost:{}/dir", port::ACME);
        settings(&url, &self.pki.ca, &self.folder.0.join("state"), certificates)
    }

    fn run(&self, settings: &Acme) -> Running {
        Running::start(settings, &self.challenges)
    }

    /// Has Pebble answer questions about the renewal of a certificate with `answer`.
    fn set_renewal_info(&self, chain: &str, answer: &str) {
        let body = serde_json::json!({ "Certificate": chain, "ARIResponse": answer }).to_string();
        let ca = material("ca.pem", &self.pki.ca);
        let tls = model::ServiceTls {
            name: None,
            names: Vec::new(),
            verify: true,
            ca,
            certificate: None,
        };
        let tls = tls::client(&tls, &[]).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let limits = transport::client::ExchangeLimits { timeout: PATIENCE, body_max_bytes: 4096 };
        let response = runtime.block_on(async {
            let name = tls::rustls::pki_types::ServerName::try_from("localhost").unwrap();
            let options = transport::dial::DialOptions {
                connect_timeout: PATIENCE,
                user_timeout: None,
                tls: Some((tls, name)),
            };
            let address = ([127, 0, 0, 1], port::MANAGEMENT).into();
            let mut connection =
                transport::client::Connection::open(address, &options).await.unwrap();
            let request = transport::client::Request {
                method: "POST",
                path: "/set-renewal-info/",
                host: "localhost",
                fields: &[("User-Agent".to_owned(), "test".to_owned())],
                body: body.as_bytes(),
            };
            connection.exchange(&request, &limits).await.unwrap()
        });
        assert_eq!(response.status, 200);
    }
}

/// An answer about a renewal: it is overdue.
const PAST: &str =
    r#"{"suggestedWindow": {"start": "2020-01-01T00:00:00Z", "end": "2020-01-02T00:00:00Z"}}"#;

/// Every file below `folder`.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

/// Returns whether an order is under way in a state directory.
fn is_under_way(state: &Path) -> bool {
    files(state).iter().any(|file| file.extension().is_some_and(|e| e == "order"))
}

/// The chain, without the key before it.
fn text(update: &acme::Update) -> String {
    let file = String::from_utf8(update.stored.certificate.chain.bytes.to_vec()).unwrap();
    file[file.find("-----BEGIN CERTIFICATE").unwrap()..].to_owned()
}

/// Makes it look as if everything had been stored two hours ago: renewals are an hour apart.
fn age(settings: &Acme) {
    for file in files(&settings.state) {
        let past = std::time::UNIX_EPOCH + os::clock::wall() - Duration::from_secs(7200);
        std::fs::File::options().write(true).open(file).unwrap().set_modified(past).unwrap();
    }
}

#[test]
#[ignore = "needs Pebble: make prove"]
fn both_challenges_issue_for_several_names_and_a_restart_orders_nothing() {
    let Some(scene) = Scene::start("both", "", &[("PEBBLE_VA_NOSLEEP", "1")]) else { return };
    for (challenge, names) in [
        (AcmeChallenge::Http01, ["a.example b.example c.example", "d.example"]),
        (AcmeChallenge::TlsAlpn01, ["e.example f.example g.example", "h.example"]),
    ] {
        let mut settings = scene.settings(&names);
        settings.challenge = challenge;
        settings.state = scene.folder.0.join(challenge.as_str());
        let mut running = scene.run(&settings);
        for index in 0..2 {
            let update = running.issued();
            assert_eq!(update.index, index);
            assert!(
                update.stored.facts.issuer.contains("Pebble"),
                "{}",
                update.stored.facts.issuer
            );
            assert_eq!(update.stored.facts.names, settings.certificates[index].names);
            let read = acme::stored(&settings, &settings.certificates[index].names);
            assert_eq!(read.unwrap().unwrap().certificate, update.stored.certificate);
        }
        assert!(running.event(Duration::from_secs(2)).is_none());
        let status = running.handle.status();
        assert!(status.iter().all(|s| s.failure.is_none() && s.renewal_by_authority), "{status:?}");
        running.handle.stop();

        let folders = std::fs::read_dir(&settings.state).unwrap().map(|e| e.unwrap().path());
        assert!(folders.into_iter().all(|f| f.metadata().unwrap().mode() & 0o777 == 0o700));
        for file in files(&settings.state) {
            assert_eq!(file.metadata().unwrap().mode() & 0o777, 0o600, "{}", file.display());
            let extension = file.extension().unwrap_or_default();
            assert!(extension != "order" && extension != "new", "{}", file.display());
        }
        let mut again = scene.run(&settings);
        for _ in 0..2 {
            assert_eq!(again.certificate().source, Source::Stored);
        }
        assert!(again.event(Duration::from_secs(2)).is_none(), "{}", again.log);
        again.handle.stop();
    }
    assert!(
        scene.listeners.iter().all(|l| l.served.load(std::sync::atomic::Ordering::Relaxed) > 0)
    );
    assert_eq!(scene.challenges.http("/.well-known/acme-challenge/x"), None);
    assert!(!scene.challenges.tls_pending());
}

#[test]
#[ignore = "needs Pebble: make prove"]
fn bad_nonces_slow_validation_reused_authorizations_and_long_chains_change_nothing() {
    let faults = [
        ("PEBBLE_WFE_NONCEREJECT", "35"),
        ("PEBBLE_VA_SLEEPTIME", "4"),
        ("PEBBLE_AUTHZREUSE", "100"),
        ("PEBBLE_CHAIN_LENGTH", "3"),
    ];
    let Some(scene) = Scene::start("faults", "", &faults) else { return };
    let settings = scene.settings(&["a.example b.example", "a.example", "c.example"]);
    let mut running = scene.run(&settings);
    for index in 0..3 {
        let update = running.issued();
        assert_eq!(update.index, index);
        assert_eq!(text(&update).matches("BEGIN CERTIFICATE").count(), 1 + 3);
    }
    running.handle.stop();
}

#[test]
#[ignore = "needs Pebble: make prove"]
fn an_external_account_and_a_profile_are_used() {
    let key = "zWNDZM6eQGHWpSRTPal5eIUYFTu7EajVIoguysqZ9wG44nMEtx3MUAsUDkMTQ12W";
    let entries = format!(
        r#", "externalAccountBindingRequired": true, "externalAccountMACKeys": {{"kid-1": "{key}"}},
        "profiles": {{"default": {{"description": "x", "validityPeriod": 7776000}},
        "shortlived": {{"description": "x", "validityPeriod": 518400}}}}"#
    );
    let quick = [("PEBBLE_VA_NOSLEEP", "1")];
    let Some(scene) = Scene::start("external", &entries, &quick) else { return };
    let mut settings = scene.settings(&["a.example"]);
    settings.profile = Some("shortlived".to_owned());
    let external = |key_id: &str, key: &str| {
        let hmac_key = material("eab.key", &format!("{key}\n"));
        Some(ExternalAccount { key_id: key_id.to_owned(), hmac_key })
    };
    let wrong = key.replace('z', "y");
    for (account, said) in [
        (None, "externalAccountRequired"),
        (external("kid-1", &wrong), "cannot create an ACME account"),
        (external("kid-2", key), "cannot create an ACME account"),
    ] {
        settings.external_account = account;
        let mut running = scene.run(&settings);
        let failure = running.failure();
        assert!(failure.what.contains(said), "{failure}");
        assert!(!running.log.contains(&wrong) && !running.log.contains(key), "{}", running.log);
        running.handle.stop();
    }
    settings.external_account = external("kid-1", key);
    let mut running = scene.run(&settings);
    let issued = running.issued();
    let facts = &issued.stored.facts;
    let lifetime_s = facts.not_after - facts.not_before;
    assert!((518_300..=518_400).contains(&lifetime_s), "{lifetime_s}");
    wait_for("the authority's choice", || running.handle.status()[0].renewal_by_authority);
    let status = running.handle.status().remove(0);
    let renewed_s = status.renew_at_s.unwrap() - facts.not_before;
    assert!((lifetime_s / 3..lifetime_s * 9 / 10 + 1).contains(&renewed_s), "{renewed_s}");
    assert!(!running.log.contains("PRIVATE") && !format!("{settings:?}").contains(key));
    running.handle.stop();

    let mut settings = scene.settings(&["b.example"]);
    settings.profile = Some("absent".to_owned());
    let mut running = scene.run(&settings);
    let failure = running.failure();
    assert!(failure.what.contains("invalidProfile"), "{failure}");
    running.handle.stop();
}

#[test]
#[ignore = "needs Pebble: make prove"]
fn the_authority_brings_a_renewal_forward() {
    let Some(scene) = Scene::start("renewal", "", &[("PEBBLE_VA_NOSLEEP", "1")]) else { return };
    let settings = scene.settings(&["a.example"]);
    let mut running = scene.run(&settings);
    let first = running.issued();
    running.handle.stop();

    // What it answers is not valid: the lifetime decides.
    scene.set_renewal_info(&text(&first), "{\"suggestedWindow\": 5}");
    age(&settings);
    let mut running = scene.run(&settings);
    assert_eq!(running.certificate().source, Source::Stored);
    assert!(running.event(Duration::from_secs(2)).is_none(), "{}", running.log);
    let status = running.handle.status().remove(0);
    assert!(!status.renewal_by_authority && status.failure.is_none());
    running.handle.stop();

    scene.set_renewal_info(&text(&first), PAST);
    let mut running = scene.run(&settings);
    assert_eq!(running.certificate().source, Source::Stored);
    let second = running.issued();
    assert_ne!(second.stored.certificate, first.stored.certificate);
    assert!(scene.log().contains("is a replacement of"), "{}", scene.log());
    assert!(running.event(Duration::from_secs(2)).is_none(), "{}", running.log);
    running.handle.stop();

    // The first was replaced already, so Pebble refuses to have it replaced again.
    let stored =
        files(&settings.state).into_iter().find(|f| f.extension().is_some_and(|e| e == "pem"));
    std::fs::write(stored.as_ref().unwrap(), &first.stored.certificate.chain.bytes).unwrap();
    age(&settings);
    let mut running = scene.run(&settings);
    assert_eq!(running.certificate().source, Source::Stored);
    let third = running.issued();
    running.handle.stop();

    // One of the same authority that Pebble does not know: it answers 500.
    let orders = || scene.log().matches("POST /order-plz").count();
    let before = orders();
    std::fs::write(stored.unwrap(), unknown_certificate(&third, "a.example")).unwrap();
    age(&settings);
    let mut running = scene.run(&settings);
    assert_eq!(running.certificate().source, Source::Stored);
    running.issued();
    assert!(orders() >= before + 2, "with `replaces` and without: {}", scene.log());
    running.handle.stop();
}

/// A key and a certificate for this name that says that the authority of `like` has issued it. It ends soon.
fn unknown_certificate(like: &acme::Update, name: &str) -> String {
    let leaf = CertificateDer::from_pem_slice(text(like).as_bytes()).unwrap();
    let like = CertificateIdentifier::try_from(&leaf).unwrap();
    let issuer = URL_SAFE_NO_PAD.decode(like.authority_key_identifier.as_bytes()).unwrap();
    let (issuer_bytes, all_bytes) = (issuer.len() as u8, issuer.len() as u8 + 2);
    let extension = [&[0x30, all_bytes, 0x80, issuer_bytes][..], &issuer].concat();
    let mut params = rcgen::CertificateParams::new([name.to_owned()]).unwrap();
    let identifier = rcgen::CustomExtension::from_oid_content(&[2, 5, 29, 35], extension);
    params.custom_extensions.push(identifier);
    let since_1970 = os::clock::wall();
    params.not_before = rcgen::date_time_ymd(1970, 1, 1) + since_1970 - Duration::from_hours(100);
    params.not_after = rcgen::date_time_ymd(1970, 1, 1) + since_1970 + Duration::from_hours(1);
    let key = rcgen::KeyPair::generate().unwrap();
    format!("{}{}", key.serialize_pem(), params.self_signed(&key).unwrap().pem())
}

#[test]
#[ignore = "needs Pebble: make prove"]
fn a_name_that_fails_is_named_and_the_old_certificate_stays() {
    let entries = r#", "domainBlocklist": ["blocked.example"]"#;
    let quick = [("PEBBLE_VA_NOSLEEP", "1")];
    let Some(mut scene) = Scene::start("failing", entries, &quick) else { return };
    let settings = scene.settings(&["a.example b.example"]);
    let mut running = scene.run(&settings);
    let first = running.issued();
    running.handle.stop();

    // Nothing answers any more, and the renewal is due.
    scene.set_renewal_info(&text(&first), PAST);
    age(&settings);
    let empty = Arc::<Challenges>::default();
    scene.listeners.remove(0);
    let listener = http_01(port::HTTP, &empty);
    let mut running = scene.run(&settings);
    assert_eq!(running.certificate().source, Source::Stored);
    let failure = running.failure();
    assert!(!failure.refused.is_empty(), "{failure:?}");
    for (name, why) in &failure.refused {
        assert!(["a.example", "b.example"].contains(&name.as_str()), "{name}");
        assert!(why.contains("404") && why.contains("acme-challenge/TOKEN"), "{why}");
    }
    assert_eq!(failure.valid_until_s, Some(first.stored.facts.not_after));
    let wait_s = failure.retry_at_s - os::clock::wall().as_secs().cast_signed();
    assert!((200..=380).contains(&wait_s), "{wait_s}");
    let kept = acme::stored(&settings, &settings.certificates[0].names).unwrap().unwrap();
    assert_eq!(kept.certificate, first.stored.certificate);
    running.handle.stop();
    drop(listener);

    // The failed order is not continued.
    scene.listeners.push(http_01(port::HTTP, &scene.challenges));
    let mut running = scene.run(&settings);
    assert_eq!(running.certificate().source, Source::Stored);
    running.issued();
    running.handle.stop();

    let mut running = scene.run(&scene.settings(&["blocked.example", "c.example"]));
    let failure = running.failure();
    assert!(failure.what.contains("rejectedIdentifier"), "{failure}");
    assert_eq!(running.issued().index, 1);
    running.handle.stop();
}

#[test]
#[ignore = "needs Pebble: make prove"]
fn a_directory_that_comes_back_is_used_within_its_wait() {
    let quick = [("PEBBLE_VA_NOSLEEP", "1")];
    let Some(mut scene) = Scene::prepare("outage", "", &quick) else { return };
    let mut running = scene.run(&scene.settings(&["a.example", "b.example", "c.example"]));
    let failure = running.failure();
    assert!(failure.what.contains("cannot connect"), "{failure}");
    // One attempt for all three.
    assert!(running.event(Duration::from_secs(2)).is_none(), "{}", running.log);
    scene.start_pebble();
    for _ in 0..3 {
        running.issued();
    }
    running.handle.stop();
}

/// Another process: it obtains the certificates of the test that started it, until it is killed.
#[test]
#[ignore = "started by other tests"]
fn child() {
    let Some(words) = std::env::var_os("WEIR_ACME_CHILD") else { return };
    let words = words.into_string().unwrap();
    let [url, ca, state, http, names] = words.split('|').collect::<Vec<_>>()[..] else {
        panic!("{words}");
    };
    let ca = std::fs::read_to_string(ca).unwrap();
    let settings = settings(url, &ca, Path::new(state), &[names]);
    let challenges = Arc::<Challenges>::default();
    let _listener = (http != "0").then(|| http_01(http.parse().unwrap(), &challenges));
    let mut running = Running::start(&settings, &challenges);
    loop {
        match running.event(PATIENCE) {
            Some(Event::Certificate(update)) => println!("CHILD {:?}", update.source),
            Some(other) => println!("CHILD {other:?}"),
            None => return running.handle.stop(),
        }
    }
}

fn start_child(scene: &Scene, settings: &Acme, http: u16) -> Process {
    let ca = scene.folder.0.join("ca.pem");
    std::fs::write(&ca, &scene.pki.ca).unwrap();
    let names = settings.certificates[0].names.join(" ");
    let state = settings.state.display();
    let words = format!("{}|{}|{state}|{http}|{names}", settings.directory, ca.display());
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--ignored", "--exact", "child", "--nocapture"]).env("WEIR_ACME_CHILD", words);
    Process::start(&mut command)
}

#[test]
#[ignore = "needs Pebble: make prove"]
fn an_order_is_continued_after_a_kill_at_any_moment() {
    // Up to three seconds for each of three validations: kills hit every state of an order.
    let faults = [("PEBBLE_VA_SLEEPTIME", "3"), ("PEBBLE_WFE_NONCEREJECT", "0")];
    let Some(mut scene) = Scene::start("kill", "", &faults) else { return };
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut rng = fastrand::Rng::with_seed(seed);
    scene.listeners.remove(0);
    for round in 0..6 {
        let settings = scene.settings(&[&format!("a{round}.example b{round}.example")]);
        let mut first = start_child(&scene, &settings, port::HTTP);
        let state = State::open(&settings, None).unwrap();
        let folder = settings.state.clone();
        wait_for("an order", || is_under_way(&folder));
        #[allow(clippy::disallowed_methods, reason = "the moment of the kill is random")]
        std::thread::sleep(Duration::from_millis(rng.u64(0..3000)));
        first.kill();
        let issued_before = state.certificate(&settings.certificates[0].names).unwrap().is_some();

        let listener = http_01(port::HTTP, &scene.challenges);
        let begun = os::clock::now();
        let mut running = scene.run(&settings);
        let mut update = running.event(PATIENCE);
        // While nothing listened, a validation may have failed: that ends the order.
        if let Some(Event::Failed(failure)) = update {
            println!("round {round}: {failure}");
            running.handle.stop();
            running = scene.run(&settings);
            update = running.event(PATIENCE);
        }
        let Some(Event::Certificate(update)) = update else {
            panic!("round {round}: {update:?}; {}", running.log);
        };
        let took = os::clock::now().since(begun);
        println!("round {round}: {:?} after {took:?}, before: {issued_before}", update.source);
        assert_eq!(update.source == Source::Stored, issued_before);
        running.handle.stop();
        assert!(!is_under_way(&settings.state));
        drop(listener);
    }
}

#[test]
#[ignore = "needs Pebble: make prove"]
fn two_processes_with_one_state_directory_order_once() {
    let Some(scene) = Scene::start("two", "", &[("PEBBLE_VA_SLEEPTIME", "2")]) else { return };
    for round in 0..3 {
        let settings = scene.settings(&[&format!("a{round}.example")]);
        // Either may be first. The child has no listener of its own; this process answers for both
        // only if it orders, so the child starts second.
        let mut running = scene.run(&settings);
        let folder = settings.state.clone();
        wait_for("an order", || is_under_way(&folder));
        let child = start_child(&scene, &settings, 0);
        let update = running.issued();
        wait_for("the other process", || child.written().contains("CHILD "));
        let said = child.written();
        assert!(said.contains("CHILD AnotherProcess") || said.contains("CHILD Stored"), "{said}");
        assert_eq!(update.index, 0);
        running.handle.stop();
    }
    assert_eq!(scene.log().matches("Added order").count(), 3, "{}", scene.log());
}

#[test]
#[ignore = "needs Pebble: make prove"]
fn a_stop_in_the_middle_of_an_order_is_prompt_and_the_order_goes_on() {
    let Some(scene) = Scene::start("stop", "", &[("PEBBLE_VA_SLEEPTIME", "4")]) else { return };
    let settings = scene.settings(&["a.example b.example c.example"]);
    for _ in 0..3 {
        let running = scene.run(&settings);
        let folder = settings.state.clone();
        wait_for("an order", || is_under_way(&folder));
        let begun = os::clock::now();
        running.handle.stop();
        let took = os::clock::now().since(begun);
        assert!(took < Duration::from_secs(1), "{took:?}");
    }
    let mut running = scene.run(&settings);
    let update = running.event(PATIENCE);
    // A validation between two managers finds no answer.
    if let Some(Event::Failed(_)) = update {
        running.handle.stop();
        running = scene.run(&settings);
        running.issued();
    }
    running.handle.stop();
}

#[test]
#[ignore = "needs Pebble: make prove"]
fn an_account_that_the_authority_has_forgotten_is_made_again() {
    let quick = [("PEBBLE_VA_NOSLEEP", "1")];
    let Some(mut scene) = Scene::start("forgotten", "", &quick) else { return };
    let settings = scene.settings(&["a.example"]);
    let mut running = scene.run(&settings);
    running.issued();
    running.handle.stop();
    // Pebble keeps everything in memory.
    scene.pebble = None;
    scene.start_pebble();
    let settings = scene.settings(&["b.example"]);
    let mut running = scene.run(&settings);
    let failure = running.failure();
    assert!(failure.what.contains("accountDoesNotExist"), "{failure}");
    running.handle.stop();
    let mut running = scene.run(&settings);
    running.issued();
    running.handle.stop();
}
