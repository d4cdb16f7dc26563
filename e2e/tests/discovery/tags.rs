//! Routes that services publish in Consul's tags: changes, hostile tags, faults of Consul, starts and upgrades.

use e2e::consul::{FakeConsul, Instance};
use e2e::polling::Fault;
use e2e::{Scene, Weir, http, run, server_tables, wait};
use serde_json::Value;

use super::stage::{SOON, Server, Steady, consul_at, wait_until_saved};

const WEB: &str = "weir.route=web.apps.example";
const HOSTS: &str =
    "routes = { hosts = [\"*.apps.example\"], formats = [\"weir\", \"fabio\", \"traefik\"] }";
const AS_WEB: &[&str] = &["Host: web.apps.example"];

/// A configuration that lets services publish routes, with one host of its own and a server for that.
fn publishing(scene: &Scene, fake: &FakeConsul, own: &Server, more: &str) -> String {
    let state = scene.folder().join("state");
    std::fs::create_dir_all(&state).unwrap();
    let top = format!(
        "workers = 2\nreload = {{ watch = false }}\nstate_directory = \"{}\"",
        state.display()
    );
    scene.config(
        &top,
        &format!(
            "{}\n{HOSTS}\n\n[[route]]\nhost = \"own.apps.example\"\nservice = \"own\"\n\n[service.own]\n{}\n{more}",
            consul_at(&fake.url()),
            server_tables("own", [own.address()])
        ),
    )
}

fn instance(server: &Server, tags: &[&str]) -> Instance {
    let id = server.address().ip().to_string();
    tags.iter().fold(Instance::new(&id, server.address()), |instance, tag| instance.tag(tag))
}

fn agent(scene: &Scene) -> FakeConsul {
    FakeConsul::start(scene.address(40, 8500))
}

/// Which server answers, by its host, or the status of another answer.
fn asked(weir: &Weir, host: &str, path: &str) -> String {
    let answer = http::get_with(weir.front(), path, &[&format!("Host: {host}")]).unwrap();
    match answer.field("x-served-by") {
        Some(server) => server.to_owned(),
        None => answer.status.to_string(),
    }
}

fn wait_for(weir: &Weir, host: &str, path: &str, wanted: &str) {
    let mut last = String::new();
    let found = wait::within(SOON, || {
        last = asked(weir, host, path);
        (last == wanted).then_some(())
    });
    assert!(found.is_some(), "{host}{path} leads to {last}, not to {wanted}; {}", weir.log());
}

/// Why the route of a tag, or the tag itself, is refused.
fn refusal(weir: &Weir, tag: &str) -> Option<String> {
    let shown = weir.api("/api/v1/routes/published");
    let examples = shown["source"]["refused_examples"].as_array().cloned().unwrap_or_default();
    let is_it = |one: &&Value| one["object"].as_str().is_some_and(|text| text.contains(tag));
    examples.iter().find(is_it).and_then(|one| Some(one["why"].as_str()?.to_owned()))
}

#[test]
fn tags_publish_routes_and_their_changes_apply_without_a_reload_of_the_file() {
    let Some(scene) = Scene::new("tags-changes", &[]) else { return };
    let [own, web, other] = [11, 12, 13].map(|host| Server::start(&scene, host));
    let fake = agent(&scene);
    fake.set("web", &[instance(&web, &["v1", WEB])]);
    let weir = Weir::start(&scene, &publishing(&scene, &fake, &own, ""));
    wait_for(&weir, "web.apps.example", "/", "12");
    assert_eq!(asked(&weir, "own.apps.example", "/"), "11");
    assert_eq!(asked(&weir, "else.apps.example", "/"), "404");

    // A mistake in the file does not matter: it is not read.
    scene.file("weir.toml", "nonsense");
    let tags = ["urlprefix-shop.apps.example/cart strip=/cart"];
    fake.set("shop", &[instance(&other, &tags)]);
    wait_for(&weir, "shop.apps.example", "/cart/status", "13");
    assert_eq!(asked(&weir, "shop.apps.example", "/",), "404");
    let rule = "traefik.http.routers.r.rule=Host(`x.apps.example`) && PathPrefix(`/a`)";
    fake.set("web", &[instance(&web, &[WEB, rule])]);
    wait_for(&weir, "x.apps.example", "/a/b", "12");
    assert_eq!(asked(&weir, "x.apps.example", "/ab"), "404");

    let shown = weir.api("/api/v1/routes/published");
    let routes = shown["routes"].as_array().unwrap();
    let of_shop = routes.iter().find(|one| one["service"] == "shop").unwrap();
    assert_eq!(
        (&of_shop["path"], &of_shop["tag"]),
        (&"/cart".into(), &tags[0].into()),
        "{shown:#}"
    );
    assert!(of_shop["index"].is_u64() && of_shop["published_ms_ago"].is_number(), "{of_shop:#}");
    assert_eq!(shown["source"]["published"], 3, "{shown:#}");
    let status = run(&scene, &["status", "--admin", &scene.admin().to_string()]).stdout;
    assert!(status.contains("routes from tags in Consul: 3 published"), "{status}");
    let url = "http://shop.apps.example/cart/status";
    let explained =
        run(&scene, &["explain", "route", url, "--admin", &scene.admin().to_string()]).stdout;
    assert!(explained.contains("tags of shop in Consul"), "{explained}");
    let published = weir.metric("weir_published_routes", &["state=\"published\""]);
    assert!((published - 3.0).abs() < 0.1, "{published}");

    fake.set("web", &[instance(&web, &[rule])]);
    wait_for(&weir, "web.apps.example", "/", "404");
    fake.set("web", &[instance(&web, &[WEB]), instance(&other, &[WEB])]);
    wait_for(&weir, "web.apps.example", "/", "13");
    wait_for(&weir, "web.apps.example", "/", "12");
    weir.wait_for_log(&["routes from tags in Consul have changed"], SOON);
}

#[test]
fn services_take_over_neither_hosts_of_the_file_nor_each_others() {
    let Some(scene) = Scene::new("tags-hostile", &[]) else { return };
    let [own, web, evil] = [11, 12, 13].map(|host| Server::start(&scene, host));
    let fake = agent(&scene);
    fake.set("web", &[instance(&web, &[WEB])]);
    let settings =
        "[service.kept]\ndiscover = { consul = \"kept\" }\ntimeouts = { response = \"7s\" }\n";
    let weir = Weir::start(&scene, &publishing(&scene, &fake, &own, settings));
    wait_for(&weir, "web.apps.example", "/", "12");
    let refused = [
        ("weir.route=own.apps.example", "the file has rules for the host own.apps.example"),
        ("weir.route=evil.example", "not among the allowed ones"),
        ("weir.route=web.apps.example", "belongs to the service"),
        ("urlprefix-/everything", "host"),
        ("traefik.http.routers.r.rule=Host(`login.apps.example`) || PathPrefix(`/`)", "||"),
    ];
    let mut tags: Vec<_> = refused.iter().map(|(tag, _)| *tag).collect();
    tags.push("weir.route=new.apps.example");
    // It sorts before the service that has the route.
    fake.set("attack", &[instance(&evil, &tags)]);
    // The name of a service in the file whose servers are there.
    fake.set("own", &[instance(&evil, &["weir.route=second.apps.example"])]);
    fake.set("kept", &[instance(&evil, &["weir.route=kept.apps.example"])]);
    wait_for(&weir, "new.apps.example", "/", "13");
    wait_for(&weir, "kept.apps.example", "/", "13");
    for (tag, why) in refused {
        let said = wait::until(tag, SOON, || refusal(&weir, tag));
        assert!(said.contains(why), "{tag}: {said}");
    }
    let said = wait::until("a refusal", SOON, || refusal(&weir, "second.apps.example"));
    assert!(said.contains("the file has a service own with other servers"), "{said}");
    assert_eq!(asked(&weir, "own.apps.example", "/everything"), "11");
    assert_eq!(asked(&weir, "web.apps.example", "/"), "12");
    for host in ["evil.example", "login.apps.example", "second.apps.example"] {
        assert_eq!(asked(&weir, host, "/"), "404", "{host}");
    }
    // Not even while the owner is not listed.
    fake.set("web", &[]);
    wait::until("a route that is held", SOON, || {
        let said = refusal(&weir, "weir.route=web.apps.example")?;
        said.contains("is held for the service").then_some(())
    });
    assert_eq!(asked(&weir, "web.apps.example", "/"), "12");
    // What the owner gives up, the other may have.
    fake.set("web", &[instance(&web, &[])]);
    wait_for(&weir, "web.apps.example", "/", "13");
}

#[test]
fn a_tag_that_cannot_be_used_affects_no_other_route_and_no_reload() {
    let Some(scene) = Scene::new("tags-alone", &[]) else { return };
    let [own, web, other] = [11, 12, 13].map(|host| Server::start(&scene, host));
    let fake = agent(&scene);
    fake.set("web", &[instance(&web, &[WEB])]);
    let text = publishing(&scene, &fake, &own, "");
    let weir = Weir::start(&scene, &text);
    let odd = [
        "weir.route=a.apps.example/${HOME}",
        "weir.route=b.apps.example/x%3Fy%23z",
        "urlprefix-c.apps.example/%24%7BCONSUL_HTTP_TOKEN%7D",
        "weir.route=d.apps.example/*/",
    ];
    fake.set("odd", &[instance(&other, &odd)]);
    wait_for(&weir, "b.apps.example", "/x%3Fy%23z", "13");
    // Texts that look like variables are texts.
    wait_for(&weir, "a.apps.example", "/$%7BHOME%7D/b", "13");
    assert_eq!(asked(&weir, "web.apps.example", "/"), "12");
    let said = wait::until("a refusal", SOON, || refusal(&weir, odd[3]));
    assert!(said.contains("wildcard"), "{said}");
    // Defaults that do not go with the services that are made for tags, and go with those of the file.
    fake.set("kept", &[instance(&other, &["weir.route=kept.apps.example"])]);
    wait_for(&weir, "kept.apps.example", "/", "13");
    let own_service = text.replace("[service.own]", "[service.own]\nhttp = \"1.1\"");
    let defaults = "[service.kept]\nhttp = \"1.1\"\ndiscover = { consul = \"kept\" }\n\n\
                    [defaults.service]\nsend_proxy = \"v2\"\nhttp = \"2\"\n";
    scene.file("weir.toml", format!("{own_service}\n{defaults}"));
    let answer = weir.ask("/api/v1/reload");
    assert_eq!(answer.json()["result"], "applied", "{}", answer.text());
    let said = wait::until("a refusal", SOON, || refusal(&weir, WEB));
    assert!(said.contains("send_proxy"), "{said}");
    assert_eq!(asked(&weir, "web.apps.example", "/"), "404");
    let shown = weir.api("/api/v1/routes/published");
    assert_eq!(shown["source"]["published"], 1, "{shown:#}");
    scene.file("weir.toml", &text);
    assert_eq!(weir.ask("/api/v1/reload").json()["result"], "applied");
    wait_for(&weir, "web.apps.example", "/", "12");
}

#[test]
fn a_first_start_answers_no_client_before_it_has_the_routes() {
    let Some(scene) = Scene::new("tags-first", &[]) else { return };
    let [own, web] = [11, 12].map(|host| Server::start(&scene, host));
    let fake = agent(&scene);
    fake.set("web", &[instance(&web, &[WEB])]);
    let text = publishing(&scene, &fake, &own, "");
    fake.set_fault(Some(Fault::Slow(std::time::Duration::from_millis(300))));
    let front = scene.address(1, 8080);
    let client = std::thread::spawn(move || {
        let answered = || http::get_with(front, "/", AS_WEB).ok();
        wait::until("an answer", SOON, answered).status
    });
    let _weir = Weir::start(&scene, &text);
    assert_eq!(client.join().unwrap(), 200, "the first answer");
}

#[test]
fn no_fault_of_consul_loses_a_request_or_a_route() {
    let Some(scene) = Scene::new("tags-faults", &[]) else { return };
    let [own, web] = [11, 12].map(|host| Server::start(&scene, host));
    let mut fake = agent(&scene);
    fake.set("web", &[instance(&web, &[WEB])]);
    let weir = Weir::start(&scene, &publishing(&scene, &fake, &own, ""));
    wait_for(&weir, "web.apps.example", "/", "12");
    let steady = Steady::start_as(&weir, "/", AS_WEB, 2);
    let source = || weir.api("/api/v1/routes/published")["source"].clone();
    for fault in [Fault::no_leader(), Fault::acl_not_found(), Fault::malformed(), Fault::Close] {
        fake.set_fault(Some(fault.clone()));
        fake.disconnect();
        wait::until("an error", SOON, || source()["error"].is_string().then_some(()));
        steady.only(&[12]);
        fake.set_fault(None);
        wait::until("an answer", SOON, || source()["error"].is_null().then_some(()));
    }
    fake.set_index(1);
    steady.only(&[12]);
    fake.stop();
    fake.forget();
    fake.start_again();
    wait::until("a route that is held", SOON, || (source()["held"] == 1).then_some(()));
    steady.only(&[12]);
    fake.set("web", &[instance(&web, &[WEB])]);
    wait::until("the route again", SOON, || (source()["published"] == 1).then_some(()));
    steady.only(&[12]);
    steady.finish();
}

#[test]
fn starts_and_upgrades_have_the_routes_of_the_last_run() {
    let Some(scene) = Scene::new("tags-start", &[]) else { return };
    let [own, web] = [11, 12].map(|host| Server::start(&scene, host));
    let mut fake = agent(&scene);
    fake.set("web", &[instance(&web, &[WEB])]);
    let text = publishing(&scene, &fake, &own, "");
    let mut weir = Weir::start(&scene, &text);
    wait_for(&weir, "web.apps.example", "/", "12");
    wait_until_saved(&scene, &[web.address()]);
    let steady = Steady::start_as(&weir, "/", AS_WEB, 2);
    let (_, successor) = weir.upgrade(SOON);
    steady.only(&[12]);
    steady.finish();
    successor.signal(rustix::process::Signal::TERM);
    wait::until("its end", SOON, || (!successor.is_running()).then_some(()));

    fake.stop();
    let weir = Weir::start(&scene, &text);
    assert_eq!(asked(&weir, "web.apps.example", "/"), "12");
    let shown = weir.api("/api/v1/routes/published");
    assert!(shown["source"]["answered_ms_ago"].is_null(), "{shown:#}");
    // With other hosts allowed, it is gone at once.
    scene.file("weir.toml", text.replace("*.apps.example", "*.other.example"));
    assert_eq!(weir.ask("/api/v1/reload").json()["result"], "applied");
    assert_eq!(asked(&weir, "web.apps.example", "/"), "404");
}
