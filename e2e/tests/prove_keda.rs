//! KEDA's own client of external scalers reads how many servers services should have. Part of `make prove`;
//! `scripts/install-keda-client` builds it.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use e2e::{
    App, Authority, KEDA_CLIENT, Pair, Process, Scene, Weir, find, http, server_tables, wait,
};

/// A load covers 15 s, and a number follows from it every 5 s.
const SOON: Duration = Duration::from_mins(1);

/// Calls Weir as KEDA does; `environment` has the TLS settings.
struct Client<'a> {
    scene: &'a Scene,
    address: SocketAddr,
    environment: Vec<String>,
}

impl Client<'_> {
    fn start(&self, name: &str, call: &str, metadata: &[&str]) -> Process {
        let program = find(KEDA_CLIENT).expect("the scene has looked for it");
        let mut words = self.environment.clone();
        words.push(program.display().to_string());
        words.extend([self.address.to_string(), call.to_owned()]);
        words.extend(metadata.iter().map(|&one| one.to_owned()));
        Process::start(self.scene, name, Path::new("/usr/bin/env"), words)
    }

    /// Returns the lines that a call prints.
    fn call(&self, call: &str, metadata: &[&str]) -> Vec<String> {
        static CALLS: AtomicU32 = AtomicU32::new(0);
        // The output of a program is appended to that of an earlier one of its name.
        let name = format!("call{}", CALLS.fetch_add(1, Relaxed));
        let finished = self.start(&name, call, metadata).wait(SOON);
        finished.stdout.lines().map(str::to_owned).collect()
    }
}

fn keda(scene: &Scene, tls: &str) -> String {
    format!("[keda]\naddress = \"{}\"\n{tls}\n", scene.address(2, 9902))
}

fn service(scaling: &str, server: SocketAddr) -> String {
    format!(
        "[service.app]\nin_flight_max = 4\npassive = false\n\
         scaling = {{ servers_max = 9, idle_after = \"5s\", scale_in_after = \"5s\"{scaling} }}\n{}",
        server_tables("app", [server])
    )
}

#[test]
#[ignore = "needs a program that only `make prove` builds"]
fn every_call_is_answered_in_clear_text_and_over_tls() {
    let Some(scene) = Scene::new("prove-keda-calls", &[KEDA_CLIENT, "python3"]) else { return };
    let app = App::start(&scene, 11, &[]);
    let ca = Authority::new(&scene, "ca");
    let (own, peer) = (ca.issue("weir", &["weir.test"]), ca.issue("keda", &["keda.test"]));
    let stranger = Authority::new(&scene, "other").issue("stranger", &["keda.test"]);
    let environment = |pair: Option<&Pair>| {
        let mut all = vec![format!("CA={}", ca.pem().display()), "NAME=weir.test".to_owned()];
        all.extend(pair.map(|pair| format!("CERTIFICATE={}", pair.chain.display())));
        all.extend(pair.map(|pair| format!("KEY={}", pair.key.display())));
        all
    };
    let tls = format!(
        "tls = {{ certificates = [{{ chain = \"{}\", key = \"{}\" }}], client_certificates = {{ ca = \"{}\" }} }}",
        own.chain.display(),
        own.key.display(),
        ca.pem().display()
    );
    for (tls, environment_of_client) in [("", Vec::new()), (&*tls, environment(Some(&peer)))] {
        let text = format!(
            "[[route]]\nservice = \"app\"\n{}{}",
            service(", servers_min = 2", app.address()),
            keda(&scene, tls)
        );
        let weir = Weir::start(&scene, &scene.config("workers = 1", &text));
        let client = Client {
            scene: &scene,
            address: scene.address(2, 9902),
            environment: environment_of_client,
        };
        let call = |call: &str, metadata: &[&str]| client.call(call, metadata);
        let app = &["service=app", "scalerAddress=weir:9902"][..];
        wait::until("the first number", SOON, || {
            (call("IsActive", app) == ["active true", "status OK "]).then_some(())
        });
        let name = "weir_service_wanted_servers";
        let target = format!("target {name} 1 1");
        assert_eq!(call("GetMetricSpec", app), [&*target, "status OK "]);
        assert_eq!(call("GetMetrics", app), [&*format!("value {name} 2 2"), "status OK "]);
        for (name, metadata, code) in [
            ("IsActive", &[][..], "InvalidArgument"),
            ("GetMetricSpec", &["service="], "InvalidArgument"),
            ("GetMetrics", &["service=other"], "NotFound"),
            ("IsActive", &["service=app", "namespace=shop"], "NotFound"),
            ("StreamIsActive", &["service=other"], "NotFound"),
            ("StreamMetricSpec", &["service=app"], "Unimplemented"),
        ] {
            let lines = call(name, metadata);
            let status = lines.last().map(String::as_str).unwrap_or_default();
            assert!(status.starts_with(&format!("status {code} ")), "{name}: {lines:?}");
        }
        if !tls.is_empty() {
            for pair in [None, Some(&stranger)] {
                let address = scene.address(2, 9902);
                let client = Client { scene: &scene, address, environment: environment(pair) };
                let lines = client.call("IsActive", &["service=app"]);
                assert!(lines.concat().starts_with("status Unavailable "), "{lines:?}");
            }
        }
        drop(weir);
    }
}

#[test]
#[ignore = "needs a program that only `make prove` builds"]
fn a_stream_follows_a_service_to_zero_and_back_and_an_upgrade_keeps_the_address() {
    let Some(scene) = Scene::new("prove-keda-stream", &[KEDA_CLIENT, "python3"]) else { return };
    let app = App::start(&scene, 11, &[]);
    let text = format!(
        "[[route]]\nservice = \"app\"\n{}{}",
        service(", servers_min = 0", app.address()),
        keda(&scene, "")
    );
    let mut weir = Weir::start(&scene, &scene.config("workers = 1", &text));
    let address = scene.address(2, 9902);
    let client = Client { scene: &scene, address, environment: Vec::new() };
    let mut stream = client.start("stream", "StreamIsActive", &["service=app"]);
    let file = scene.folder().join("stream.out");
    let said = |expected: &str| {
        wait::until(expected, SOON, || {
            let text = std::fs::read_to_string(&file).unwrap_or_default();
            text.lines().collect::<Vec<_>>().join(", ").starts_with(expected).then_some(())
        });
    };
    // At first, the number is that of the servers that are there.
    said("active true, active false");
    wait::until("a request", SOON, || {
        let answer = http::get(weir.front(), "/").ok()?;
        assert_eq!(answer.status, 200);
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        (text.lines().count() == 3).then_some(())
    });
    said("active true, active false, active true");
    said("active true, active false, active true, active false");
    let (_, successor) = weir.upgrade(SOON);
    let finished = stream.wait(SOON);
    let last = finished.stdout.lines().last().unwrap_or_default().to_owned();
    assert!(last.starts_with("status Unavailable "), "{last}");
    let spec = client.call("GetMetricSpec", &["service=app"]);
    assert_eq!(spec.last().map(String::as_str), Some("status OK "), "{spec:?}");
    assert!(successor.is_running());
}
