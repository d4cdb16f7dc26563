//! Tests of the output of `weir check` for whole configurations, which are data files.

use balancer::configuration;

use super::*;

fn explained(text: &str) -> String {
    let checked = match config::check(text, "test", &()) {
        Ok(checked) => checked,
        Err(report) => panic!("{}", report.render(false)),
    };
    text_of(&checked.snapshot)
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
    assert!(rest.contains("checks send 2/s; 140/s if every service checked for itself"), "{rest}");
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
    let value = configuration::to_json(&snapshot);
    assert_eq!(value["services"].as_array().unwrap().len(), 70);
    assert_eq!(value["services"][3]["servers"][2]["zone"], "b");
    assert_eq!(value["routes"][0]["host"], "s00.example.com");
    assert_eq!(value["probe_plan"]["unshared_per_s"], 140.0);
}

/// One certificate, whatever file is asked for.
struct OneFile(Vec<u8>);

impl config::Surroundings for OneFile {
    fn file(&self, path: &std::path::Path) -> Result<config::Found, config::Unreadable> {
        let bytes = self.0.as_slice().into();
        let material = model::Material { path: path.to_path_buf(), bytes };
        Ok(config::Found { material, only_root: false, open_to_others: false })
    }

    fn now_s(&self) -> Option<i64> {
        None
    }
}

#[test]
fn what_tls_will_do_is_told() {
    let key = rcgen::KeyPair::generate().unwrap();
    let names = vec!["a.example.com".to_owned(), "*.b.example.com".to_owned()];
    let mut params = rcgen::CertificateParams::new(names).unwrap();
    params.not_after = rcgen::date_time_ymd(2031, 2, 3);
    let file = OneFile(
        format!("{}{}", params.self_signed(&key).unwrap().pem(), key.serialize_pem()).into(),
    );
    let text = r#"
        [[listener]]
        name = "public"
        address = "0.0.0.0:8443"
        tls = { certificates = [{ chain = "a.pem" }, { chain = "b.pem" }], client_certificates = { ca = "ca.pem" }, hsts = "365d" }
        [[listener]]
        name = "passed"
        address = "0.0.0.0:443"
        protocol = "tcp"
        server_names = { "*.c.example.com" = "app", "d.c.example.com" = "other" }
        [[route]]
        split = [{ service = "app" }, { service = "other" }]
        [service.app]
        server = [{ address = "10.0.0.1:443" }]
        tls = { verify = false }
        [service.other]
        server = [{ address = "10.0.0.2:443" }]
        tls = { ca = "ca.pem", name = "x.internal", certificate = { chain = "c.pem" } }
        "#;
    let checked = config::check(text, "test", &file).unwrap();
    let said = text_of(&checked.snapshot);
    for line in [
        "LISTENER  CERTIFICATE  FOR                             ENDS        FROM     CLIENTS             HSTS",
        "public    a.pem        a.example.com, *.b.example.com  2031-02-03  TLS 1.2  show a certificate  365d",
        "passed    d.c.example.com  service other",
        "          *.c.example.com  service app",
        "          any other        closed",
        "app      none: certificates are not verified  its own name  none",
        "other    ca.pem                               x.internal    a.example.com, *.b.example.com, ends 2031-02-03",
        "public  0.0.0.0:8443  http over TLS            routes            at most 32768  none",
        "passed  0.0.0.0:443   tcp, TLS passed through  2 by server name  at most 32768  none",
    ] {
        assert!(said.lines().any(|said| said.trim_end() == format!("  {line}")), "{line}\n{said}");
    }
    let json = configuration::to_json(&checked.snapshot);
    let certificate = &json["listeners"][0]["tls"]["certificates"][1];
    assert_eq!(certificate["names"][1], "*.b.example.com");
    assert_eq!(
        (&certificate["chain"], &certificate["not_after"]),
        (&"b.pem".into(), &"2031-02-03".into())
    );
    assert_eq!(json["listeners"][1]["server_names"][0]["service"], "other");
    assert_eq!(json["services"][0]["tls"]["ca"], serde_json::Value::Null);
}

#[test]
fn the_fleet_is_one_line_without_its_keys() {
    let with = |fleet: &str| {
        let text = format!(
            "listener = [{{ address = \"0.0.0.0:8080\" }}]\nroute = [{{ deny = 404 }}]\n\
             [fleet]\nkeys = [\"hunter2 hunter2 hunter2 hunter2 hunter2\"]\n{fleet}"
        );
        config::check(&text, "test", &()).unwrap().snapshot
    };
    let line = |snapshot: &Snapshot| {
        let said = text_of(snapshot);
        let line = said.lines().find_map(|line| line.strip_prefix("  fleet"));
        line.unwrap().trim().to_owned()
    };
    let full = with(
        "name = \"edge-1\"\naddress = \"0.0.0.0:7946\"\nadvertise = \"10.0.0.5:7946\"\nprobers = 3\n\
         members = [\"10.0.0.6:7946\", \"balancers.internal:7946\"]\n\
         discover = { dns_srv = \"_weir._udp.example\" }",
    );
    assert_eq!(
        line(&full),
        "edge-1, on 0.0.0.0:7946 as 10.0.0.5:7946; joins 10.0.0.6:7946, balancers.internal:7946, \
         dns_srv _weir._udp.example; 3 of each zone probe"
    );
    assert_eq!(
        line(&with("address = \"10.0.0.5:7946\"\nmembers = []")),
        "named like the machine, on 10.0.0.5:7946; joins no other; 2 of each zone probe"
    );
    let json = configuration::to_json(&full);
    assert_eq!(json["fleet"]["members"][1], "balancers.internal:7946");
    assert_eq!(json["fleet"]["keys"], 1);
    assert!(!format!("{json} {full:?}").contains("hunter2"));
}

#[test]
fn a_limit_over_the_fleet_is_told_from_one_of_this_balancer() {
    let text = r#"
        [[listener]]
        address = "0.0.0.0:8080"
        [[route]]
        split = [{ service = "alone" }, { service = "shared" }, { service = "stated" }]
        [fleet]
        address = "10.0.0.5:7946"
        members = []
        keys = ["hunter2 hunter2 hunter2 hunter2 hunter2"]
        [service.alone]
        in_flight_max = 4
        server = [{ address = "10.0.1.5:80" }]
        [service.shared]
        in_flight_max = 4
        in_flight_scope = "fleet"
        server = [{ address = "10.0.1.6:80" }]
        [service.stated]
        in_flight_scope = "fleet"
        server = [{ address = "10.0.1.7:80", in_flight_max = 2 }]
        "#;
    let snapshot = config::check(text, "test", &()).unwrap().snapshot;
    let said = services::text(&snapshot);
    for limit in [
        "  4, 200 wait up to 5s, then 429",
        "  4 over the fleet, 200 wait up to 5s, then 429",
        "  per server over the fleet, 200 wait up to 5s, then 429",
    ] {
        assert_eq!(said.matches(limit).count(), 1, "{limit}\n{said}");
    }
    let json = configuration::to_json(&snapshot);
    let scopes = json["services"].as_array().unwrap().iter();
    let scopes: Vec<_> = scopes.map(|service| &service["in_flight_scope"]).collect();
    assert_eq!(scopes, ["balancer", "fleet", "fleet"]);
}

fn text_of(snapshot: &Snapshot) -> String {
    explain(snapshot, &health::report::of_snapshot(snapshot), false)
}

#[test]
fn the_probe_plan_shows_tls_http2_grpc_and_the_proxy_header() {
    let text = r#"
        [[listener]]
        address = "0.0.0.0:8080"
        [[route]]
        service = "app"
        [[route]]
        path = "/listings"
        service = "listings"
        [service.app]
        send_proxy = "v2"
        check = { path = "/status", expect = 200 }
        server = [{ address = "10.0.1.5:80" }, { address = "10.0.1.50:80" }]
        [service.listings]
        http = "2"
        check = { kind = "grpc", grpc_service = "listings.Listings" }
        server = [{ address = "10.0.2.5:80" }]
        "#;
    let mut snapshot = match config::check(text, "test", &()) {
        Ok(checked) => checked.snapshot,
        Err(report) => panic!("{}", report.render(false)),
    };
    let ca = model::Material { path: "ca.pem".into(), bytes: b"".as_slice().into() };
    let tls =
        model::ServiceTls { name: None, names: Vec::new(), verify: true, ca, certificate: None };
    for service in &mut snapshot.services {
        Arc::make_mut(service).tls = Some(tls.clone().into());
    }
    let said = plan::text(&health::report::of_snapshot(&snapshot));
    // Two servers in one line: each is asked for by its own address.
    assert!(
        said.contains(
            "GET /status, Host its address, expects 200, TLS as its address, PROXY v2, every 2s"
        ),
        "{said}"
    );
    assert!(
        said.contains(
            "gRPC health of listings.Listings, Host its address, expects SERVING, \
             TLS as its address, HTTP/2, every 2s"
        ),
        "{said}"
    );
    let services = services::text(&snapshot);
    assert!(services.contains("gRPC health of listings.Listings every 2s"), "{services}");
}
