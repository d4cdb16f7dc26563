//! What the tests against ACME servers share: settings, certificates, listeners that answer
//! challenges, and the manager with its events.

#![allow(dead_code, reason = "each test file uses a part")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test code")]

use std::fmt::Write as _;
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use acme::{Event, Failure, Handle, Source, State, Update};
use model::{Acme, AcmeCertificate, AcmeChallenge, AcmeRenewal, Material};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tls::rustls::server::Acceptor;
use tls::rustls::{ServerConfig, ServerConnection};
use tls::{Challenges, SharedCertificates};

/// How long a test waits for what takes seconds.
pub(crate) const PATIENCE: Duration = Duration::from_secs(90);

/// A folder of one test, removed with it.
pub(crate) struct Folder(pub PathBuf);

impl Folder {
    pub(crate) fn new(test: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("weir-acme-{test}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A port that nothing listens on, below those that the kernel gives to clients of other tests (from
/// 32,768 on, `net.ipv4.ip_local_port_range`).
pub(crate) fn unused_port() -> u16 {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let number = std::process::id() as usize * 4 + NEXT.fetch_add(1, Ordering::Relaxed);
    16_000 + (number % 16_000) as u16
}

/// A private authority, and a server certificate for `localhost` of it.
pub(crate) struct Pki {
    pub(crate) ca: String,
    pub(crate) chain: String,
    pub(crate) key: String,
}

impl Pki {
    pub(crate) fn new() -> Pki {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let ca = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let key = KeyPair::generate().unwrap();
        let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
        let leaf = CertificateParams::new(names).unwrap().signed_by(&key, &ca).unwrap();
        Pki { ca: ca.pem(), chain: leaf.pem(), key: key.serialize_pem() }
    }

    /// Returns the configuration of a server with this certificate.
    pub(crate) fn server(&self) -> Arc<ServerConfig> {
        let certificate = model::Certificate {
            chain: material("chain.pem", &self.chain),
            key: material("key.pem", &self.key),
            ocsp: None,
            acme: None,
        };
        let tls = model::ListenerTls {
            certificates: vec![certificate],
            unknown_names: model::UnknownNames::First,
            version_min: model::TlsVersion::Tls12,
            ciphers: Vec::new(),
            client_certificates: None,
            hsts: None,
        };
        tls::server(&tls, &[b"http/1.1"]).unwrap()
    }
}

pub(crate) fn material(path: &str, text: &str) -> Material {
    Material { path: path.into(), bytes: text.as_bytes().into() }
}

/// Settings with these certificates, each a list of names separated by spaces.
pub(crate) fn settings(directory: &str, ca: &str, state: &Path, certificates: &[&str]) -> Acme {
    let names =
        |names: &&str| AcmeCertificate { names: names.split(' ').map(str::to_owned).collect() };
    Acme {
        directory: directory.into(),
        ca: material("ca.pem", ca),
        contacts: vec!["admin@example.org".to_owned()],
        terms_agreed: true,
        external_account: None,
        certificates: certificates.iter().map(names).collect(),
        challenge: AcmeChallenge::Http01,
        profile: None,
        renewal: AcmeRenewal::default(),
        state: state.to_path_buf(),
    }
}

/// A running manager and what it has reported.
pub(crate) struct Running {
    pub(crate) handle: Handle,
    events: Receiver<Event>,
    /// Everything reported so far, as a log would show it.
    pub(crate) log: String,
}

impl Running {
    pub(crate) fn start(settings: &Acme, challenges: &Arc<Challenges>) -> Running {
        Running::in_fleet(settings, challenges, Arc::default())
    }

    /// With others of a fleet.
    pub(crate) fn in_fleet(
        settings: &Acme,
        challenges: &Arc<Challenges>,
        shared: Arc<SharedCertificates>,
    ) -> Running {
        let state = State::open(settings, None).unwrap();
        let (sender, events) = channel();
        let report = Box::new(move |event| {
            let _ = sender.send(event);
        });
        let settings = Arc::new(settings.clone());
        let handle = acme::start(settings, state, Arc::clone(challenges), shared, report).unwrap();
        Running { handle, events, log: String::new() }
    }

    /// Returns the next event, if there is one within `time`.
    pub(crate) fn event(&mut self, time: Duration) -> Option<Event> {
        match self.events.recv_timeout(time) {
            Ok(event) => {
                let _ = writeln!(self.log, "{event:?}");
                Some(event)
            }
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => panic!("the thread has ended: {}", self.log),
        }
    }

    /// Waits for a certificate; a failure before it fails the test.
    pub(crate) fn certificate(&mut self) -> Update {
        match self.event(PATIENCE) {
            Some(Event::Certificate(update)) => update,
            other => panic!("no certificate but {other:?}; before: {}", self.log),
        }
    }

    pub(crate) fn issued(&mut self) -> Update {
        let update = self.certificate();
        assert_eq!(update.source, Source::Issued, "{}", self.log);
        update
    }

    pub(crate) fn failure(&mut self) -> Failure {
        match self.event(PATIENCE) {
            Some(Event::Failed(failure)) => failure,
            other => panic!("no failure but {other:?}; before: {}", self.log),
        }
    }
}

/// A server thread that ends with this.
pub(crate) struct Server {
    pub(crate) port: u16,
    end: Arc<AtomicBool>,
    pub(crate) served: Arc<AtomicUsize>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Serves each connection by `serve`, one after the other, on a port of 127.0.0.1 (0: any).
    pub(crate) fn start(port: u16, serve: impl Fn(TcpStream) + Send + 'static) -> Server {
        let listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
        listener.set_nonblocking(true).unwrap();
        let port = listener.local_addr().unwrap().port();
        let (end, served) = (Arc::new(AtomicBool::new(false)), Arc::<AtomicUsize>::default());
        let (ends, counts) = (Arc::clone(&end), Arc::clone(&served));
        let thread = std::thread::spawn(move || {
            while !ends.load(Ordering::Relaxed) {
                match listener.accept() {
                    Ok((stream, _)) => {
                        stream.set_nonblocking(false).unwrap();
                        stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
                        counts.fetch_add(1, Ordering::Relaxed);
                        serve(stream);
                    }
                    Err(error) if error.kind() == ErrorKind::WouldBlock => {
                        #[allow(clippy::disallowed_methods, reason = "a thread of a test")]
                        std::thread::sleep(Duration::from_millis(5));
                    }
                    Err(error) => panic!("accept: {error}"),
                }
            }
        });
        Server { port, end, served, thread: Some(thread) }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Reads a request's head, and its body if it names a length.
pub(crate) fn request(stream: &mut impl Read) -> Option<String> {
    let mut bytes = Vec::new();
    let mut piece = [0; 4096];
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| {
                let (name, value) = line.split_once(':')?;
                name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().ok())?
            });
            if body.len() >= length.unwrap_or(0) {
                return Some(text);
            }
        }
        match stream.read(&mut piece) {
            Ok(count) if count > 0 => bytes.extend_from_slice(&piece[..count]),
            _ => return None,
        }
    }
}

/// Answers HTTP-01 validations, as a listener on port 80 does.
pub(crate) fn http_01(port: u16, challenges: &Arc<Challenges>) -> Server {
    let challenges = Arc::clone(challenges);
    Server::start(port, move |mut stream| {
        let Some(request) = request(&mut stream) else { return };
        let path = request.split(' ').nth(1).unwrap_or_default();
        let answer = match challenges.http(path) {
            Some(body) => format!(
                "HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nContent-Length: {}\
                 \r\nConnection: close\r\n\r\n{body}",
                body.len()
            ),
            None => {
                "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".into()
            }
        };
        let _ = stream.write_all(answer.as_bytes());
    })
}

/// Answers TLS-ALPN-01 validations, as a listener on port 443 does: it looks at the `ClientHello`
/// first, and closes after the handshake.
pub(crate) fn tls_alpn_01(
    port: u16,
    challenges: &Arc<Challenges>,
    normal: Arc<ServerConfig>,
) -> Server {
    let challenges = Arc::clone(challenges);
    Server::start(port, move |mut stream| {
        let mut acceptor = Acceptor::default();
        let accepted = loop {
            match acceptor.read_tls(&mut stream) {
                Ok(count) if count > 0 => {}
                _ => return,
            }
            match acceptor.accept() {
                Ok(Some(accepted)) => break accepted,
                Ok(None) => {}
                Err(_) => return,
            }
        };
        let offered: Vec<Vec<u8>> =
            accepted.client_hello().alpn().into_iter().flatten().map(<[u8]>::to_vec).collect();
        let config = challenges.config_for(offered.iter().map(Vec::as_slice), &normal).unwrap();
        if let Ok(mut session) = accepted.into_connection(config) {
            let _ = session.complete_io(&mut stream);
            session.send_close_notify();
            let _ = session.write_tls(&mut stream);
        }
    })
}

/// An HTTPS server whose answer to a request (its text) is `answer`: bytes, or nothing until the
/// client has gone.
pub(crate) fn https(
    port: u16,
    pki: &Pki,
    answer: impl Fn(&str) -> Option<Vec<u8>> + Send + 'static,
) -> Server {
    let config = pki.server();
    Server::start(port, move |stream| {
        let session = ServerConnection::new(Arc::clone(&config)).unwrap();
        let mut tls = tls::rustls::StreamOwned::new(session, stream);
        while let Some(request) = request(&mut tls) {
            match answer(&request) {
                Some(bytes) if tls.write_all(&bytes).and_then(|()| tls.flush()).is_ok() => {}
                Some(_) => return,
                None => {
                    let _ = tls.read(&mut [0]);
                    return;
                }
            }
        }
    })
}

/// Waits until `condition` holds.
pub(crate) fn wait_for(what: &str, condition: impl Fn() -> bool) {
    #[allow(clippy::disallowed_methods, reason = "a test owns its clock")]
    let begun = Instant::now();
    while !condition() {
        assert!(begun.elapsed() < PATIENCE, "waited in vain for {what}");
        #[allow(clippy::disallowed_methods, reason = "a thread of a test")]
        std::thread::sleep(Duration::from_millis(10));
    }
}
