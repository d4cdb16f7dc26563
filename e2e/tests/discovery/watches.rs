//! What Weir asks Consul for, and how: the query, the token, which must stay secret, and the number of
//! connections.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use e2e::consul::{FakeConsul, Instance};
use e2e::polling::Fault;
use e2e::{Scene, Weir, run, wait};

use super::changes::{consul_with, instances};
use super::stage::{
    SOON, Server, all_shown, config, has_no_secret, source, wait_for_error, wait_for_standings,
};

const TOKEN: &str = "0b50e7e1-8d3c-4f0e-9d7c-5ec4e7000001";

#[test]
fn the_token_is_sent_and_shown_nowhere() {
    let Some(scene) = Scene::new("discovery-token", &[]) else { return };
    let a = Server::start(&scene, 11);
    let fake = consul_with(&scene, &[&a]);
    let secret = scene.file("consul.token", TOKEN);
    let state = scene.folder().join("state");
    std::fs::create_dir_all(&state).unwrap();
    let top = format!(
        "state_directory = \"{}\"\n[consul]\naddress = \"{}\"\nwait = \"1s\"\ndatacenters = [\"east 1\"]\n\
         token = \"${{file:{}}}\"",
        state.display(),
        fake.url(),
        secret.display()
    );
    let text = config(&scene, &top, "consul = \"web\", tag = \"v2/ä\"", "");
    let place = scene.file("weir.toml", &text).display().to_string();
    let checked =
        [&["check", &place][..], &["check", "--json", &place], &["check", "--file-only", &place]]
            .map(|words| run(&scene, words));
    let weir = Weir::start(&scene, &text);
    wait_for_standings(&weir, &[(&[11], "listed")]);
    wait::until("a question that waits", SOON, || {
        fake.requests().iter().any(|one| one.parameter("index").is_some()).then_some(())
    });
    for asked in fake.take_requests() {
        assert_eq!(asked.path, "/v1/health/service/web");
        assert_eq!(asked.token.as_deref(), Some(TOKEN), "{asked:?}");
        let parameters = ["tag", "dc", "stale", "passing"].map(|name| asked.parameter(name));
        assert_eq!(
            parameters,
            [Some("v2%2F%C3%A4"), Some("east%201"), Some(""), None],
            "{asked:?}"
        );
        if asked.parameter("index").is_some() {
            assert_eq!(asked.parameter("wait"), Some("1s"), "{asked:?}");
        }
    }
    fake.set_fault(Some(Fault::acl_not_found()));
    wait_for_error(&weir, "app", &["403"]);
    // A reload shows what has changed.
    let changed =
        text.replace("stale", "").replace("wait = \"1s\"", "wait = \"2s\"\nstale = false");
    super::reload::reload(&scene, &weir, &changed);
    fake.set_fault(None);
    wait::until("questions to the leader", SOON, || {
        fake.take_requests().iter().any(|one| one.parameter("stale").is_none()).then_some(())
    });
    let mut shown = all_shown(&scene, &weir);
    shown.extend(checked.into_iter().flat_map(|one| [one.stdout, one.stderr]));
    for file in std::fs::read_dir(&state).unwrap().flatten() {
        shown.push(String::from_utf8_lossy(&std::fs::read(file.path()).unwrap_or_default()).into());
    }
    has_no_secret(&shown, &[TOKEN]);
    assert!(shown.iter().any(|text| text.contains("east 1")), "the configuration is shown");
}

#[test]
fn services_beyond_the_limit_of_connections_take_turns() {
    const SERVICES: usize = 150;
    const CONNECTIONS: usize = 20;
    let Some(scene) = Scene::new("discovery-turns", &[]) else { return };
    let (a, b) = (Server::start(&scene, 11), Server::start(&scene, 12));
    let fake = FakeConsul::start(scene.address(40, 8500));
    for n in 0..SERVICES {
        fake.set(&format!("s{n}"), &instances(&[&a]));
    }
    let services: String = (0..SERVICES)
        .map(|n| {
            format!(
                "[service.s{n}]\ndiscover = {{ consul = \"s{n}\" }}\n\
                 [[route]]\npath = \"/s{n}/\"\nservice = \"s{n}\"\n"
            )
        })
        .collect();
    let text = scene.config(
        "workers = 2\nreload = { watch = false }",
        &format!(
            "[consul]\naddress = \"{}\"\nconnections_max = {CONNECTIONS}\n{services}",
            fake.url()
        ),
    );
    let (is_over, most) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                most.fetch_max(fake.open_connections(), Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let weir = Weir::start(&scene, &text);
            see_every_service(&weir, &fake, &a, &b, SERVICES);
        }));
        is_over.store(true, Ordering::Relaxed);
        if let Err(panic) = result {
            std::panic::resume_unwind(panic);
        }
    });
    let most = most.into_inner();
    println!("{most} connections at most");
    assert!((2..=CONNECTIONS).contains(&most), "{most} connections");
}

/// All services know their servers, and see changes within half a minute.
fn see_every_service(weir: &Weir, fake: &FakeConsul, a: &Server, b: &Server, count: usize) {
    let mut admin = weir.admin();
    let mut with = |listed: usize| {
        let view = admin.api("/api/v1/services");
        let services = view["services"].as_array().unwrap();
        services.iter().filter(|one| one["source"]["listed"] == listed).count()
    };
    wait::until("the servers of all services", SOON, || (with(1) == count).then_some(()));
    let mut slowest = Duration::ZERO;
    for n in [0, 77, count - 1] {
        let name = format!("s{n}");
        let set = Instant::now();
        fake.set(&name, &instances(&[a, b]));
        wait::until("the change", SOON, || (source(weir, &name)["listed"] == 2).then_some(()));
        slowest = slowest.max(set.elapsed());
    }
    println!("a change is seen after {slowest:?} at most");
    // All at once.
    for n in 0..count {
        let third = Instance::new("third", "127.0.0.9:8080".parse().unwrap());
        fake.set(&format!("s{n}"), &[instances(&[a, b]), vec![third]].concat());
    }
    wait::until("the change of all", SOON, || (with(3) == count).then_some(()));
}
