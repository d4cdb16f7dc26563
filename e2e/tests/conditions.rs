//! Conditions of routes other than exact values, with real requests and certificates.

use std::time::Duration;

use e2e::clients::curl;
use e2e::{Authority, Scene, Weir, http, wait};

/// A route for each condition that answers with a status of its own, and 404 for everything else.
fn routes(conditions: &[(u16, &str)]) -> String {
    let route = |(status, condition): &(u16, &str)| {
        format!("[[route]]\nname = \"{status}\"\ndeny = {status}\n{condition}\n")
    };
    conditions.iter().map(route).collect()
}

#[test]
fn each_condition_selects_its_requests() {
    let Some(scene) = Scene::new("conditions", &[]) else {
        return;
    };
    let rest = routes(&[
        (451, "path = \"/regex\"\npath_regex = \"^/regex/[0-9]+$\""),
        (452, "path = \"/header\"\nheader = { User-Agent = { regex = \"(?i)bot\" } }"),
        (453, "path = \"/not\"\nheader = { X-A = { exact = \"1\", not = true } }"),
        (454, "path = \"/absent\"\nheader = { X-A = { present = false } }"),
        (455, "path = \"/query\"\nquery = { page = { regex = \"^[0-9]+$\" } }"),
        (456, "path = \"/cookie\"\ncookie = { beta = \"1\" }"),
        // More specific rules come first, whatever their order.
        (457, "path = \"/rank\"\nheader = { X-A = { present = true } }"),
        (458, "path = \"/rank\"\nheader = { X-A = { present = true }, X-B = { present = true } }"),
        (459, "path = \"/rank\"\nheader = { X-A = \"1\" }"),
    ]);
    let weir = Weir::start(&scene, &scene.config("workers = 1", &rest));
    for (target, fields, expected) in [
        ("/regex/12", &[][..], 451),
        ("/regex/%312", &[], 451),
        ("/regex/12/3", &[], 404),
        ("/regex/a", &[], 404),
        ("/header", &["User-Agent: GoogleBot/2.1"], 452),
        ("/header", &["User-Agent: curl/8"], 404),
        // A second line must not hide behind the first.
        ("/header", &["User-Agent: curl/8", "User-Agent: bot"], 452),
        ("/not", &[], 453),
        ("/not", &["X-A: 2"], 453),
        ("/not", &["X-A: 2", "X-A: 1"], 404),
        ("/absent", &[], 454),
        ("/absent", &["x-a:"], 404),
        ("/query?page=12", &[], 455),
        ("/query?page=%31", &[], 455),
        ("/query?page=x", &[], 404),
        ("/cookie", &["Cookie: a=2; beta=1"], 456),
        ("/cookie", &["Cookie: Beta=1"], 404),
        ("/rank", &["X-A: 2"], 457),
        ("/rank", &["X-A: 2", "X-B: 2"], 458),
        ("/rank", &["X-A: 1", "X-B: 2"], 459),
    ] {
        let status = http::get_with(weir.front(), target, fields).unwrap().status;
        assert_eq!(status, expected, "{target} {fields:?}");
    }
}

/// An expression that takes other engines forever takes time linear in the path.
#[test]
fn an_expression_made_to_explode_does_not() {
    let Some(scene) = Scene::new("conditions-explode", &[]) else {
        return;
    };
    let condition =
        "path_regex = \"^/(a+)+$\"\nheader = { X-A = { regex = \"^(([a-z])+.)+[A-Z]([a-z])+$\" } }";
    let weir = Weir::start(&scene, &scene.config("workers = 1", &routes(&[(451, condition)])));
    let (path, value) = ("a".repeat(4_000), "a".repeat(4_000));
    // A backtracking engine would never answer one of them.
    for _ in 0..100 {
        let field = format!("X-A: {value}");
        let seen = http::get_with(weir.front(), &format!("/{path}!"), &[&field]).unwrap();
        assert_eq!(seen.status, 404);
    }
}

#[test]
fn lists_of_networks_restrict_clients_and_are_reloaded() {
    let Some(scene) = Scene::new("conditions-client", &["curl"]) else {
        return;
    };
    let (office, blocked, other) = (scene.ip(77), scene.ip(78), scene.ip(79));
    // Thousands of other networks.
    let many: String = (0..20_000_u32)
        .map(|n| format!("{}/32\n", std::net::Ipv4Addr::from(0x0a00_0000 + 2 * n)))
        .collect();
    let list =
        scene.file("list.txt", format!("# those who may\n{many}{office}/32\n{blocked} # and\n"));
    let rest = format!(
        "{}[reload]\nwatch = true\n",
        routes(&[(
            451,
            &format!("client_file = \"{}\"\nclient_not = \"{blocked}/32\"", list.display()),
        )])
    );
    let weir = Weir::start(&scene, &scene.config("workers = 1", &rest));
    let status = |from: std::net::Ipv4Addr| -> u16 {
        let url = format!("http://{}/", weir.front());
        let words =
            ["--interface", &from.to_string(), "-o", "/dev/null", "-w", "%{http_code}", &url];
        curl(&scene, &words).stdout.trim().parse().unwrap()
    };
    assert_eq!([office, blocked, other].map(status), [451, 404, 404]);
    // A changed list takes effect by itself.
    scene.file("list.txt", format!("{other}\n"));
    wait::until("the new list", Duration::from_secs(20), || (status(other) == 451).then_some(()));
    assert_eq!(status(office), 404);
}

#[test]
fn names_in_client_certificates_select_routes() {
    let Some(scene) = Scene::new("conditions-certificate", &["curl"]) else {
        return;
    };
    let ca = Authority::new(&scene, "ca");
    let server = ca.issue("server", &["a.example.com"]);
    let (one, two) = (ca.issue("one", &["one.example.com"]), ca.issue("two", &["two.example.com"]));
    let rest = format!(
        "tls = {{ certificates = [{}], client_certificates = {{ ca = \"{}\", required = false }} }}\n{}",
        server.table(),
        ca.pem().display(),
        routes(&[
            (451, "client_certificate = { dns = \"one.example.com\" }"),
            (
                452,
                "client_certificate = { dns = { regex = \"\\\\.example\\\\.com$\" }, subject = { present = true } }\npath = \"/any\""
            ),
        ])
    );
    let weir = Weir::start(&scene, &scene.config("workers = 1", &rest));
    let status = |pair: Option<&e2e::Pair>, path: &str| -> u16 {
        let url = format!("https://{}{path}", weir.front());
        let mut words = vec!["-k", "-o", "/dev/null", "-w", "%{http_code}"];
        let files =
            pair.map(|pair| (pair.chain.display().to_string(), pair.key.display().to_string()));
        if let Some((chain, key)) = &files {
            words.extend(["--cert", chain, "--key", key]);
        }
        words.push(&url);
        curl(&scene, &words).stdout.trim().parse().unwrap()
    };
    assert_eq!(status(Some(&one), "/"), 451);
    assert_eq!(status(Some(&two), "/"), 404);
    assert_eq!(status(Some(&two), "/any"), 452);
    assert_eq!(status(None, "/any"), 404);
}
