//! What `weir check` says of whole configurations, beside the sources as data.

use super::*;

fn explained(text: &str) -> String {
    let checked = match config::check(text, "test", &()) {
        Ok(checked) => checked,
        Err(found) => panic!("{}", config::render(&found, text, "test", false)),
    };
    let plan = health::report::of_snapshot(&checked.snapshot);
    explain(&checked.snapshot, &plan, false)
}

/// Seventy services over the same four endpoints.
fn seventy() -> String {
    let mut text = "zone = \"a\"\n[[listener]]\naddress = \"0.0.0.0:8080\"\n".to_owned();
    for n in 0..70 {
        text.extend([format!(
            "[[route]]\nhost = \"s{n:02}.example.com\"\nservice = \"s{n:02}\"\n\
             [service.s{n:02}]\ncheck = {{ path = \"/status\", expect = 200 }}\n\
             server = [{{ address = \"10.0.1.5:80\", zone = \"a\" }}, {{ address = \"10.0.1.6:80\", zone = \"a\" }}, \
             {{ address = \"10.0.2.5:80\", zone = \"b\" }}, {{ address = \"10.0.2.6:80\", zone = \"b\" }}]\n"
        )]);
    }
    text
}

#[test]
fn seventy_services_on_four_servers_fit_a_screen_and_share_their_probes() {
    let said = explained(&seventy());
    let (routes, rest) = said.split_once("\nServices\n").expect("a section on services");
    assert_eq!(routes.lines().filter(|line| line.contains(".example.com")).count(), 70);
    assert!(rest.lines().count() < 12, "{rest}");
    assert!(rest.contains("2 probes/s; 140 if every service checked for itself"), "{rest}");
    assert!(rest.contains("zone a (this one)  10.0.1.5:80  10.0.1.6:80\n"), "{rest}");
    assert!(rest.contains("s00, s01, s02, s03 and 66 more"), "{rest}");
}

#[test]
fn a_configuration_is_explained_in_the_order_in_which_its_routes_match() {
    let said = explained(
        r#"
        [[listener]]
        name = "public"
        address = "0.0.0.0:8080"
        [[route]]
        service = "app"
        [[route]]
        host = "*.example.com"
        path = "/a"
        split = [{ service = "app", weight = 95 }, { service = "next", weight = 5 }]
        rewrite = { prefix = "/" }
        rate_limit = { requests = 5, per = "1m" }
        [[route]]
        host = "old.example.com"
        redirect = { host = "www.example.com" }
        [[route]]
        path_exact = "/internal"
        method = "GET"
        deny = 403
        [service.app]
        in_flight_max = 4
        check = { path = "/status" }
        server = [{ address = "10.0.1.5:80", weight = 2 }, { address = "app.internal:80", backup = true }]
        [service.next]
        balance = "hash"
        server = [{ address = "10.0.1.6:80" }]
        "#,
    );
    let expected = include_str!("explained.txt");
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/render/explained.txt");
        std::fs::write(path, &said).unwrap();
    } else {
        assert_eq!(said, expected, "UPDATE_EXPECT=1 rewrites explained.txt");
    }
    assert!(said.lines().all(|line| line == line.trim_end()), "no line ends in spaces");
}

#[test]
fn programs_are_told_the_same() {
    let text = seventy();
    let snapshot = config::check(&text, "test", &()).unwrap().snapshot;
    let plan = crate::report::plan(&health::report::of_snapshot(&snapshot));
    let value = json::explained(&snapshot, plan);
    assert_eq!(value["services"].as_array().unwrap().len(), 70);
    assert_eq!(value["services"][3]["servers"][2]["zone"], "b");
    assert_eq!(value["routes"][0]["host"], "s00.example.com");
    assert_eq!(value["probe_plan"]["unshared_per_s"], 140.0);
}
