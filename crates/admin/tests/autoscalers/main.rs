//! The listeners for autoscalers, over real sockets.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a helper that fails fails its test")]

mod external;
mod keda;

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

use admin::{Exposed, Sources};
use admin_api::services::WantedServers;
use model::{AutoscalerListener, Certificate, ListenerTls, Material, TlsVersion, UnknownNames};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};

const CONFIGURATION: &str = r#"
[[listener]]
address = "127.0.0.1:8080"
[[route]]
service = "listings"

[kubernetes]

[defaults.service]
in_flight_max = 4
scaling = { servers_max = 50 }

[service.listings]
server = [{ address = "127.0.0.1:5001" }]
[service.idle]
server = [{ address = "127.0.0.1:5001" }]
[service.new]
server = [{ address = "127.0.0.1:5001" }]
[service.unlimited]
server = [{ address = "127.0.0.1:5001" }]
[service."shop/web:8080"]
discover = { kubernetes = "shop/web" }
"#;

/// The numbers of services; `None`: no limit. Those that are not here have not been measured.
#[derive(Clone, Default)]
struct Wanted(Arc<Mutex<HashMap<Arc<str>, WantedServers>>>);

impl Wanted {
    fn set(&self, service: &str, number: Option<u32>) {
        let wanted = WantedServers {
            number,
            reason: "steady".to_owned(),
            why: "for a test".to_owned(),
            calls: None,
        };
        self.0.lock().unwrap().insert(service.into(), wanted);
    }

    /// Returns what listeners show: 13 for `listings`, 0 for `idle`, 2 for the Service `shop/web`.
    fn exposed(&self) -> Exposed {
        for (service, number) in [
            ("listings", Some(13)),
            ("idle", Some(0)),
            ("unlimited", None),
            ("shop/web:8080", Some(2)),
        ] {
            self.set(service, number);
        }
        let checked = match config::check(CONFIGURATION, "test.toml", &()) {
            Ok(checked) => checked,
            Err(report) => panic!("{}", report.render(false)),
        };
        let registry = Arc::new(decide::Registry::new());
        registry.publish(Arc::new(checked.snapshot), os::clock::now());
        let wanted = Arc::clone(&self.0);
        Exposed {
            registry,
            counters: Arc::new(observe::Registry::new()),
            sources: Sources {
                wanted_servers: Some(Arc::new(move || wanted.lock().unwrap().clone())),
                ..Sources::default()
            },
            ready: Arc::default(),
            workers: 1,
            version: "test",
        }
    }
}

type Authority = CertifiedIssuer<'static, KeyPair>;

fn authority(name: &str) -> Authority {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// Returns a certificate with its key, for a server or a client of this name.
fn certificate(by: &Authority, name: &str) -> Certificate {
    let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
    params.distinguished_name.push(DnType::CommonName, name);
    let key = KeyPair::generate().unwrap();
    let material = |bytes: String| Material {
        path: Path::new("a.pem").to_path_buf(),
        bytes: bytes.as_bytes().into(),
    };
    let chain = material(params.signed_by(&key, by).unwrap().pem());
    Certificate { chain, key: material(key.serialize_pem()), ocsp: None, acme: None }
}

/// Returns a listener on loopback, with a certificate for `weir.test`.
fn listener(by: &Authority) -> AutoscalerListener {
    let tls = ListenerTls {
        certificates: vec![certificate(by, "weir.test")],
        unknown_names: UnknownNames::First,
        version_min: TlsVersion::Tls12,
        ciphers: Vec::new(),
        client_certificates: None,
        hsts: None,
    };
    AutoscalerListener { address: "127.0.0.1:0".parse().unwrap(), tls: Some(tls) }
}

/// Returns how a client verifies this authority and presents a certificate.
fn client(
    by: &Authority,
    presents: Option<Certificate>,
    alpn: &[&[u8]],
) -> Arc<tokio_rustls::rustls::ClientConfig> {
    let ca =
        Material { path: Path::new("ca.pem").to_path_buf(), bytes: by.pem().as_bytes().into() };
    let tls = model::ServiceTls {
        name: None,
        names: Vec::new(),
        ca,
        verify: true,
        certificate: presents,
    };
    tls::client(&tls, alpn).unwrap()
}
