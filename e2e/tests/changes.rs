//! What has changed, as the API lists it: in order, across a reload and an upgrade.

use std::path::Path;
use std::time::Duration;

use e2e::{App, Scene, Weir, run, server_tables, wait};

const SOON: Duration = Duration::from_secs(20);

/// Every sentence, the oldest first.
fn recorded(weir: &Weir) -> Vec<String> {
    let changes = weir.api("/api/v1/changes");
    let changes = changes["changes"].as_array().cloned().unwrap_or_default();
    changes.iter().rev().filter_map(|one| one["what"].as_str().map(str::to_owned)).collect()
}

fn wait_for(weir: &Weir, what: &str) {
    wait::until(what, SOON, || recorded(weir).iter().any(|one| one == what).then_some(()));
}

#[test]
fn changes_are_listed_in_order_and_survive_a_reload_and_an_upgrade() {
    let Some(scene) = Scene::new("changes", &["python3"]) else { return };
    let (drained, dead) = (App::start(&scene, 11, &[]), App::start(&scene, 12, &[]));
    let addresses = [drained.address(), dead.address()];
    let config = |weight: u16| {
        let rest = format!(
            "[[route]]\nservice = \"app\"\n[service.app]\n\
             check = {{ path = \"/status\", interval = \"500ms\", fall = 2 }}\n\
             {}weight = {weight}\n",
            server_tables("app", addresses),
        );
        scene.config("workers = 1", &rest)
    };
    let mut weir = Weir::start(&scene, &config(1));
    wait::until("the first verdicts", SOON, || {
        let service = weir.api("/api/v1/services/app");
        let servers = service["servers"].as_array()?;
        servers.iter().all(|one| one["health"] == "up").then_some(())
    });
    let admin = scene.admin().to_string();
    let words = ["drain", "app", &addresses[0].to_string(), "--admin", &admin];
    assert_eq!(run(&scene, &words).code, Some(0));
    let drain = format!("{} of app is being drained.", addresses[0]);
    wait_for(&weir, &drain);
    drop(dead);
    let down = format!("{} of app is down.", addresses[1]);
    wait_for(&weir, &down);
    std::fs::write(Path::new(scene.folder()).join("weir.toml"), config(2)).unwrap();
    weir.hang_up();
    wait_for(&weir, "Configuration 2 came into force.");
    let before = recorded(&weir);
    let process =
        |pid: u32| format!("Weir {} has started as process {pid}.", env!("CARGO_PKG_VERSION"));
    let (_, new) = weir.upgrade(SOON);
    wait_for(&weir, &process(new.pid()));
    let after = recorded(&weir);
    assert_eq!(after[..before.len()], before, "{after:#?}");
    let place = |what: &str| before.iter().position(|one| one == what);
    let order = [&*drain, &*down, "Configuration 2 came into force."].map(place);
    assert!(order.is_sorted() && order[0] > Some(0), "{before:#?}");
    new.signal(rustix::process::Signal::TERM);
    wait::until("its end", SOON, || (!new.is_running()).then_some(()));
}
