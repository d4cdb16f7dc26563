//! Weir follows a real Consul 1.14.11 through restarts, elections, revoked tokens, bursts of changes and hundreds
//! of services, while a steady client loses no request. Part of `make prove`; `scripts/install-consul` builds it.

#[path = "discovery/proof.rs"]
mod proof;
#[path = "discovery/stage.rs"]
#[allow(dead_code, reason = "discovery uses the rest")]
mod stage;

use std::time::{Duration, Instant};

use e2e::consul::{Cluster, Consul, Options};
use e2e::http::Connection;
use e2e::{Authority, CONSUL, Scene, Weir, wait};
use proof::{NODE, Table, entry, id, instance, seen};
use rustix::process::Signal;
use serde_json::{Value, json};
use stage::{
    SOON, Server, Steady, config, consul_at, server, source, wait_for_error, wait_for_recovery,
    wait_for_standings,
};

#[test]
#[ignore = "needs a program that only `make prove` builds"]
fn an_agent_through_checks_maintenance_a_pause_and_restarts() {
    let Some(scene) = Scene::new("prove-consul-agent", &[CONSUL]) else { return };
    let servers = [11, 12, 13].map(|host| Server::start(&scene, host));
    let another = Server::start(&scene, 14);
    let options = Options { durable: true, ..Options::default() };
    let mut consul = Consul::start_with(&scene, 20, options);
    let mut checked = instance(&servers[0]);
    checked["Check"] =
        json!({ "CheckID": "alive", "Name": "alive", "TTL": "1h", "Status": "passing" });
    consul.register(&checked);
    consul.register(&instance(&servers[1]));
    consul.put("/v1/catalog/register", &entry(&servers[2], 1));
    let text = config(&scene, &consul_at(&consul.url()), "consul = \"web\"", "");
    let weir = Weir::start(&scene, &text);
    let mut table = Table::of(Steady::start(&weir));
    table.steady.only(&[11, 12, 13]);
    switch_states(&consul, &weir, &servers, &mut table);
    pause(&mut consul, &weir, &another, &mut table);

    consul.kill();
    let error = wait_for_error(&weir, "app", &["refused"]);
    table.steady.only(&[11, 12, 13]);
    consul.restart(&scene, true);
    let ready = Instant::now();
    wait_for_recovery(&weir, "app");
    let recovered = ready.elapsed();
    wait_for_standings(&weir, &[(&[11, 12, 13], "listed")]);
    table.row("killed, restarted with its data (time since it is ready)", &error, recovered);

    consul.restart(&scene, false);
    let held = seen(&weir, &[(&[11, 12, 13], "held")]);
    table.steady.only(&[11, 12, 13]);
    table.row("restarted without its data", "3 held", held);
    consul.register(&checked);
    consul.register(&instance(&servers[1]));
    consul.put("/v1/catalog/register", &entry(&servers[2], 1));
    let listed = seen(&weir, &[(&[11, 12, 13], "listed")]);
    table.steady.only(&[11, 12, 13]);
    table.row("services are registered again", "3 listed", listed);
    table.finish();
}

/// A TTL check, and maintenance of a service and of a node.
fn switch_states(consul: &Consul, weir: &Weir, servers: &[Server; 3], table: &mut Table) {
    let web = id(&servers[1]);
    type Switch<'a> = &'a dyn Fn(bool);
    let check: Switch<'_> = &|on| if on { consul.fail("alive") } else { consul.pass("alive") };
    let service: Switch<'_> = &|on| consul.maintenance(&web, on);
    let node: Switch<'_> = &|on| consul.node_maintenance(on);
    let cases: [(&str, Switch<'_>, &[u8], &str); 3] = [
        ("TTL check", check, &[11], "critical"),
        ("maintenance of a service", service, &[12], "maintenance"),
        ("maintenance of a node", node, &[11, 12], "maintenance"),
    ];
    for (what, switch, concerned, standing) in cases {
        let others: Vec<u8> =
            [11, 12, 13].into_iter().filter(|host| !concerned.contains(host)).collect();
        switch(true);
        let after = seen(weir, &[(&others, "listed"), (concerned, standing)]);
        table.steady.only(&others);
        table.row(&format!("{what}: on"), &format!("{} {standing}", concerned.len()), after);
        switch(false);
        let after = seen(weir, &[(&[11, 12, 13], "listed")]);
        table.steady.only(&[11, 12, 13]);
        table.row(&format!("{what}: off"), "3 listed", after);
    }
}

/// The agent stands still for ten seconds.
fn pause(consul: &mut Consul, weir: &Weir, another: &Server, table: &mut Table) {
    consul.process().signal(Signal::STOP);
    wait::measure_for(Duration::from_secs(10));
    let shown = source(weir, "app");
    consul.process().signal(Signal::CONT);
    assert_eq!((&shown["listed"], &shown["held"]), (&3.into(), &0.into()), "{shown:#}");
    consul.register(&instance(another));
    let after = seen(weir, &[(&[11, 12, 13, 14], "listed")]);
    table.steady.only(&[11, 12, 13, 14]);
    let shown = format!("{} listed, error {}", shown["listed"], shown["error"]);
    table.row("stopped for 10 s (SIGSTOP)", &shown, after);
    consul.deregister(&id(another));
    wait_for_standings(weir, &[(&[11, 12, 13], "listed")]);
}

#[test]
#[ignore = "needs a program that only `make prove` builds"]
fn ten_thousand_changes_in_a_burst() {
    const WRITES: u32 = 10_000;
    const WRITERS: u32 = 4;
    const FAILING: u32 = 500;
    let Some(scene) = Scene::new("prove-consul-burst", &[CONSUL]) else { return };
    let servers = [11, 12].map(|host| Server::start(&scene, host));
    let consul = Consul::start(&scene, 20);
    consul.register(&instance(&servers[0]));
    consul.put("/v1/catalog/register", &entry(&servers[1], 1));
    let text = config(&scene, &consul_at(&consul.url()), "consul = \"web\"", "");
    let weir = Weir::start(&scene, &text);
    let mut table = Table::of(Steady::start(&weir));
    table.steady.only(&[11, 12]);
    let write = |from: u32| {
        let mut connection = Connection::open_from(scene.ip(252), consul.address()).unwrap();
        for n in (from..WRITES).step_by(WRITERS as usize) {
            // Every 20th is a new instance, which fails its check; the others change a weight.
            let body = if n % 20 == 0 {
                json!({ "Node": NODE, "Address": "127.0.0.2",
                    "Service": { "ID": format!("web-{n}"), "Service": "web", "Address": "127.0.0.3", "Port": 1 + n },
                    "Check": { "CheckID": format!("check-{n}"), "Name": "check", "Status": "critical",
                        "ServiceID": format!("web-{n}") } })
            } else {
                entry(&servers[1], 1 + n % 9)
            };
            let path = "/v1/catalog/register";
            let answer = connection.request("PUT", path, &[], body.to_string().as_bytes()).unwrap();
            assert_eq!(answer.status, 200, "{}", answer.text());
        }
    };
    let begun = Instant::now();
    std::thread::scope(|scope| {
        (0..WRITERS).for_each(|from| drop(scope.spawn(move || write(from))));
    });
    consul.put("/v1/catalog/register", &entry(&servers[1], 77));
    let (took, written) = (begun.elapsed(), Instant::now());
    wait::until("the last change", SOON, || {
        (server(&weir, servers[1].address())["weight"] == 77).then_some(())
    });
    let after = written.elapsed();
    let shown = source(&weir, "app");
    assert_eq!((&shown["listed"], &shown["not_ready"]), (&2.into(), &FAILING.into()), "{shown:#}");
    let rate = f64::from(WRITES) / took.as_secs_f64();
    table.row(
        &format!("{WRITES} writes, {rate:.0}/s"),
        &format!("2 listed, {FAILING} not ready"),
        after,
    );
    consul.put("/v1/catalog/deregister", &json!({ "Node": NODE }));
    let gone = seen(&weir, &[(&[11], "listed")]);
    table.steady.only(&[11]);
    table.row("the node with 501 of them leaves", "1 listed", gone);
    table.finish();
}

#[test]
#[ignore = "needs a program that only `make prove` builds"]
fn a_token_is_revoked_and_replaced() {
    let Some(scene) = Scene::new("prove-consul-token", &[CONSUL]) else { return };
    let servers = [11, 12, 13].map(|host| Server::start(&scene, host));
    let consul = Consul::start_with(&scene, 20, Options { acl: true, ..Options::default() });
    servers[..2].iter().for_each(|one| consul.register(&instance(one)));
    let readers =
        "service_prefix \"\" { policy = \"read\" } node_prefix \"\" { policy = \"read\" }";
    let (accessor, secret) = consul.token("readers", readers);
    let (_, another) = consul.token("others", readers);
    let (_, powerless) = consul.token("nothing", "key_prefix \"\" { policy = \"read\" }");
    let file = scene.file("consul.token", &secret);
    let consul_table =
        format!("{}\ntoken = \"${{file:{}}}\"", consul_at(&consul.url()), file.display());
    let weir = Weir::start(&scene, &config(&scene, &consul_table, "consul = \"web\"", ""));
    let mut table = Table::of(Steady::start(&weir));
    table.steady.only(&[11, 12]);
    let mut fails = |what: &str, words: &[&str], from: Instant| {
        let error = wait_for_error(&weir, "app", words);
        let after = from.elapsed();
        table.steady.only(&[11, 12]);
        wait_for_standings(&weir, &[(&[11, 12], "listed")]);
        table.row(what, &error, after);
    };
    let reload = |token: &str| {
        scene.file("consul.token", token);
        let answer = weir.ask("/api/v1/reload");
        assert_eq!(answer.status, 200, "{}", answer.text());
        Instant::now()
    };
    consul.revoke(&accessor);
    fails("token revoked", &["403", "ACL not found"], Instant::now());
    fails("reload: a token without rights", &["may not read"], reload(&powerless));
    let reloaded = reload(&another);
    wait_for_recovery(&weir, "app");
    let recovered = reloaded.elapsed();
    consul.register(&instance(&servers[2]));
    wait_for_standings(&weir, &[(&[11, 12, 13], "listed")]);
    table.steady.only(&[11, 12, 13]);
    table.row("reload: another token", "3 listed", recovered);
    let log = weir.log();
    assert!(
        [&secret, &another, &powerless].iter().all(|token| !log.contains(token.as_str())),
        "{log}"
    );
    table.finish();
}

#[test]
#[ignore = "needs a program that only `make prove` builds"]
fn the_leader_of_three_servers_is_killed() {
    let Some(scene) = Scene::new("prove-consul-cluster", &[CONSUL]) else { return };
    let servers = [11, 12, 13].map(|host| Server::start(&scene, host));
    let mut cluster = Cluster::start(&scene, [20, 21, 22], &Options::default());
    let leader = cluster.leader();
    let asked = (leader + 1) % 3;
    let consul = &cluster.servers()[asked];
    servers[..2].iter().for_each(|one| consul.register(&instance(one)));
    let text = config(&scene, &consul_at(&consul.url()), "consul = \"web\"", "");
    let weir = Weir::start(&scene, &text);
    let mut table = Table::of(Steady::start(&weir));
    table.steady.only(&[11, 12]);
    assert_eq!(cluster.kill_leader(), leader);
    let killed = Instant::now();
    let mut errors = Vec::new();
    // Any server may answer, so there are answers without a leader, too.
    while killed.elapsed() < Duration::from_secs(5) {
        let shown = source(&weir, "app");
        assert_eq!((&shown["listed"], &shown["held"]), (&2.into(), &0.into()), "{shown:#}");
        errors.extend(shown["error"].as_str().map(str::to_owned));
        table.steady.next(20);
    }
    errors.dedup();
    cluster.leader();
    let elected = killed.elapsed();
    cluster.servers()[asked].register(&instance(&servers[2]));
    let after = seen(&weir, &[(&[11, 12, 13], "listed")]);
    table.steady.only(&[11, 12, 13]);
    wait_for_recovery(&weir, "app");
    let shown = format!("errors {errors:?}; a leader after {} ms at most", elected.as_millis());
    table.row("leader killed", &shown, after);
    cluster.servers()[leader].restart(&scene, true);
    cluster.servers()[leader].wait_until_ready();
    cluster.leader();
    cluster.servers()[asked].deregister(&id(&servers[2]));
    let after = seen(&weir, &[(&[11, 12], "listed")]);
    table.steady.only(&[11, 12]);
    table.row("killed server is back", "2 listed", after);
    table.finish();
}

/// Weir follows 300 services of an agent that allows 200 connections for each client.
fn follow_three_hundred(
    scene: &Scene,
    consul: &Consul,
    ca: &str,
    connections_max: u32,
    what: &str,
) {
    const SERVICES: usize = 300;
    let (a, b) = (Server::start(scene, 11), Server::start(scene, 12));
    let service = |n: usize, server: &Server| {
        let mut instance = instance(server);
        instance["Name"] = json!(format!("s{n}"));
        instance["ID"] = json!(format!("s{n}-{}", server.address()));
        instance
    };
    (0..SERVICES).for_each(|n| consul.register(&service(n, &a)));
    let others = (1..SERVICES).map(|n| {
        format!(
            "[[route]]\npath = \"/s{n}/\"\nservice = \"s{n}\"\n\
             [service.s{n}]\ndiscover = {{ consul = \"s{n}\" }}\n"
        )
    });
    let table = format!(
        "[consul]\naddress = \"{}\"\n{ca}\nconnections_max = {connections_max}",
        consul.url()
    );
    let text = config(scene, &table, "consul = \"s0\"", &others.collect::<String>());
    let weir = Weir::start(scene, &text);
    let started = Instant::now();
    let mut table = Table::of(Steady::start(&weir));
    let mut admin = weir.admin();
    let mut with = |listed: usize| {
        let view = admin.api("/api/v1/services");
        let services = view["services"].as_array().unwrap();
        let is_good =
            |one: &&Value| one["source"]["listed"] == listed && one["source"]["error"].is_null();
        services.iter().filter(is_good).count()
    };
    wait::until("all services", SOON, || (with(1) == SERVICES).then_some(()));
    table.row(&format!("{what}: start"), &format!("{SERVICES} known"), started.elapsed());
    for n in [0, 150, SERVICES - 1] {
        consul.register(&service(n, &b));
        let (from, name) =
            (Instant::now(), if n == 0 { "app".to_owned() } else { format!("s{n}") });
        wait::until("the change", SOON, || (source(&weir, &name)["listed"] == 2).then_some(()));
        table.row(&format!("{what}: service {n} changes"), "2 listed", from.elapsed());
    }
    table.steady.only(&[11, 12]);
    (0..SERVICES).for_each(|n| consul.register(&service(n, &b)));
    let from = Instant::now();
    wait::until("all changes", SOON, || (with(2) == SERVICES).then_some(()));
    table.row(&format!("{what}: all change"), &format!("{SERVICES} with 2 listed"), from.elapsed());
    assert!(!weir.log().contains("answers 429"), "{}", weir.log());
    table.finish();
}

#[test]
#[ignore = "needs a program that only `make prove` builds"]
fn three_hundred_services_over_http2() {
    let Some(scene) = Scene::new("prove-consul-http2", &[CONSUL]) else { return };
    let authority = Authority::new(&scene, "Consul CA");
    let pair = authority.issue("consul", &[&scene.ip(20).to_string()]);
    let (tls, most) = (Some(pair), Some(200));
    let options = Options { tls, connections_per_client_max: most, ..Options::default() };
    let consul = Consul::start_with(&scene, 20, options);
    follow_three_hundred(&scene, &consul, &authority.ca(), 100, "HTTP/2, TLS");
}

#[test]
#[ignore = "needs a program that only `make prove` builds"]
fn three_hundred_services_over_http1() {
    let Some(scene) = Scene::new("prove-consul-http1", &[CONSUL]) else { return };
    let options = Options { connections_per_client_max: Some(200), ..Options::default() };
    let consul = Consul::start_with(&scene, 20, options);
    follow_three_hundred(&scene, &consul, "", 100, "HTTP/1.1");
}

#[test]
#[ignore = "needs a program that only `make prove` builds"]
fn the_time_from_registering_to_the_first_request() {
    let Some(scene) = Scene::new("prove-consul-time", &[CONSUL]) else { return };
    let first = Server::start(&scene, 11);
    let consul = Consul::start(&scene, 20);
    consul.register(&instance(&first));
    let text = config(
        &scene,
        &format!("[consul]\naddress = \"{}\"", consul.url()),
        "consul = \"web\"",
        "",
    );
    let weir = Weir::start(&scene, &text);
    let steady = Steady::start_with(&weir, "/", 8);
    steady.only(&[11]);
    let mut times = Vec::new();
    // Each a new server: one that comes back again and again is used last.
    for host in 60..110 {
        let new = Server::start(&scene, host);
        // Weir asks for a service every 50 ms at most; a change that follows another sooner waits for that.
        wait::measure_for(Duration::from_millis(100));
        consul.register(&instance(&new));
        let registered = Instant::now();
        let at = wait::until("the first request", SOON, || new.first_at());
        times.push(at.saturating_duration_since(registered));
        consul.deregister(&id(&new));
        wait_for_standings(&weir, &[(&[11], "listed")]);
        steady.only(&[11]);
    }
    times.sort();
    let ms =
        |share: f64| times[((times.len() - 1) as f64 * share).round() as usize].as_secs_f64() * 1e3;
    println!(
        "from registering to the first request, 50 times: p50 {:.1} ms, p99 {:.1} ms, most {:.1} ms",
        ms(0.5),
        ms(0.99),
        ms(1.0)
    );
    steady.finish();
}

/// The states of the checks of the service `edge`, by the IDs of its instances.
fn edges(consul: &Consul) -> Vec<(String, String)> {
    let all = consul.get("/v1/health/service/edge").json();
    let of = |one: &Value| {
        let id = one["Service"]["ID"].as_str().unwrap_or_default().to_owned();
        let own = one["Checks"].as_array().into_iter().flatten();
        let mut own = own.filter(|check| check["ServiceID"] == id.as_str());
        let status = own.next().and_then(|check| check["Status"].as_str()).unwrap_or_default();
        (id, status.to_owned())
    };
    all.as_array().into_iter().flatten().map(of).collect()
}

#[test]
#[ignore = "needs a program that only `make prove` builds"]
fn a_listener_is_registered_until_weir_stops() {
    let Some(scene) = Scene::new("prove-consul-register", &[CONSUL]) else { return };
    let server = Server::start(&scene, 11);
    let mut consul = Consul::start_with(&scene, 20, Options { acl: true, ..Options::default() });
    let rules = "service \"edge\" { policy = \"write\" }";
    let (accessor, secret) = consul.token("edge", rules);
    let text = scene.config(
        "workers = 2\ndrain_delay = \"3s\"",
        &format!(
            "register = {{ consul = \"edge\", tags = [\"public\"] }}\n\n[consul]\naddress = \"{}\"\n\
             token = \"{secret}\"\n\n[[route]]\nservice = \"app\"\n\n[service.app]\n{}",
            consul.url(),
            e2e::server_tables("app", [server.address()])
        ),
    );
    let mut weir = Weir::start(&scene, &text);
    let entry = |status: &str| vec![("weir-edge-8080".to_owned(), status.to_owned())];
    let wait_for = |consul: &Consul, what: &str, wanted: &[(String, String)]| {
        wait::until(what, SOON, || (edges(consul) == wanted).then_some(()));
    };
    wait_for(&consul, "the entry", &entry("passing"));
    let all = consul.get("/v1/health/service/edge?passing").json();
    let service = &all[0]["Service"];
    assert_eq!(
        (&service["Address"], &service["Port"], &service["Tags"]),
        (&json!(scene.ip(1)), &json!(8080), &json!(["public"])),
        "{service:#}"
    );
    // Without data, it does not know the token either: that is registered again first.
    consul.restart(&scene, false);
    let answer = consul.get("/v1/health/service/edge").json();
    assert_eq!(answer, json!([]), "{answer:#}");
    weir.wait_for_log(&["cannot keep the entry in Consul"], SOON);
    let line = weir.api("/api/v1/status")["listeners"][0]["registration"]["error"].clone();
    assert!(line.as_str().is_some_and(|line| !line.contains(&secret)), "{line}");
    consul.put("/v1/acl/policy", &json!({ "Name": "edge", "Rules": rules }));
    let again = json!({
        "AccessorID": accessor, "SecretID": secret, "Policies": [{ "Name": "edge" }],
    });
    consul.put("/v1/acl/token", &again);
    wait_for(&consul, "the entry again", &entry("passing"));
    weir.begin_to_stop();
    wait_for(&consul, "the check to fail", &entry("critical"));
    assert_eq!(e2e::http::get(weir.front(), "/").unwrap().status, 200, "the listener is open");
    assert_eq!(weir.wait(SOON).code, Some(0));
    assert_eq!(edges(&consul), []);
}

/// How many routes are published and held.
fn routes(weir: &Weir) -> (u64, u64) {
    let shown = weir.api("/api/v1/routes/published");
    let count = |key: &str| shown["source"][key].as_u64().unwrap_or_default();
    (count("published"), count("held"))
}

fn answers_as(weir: &Weir, host: &str) -> bool {
    let answer = e2e::http::get_with(weir.front(), "/", &[&format!("Host: {host}")]);
    answer.is_ok_and(|answer| answer.status == 200)
}

#[test]
#[ignore = "needs a program that only `make prove` builds"]
fn routes_from_tags_through_restarts_and_a_burst() {
    const AS_WEB: &[&str] = &["Host: web.apps.example"];
    const BURST: usize = 1000;
    let Some(scene) = Scene::new("prove-consul-tags", &[CONSUL]) else { return };
    let server = Server::start(&scene, 11);
    let options = Options { durable: true, ..Options::default() };
    let mut consul = Consul::start_with(&scene, 20, options);
    let text = scene.config(
        "workers = 2\nreload = { watch = false }",
        &format!("{}\nroutes = {{ hosts = [\"*.apps.example\"] }}\n", consul_at(&consul.url())),
    );
    let weir = Weir::start(&scene, &text);
    let mut web = instance(&server);
    web["Tags"] = json!(["weir.route=web.apps.example", "v1"]);
    let begun = Instant::now();
    consul.register(&web);
    wait::until("the route", SOON, || answers_as(&weir, "web.apps.example").then_some(()));
    let first = begun.elapsed();
    let mut table = Table::of(Steady::start_as(&weir, "/", AS_WEB, 2));
    table.row("a service with a tag is registered", "first answer", first);

    consul.kill();
    let source = || weir.api("/api/v1/routes/published")["source"].clone();
    let error = wait::until("an error", SOON, || source()["error"].as_str().map(str::to_owned));
    table.steady.only(&[11]);
    consul.restart(&scene, true);
    let ready = Instant::now();
    wait::until("an answer", SOON, || source()["error"].is_null().then_some(()));
    table.row("killed, restarted with its data", &error, ready.elapsed());

    consul.restart(&scene, false);
    let ready = Instant::now();
    wait::until("a held route", SOON, || (routes(&weir) == (0, 1)).then_some(()));
    table.steady.only(&[11]);
    table.row("restarted without its data", "1 held", ready.elapsed());
    consul.register(&web);
    wait::until("the route again", SOON, || (routes(&weir) == (1, 0)).then_some(()));

    let begun = Instant::now();
    for number in 0..BURST {
        let node = json!({
            "Node": "burst", "Address": "127.0.0.1", "SkipNodeUpdate": number > 0,
            "Service": {
                "ID": format!("s{number}"), "Service": format!("s{number}"),
                "Address": server.address().ip(), "Port": server.address().port(),
                "Tags": [format!("weir.route=s{number}.apps.example")],
            },
        });
        consul.put("/v1/catalog/register", &node);
    }
    let registered = begun.elapsed();
    let all = 1 + BURST as u64;
    wait::until("all routes", Duration::from_mins(1), || (routes(&weir) == (all, 0)).then_some(()));
    let last = format!("s{}.apps.example", BURST - 1);
    wait::until("the last one", Duration::from_mins(1), || answers_as(&weir, &last).then_some(()));
    table.row(
        &format!("{BURST} services registered in {:.1} s", registered.as_secs_f64()),
        "all routes",
        begun.elapsed().saturating_sub(registered),
    );
    table.steady.only(&[11]);
    table.finish();
}

#[test]
#[ignore = "needs a program that only `make prove` builds"]
fn an_entry_that_another_process_has_replaced_stays() {
    let Some(scene) = Scene::new("prove-consul-replaced", &[CONSUL]) else { return };
    let server = Server::start(&scene, 11);
    let consul = Consul::start(&scene, 20);
    let text = scene.config(
        "workers = 2\ndrain_delay = \"1s\"",
        &format!(
            "register = {{ consul = \"edge\", id = \"edge-1\" }}\n\n[consul]\naddress = \"{}\"\n\n\
             [[route]]\nservice = \"app\"\n\n[service.app]\n{}",
            consul.url(),
            e2e::server_tables("app", [server.address()])
        ),
    );
    let mut weir = Weir::start(&scene, &text);
    wait::until("the entry", SOON, || {
        (edges(&consul) == [("edge-1".to_owned(), "passing".to_owned())]).then_some(())
    });
    consul.register(&json!({ "ID": "edge-1", "Name": "edge", "Address": "10.9.9.9", "Port": 99 }));
    weir.begin_to_stop();
    weir.wait_for_log(&["another process has registered edge-1 (10.9.9.9:99)"], SOON);
    assert_eq!(weir.wait(SOON).code, Some(0));
    let all = consul.get("/v1/health/service/edge").json();
    assert_eq!(all[0]["Service"]["Port"], 99, "{all:#}");
}
