//! SIGKILL of one server of six after the other, under load: GETs fail only if their
//! response had begun, and each failed POST says why it was not retried. Ten
//! seconds of it in `make test`, forty in `make prove`, a minute with `PROVE=long`.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use e2e::clients::Load;
use e2e::{App, Scene, Weir, wait};
use serde_json::Value;

const KILL_EVERY: Duration = Duration::from_secs(2);
/// How long a killed server stays away.
const AWAY: Duration = Duration::from_secs(1);
const CLIENTS: u32 = 8;

#[test]
fn killed_servers_cost_what_had_begun_and_posts_that_say_why() {
    let Some(scene) = Scene::alone("kills", &["python3"]) else {
        return;
    };
    servers_are_killed(&scene, 4);
}

#[test]
#[ignore = "takes forty seconds: make prove"]
fn servers_killed_again_and_again_cost_what_had_begun_and_posts_that_say_why() {
    let Some(scene) = Scene::alone("prove-kills", &["python3"]) else {
        return;
    };
    servers_are_killed(&scene, if e2e::is_long() { 30 } else { 20 });
}

fn servers_are_killed(scene: &Scene, times: usize) {
    let mut apps: Vec<App> =
        (11..17).map(|host| App::start(scene, host, &["--work-ms", "5"])).collect();
    let service = "check = { path = \"/status\", interval = \"400ms\", timeout = \"300ms\", rise = 1, fall = 2 }";
    let servers: Vec<_> = apps.iter().map(App::address).collect();
    let weir = Weir::start(scene, &scene.one_service(service, &servers));
    let front = weir.front();
    let target = "/?size=2000";
    let gets = Load::start(scene, front, target, CLIENTS);
    let posts = Load::start_with(
        scene,
        front,
        target,
        CLIENTS,
        &["--method", "POST", "--body-bytes", "1000"],
    );

    let began = Instant::now();
    for (n, due) in (1..=times).map(|n| (n, KILL_EVERY * n as u32)) {
        wait::measure_for(due.saturating_sub(began.elapsed()));
        let app = &mut apps[n % 6];
        app.kill();
        wait::measure_for(AWAY);
        app.restart(scene);
    }
    let (gets, posts) = (gets.finish(), posts.finish());

    wait::until("the access lines", Duration::from_secs(10), || {
        let lines = weir.access().len() as u64;
        (lines >= gets.requests() + posts.requests()).then_some(())
    });
    let failed: Vec<Value> =
        weir.access().into_iter().filter(|line| line["cause"] != "completed").collect();
    let mut kinds = BTreeMap::new();
    for line in &failed {
        let name = |key: &str| line[key].as_str().unwrap_or("-").to_owned();
        let status = line["status"].to_string();
        let kind = (name("method"), status, name("cause"), name("not_retried"));
        *kinds.entry(kind).or_insert(0) += 1;
    }
    println!("GETs {:#}\nPOSTs {:#}\n{kinds:#?}", gets.json, posts.json);

    assert_eq!(gets.without_response(), 0, "{:#}", gets.json);
    assert_eq!(gets.status(200) + gets.broken_off(), gets.requests(), "{:#}", gets.json);
    assert_eq!(posts.without_response(), 0, "{:#}", posts.json);
    let had_begun = |line: &Value| line["status"] == 200;
    let unexplained = failed
        .iter()
        .filter(|line| line["not_retried"].is_null() && !had_begun(line))
        .collect::<Vec<_>>();
    assert!(unexplained.is_empty(), "{unexplained:#?}");
    let of_posts = failed.iter().filter(|line| line["method"] == "POST");
    let refused = of_posts.filter(|line| !had_begun(line)).count() as u64;
    assert_eq!(posts.status(200) + posts.broken_off() + refused, posts.requests());
    assert!(refused > 0 || times < 10, "no POST met a killed server, which is not to be believed");
}
