//! Conditions of routes other than exact values, with real requests and certificates.

use std::time::Duration;

use e2e::clients::{curl, s_client};
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
        // A plain value looks at the first field, a test at all.
        (460, "path = \"/any\"\nheader = { X-A = { exact = \"1\" } }"),
        (461, "path = \"/first\"\nheader = { X-A = \"1\" }"),
        (462, "path = \"/bytes\"\nheader = { X-A = { regex = \"^a.b$\" } }"),
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
        ("/cookie", &["Cookie: a=2", "Cookie: beta = 1 "], 456),
        ("/any", &["X-A: 2", "X-A: 1"], 460),
        ("/first", &["X-A: 2", "X-A: 1"], 404),
        ("/first", &["X-A: 1", "X-A: 2"], 461),
        // Any byte is a character.
        ("/bytes", &["X-A: a\tb"], 462),
        ("/bytes", &["X-A: a\u{e9}b"], 404),
        ("/rank", &["X-A: 2"], 457),
        ("/rank", &["X-A: 2", "X-B: 2"], 458),
        ("/rank", &["X-A: 1", "X-B: 2"], 459),
    ] {
        let status = http::get_with(weir.front(), target, fields).unwrap().status;
        assert_eq!(status, expected, "{target} {fields:?}");
    }
}

/// Expressions that take other engines forever take time linear in the value, and one whose automaton
/// has a state for each of 2^n pasts does not grow: the memory for a thousand different values stays
/// within the caches of the expressions.
#[test]
fn expressions_made_to_explode_do_not() {
    let Some(scene) = Scene::new("conditions-explode", &[]) else {
        return;
    };
    const EXPRESSIONS: u16 = 40;
    // Every byte of the value decides about the byte after the next 100: the whole automaton would have
    // 2^100 states.
    let growing = |n: u16| {
        format!(
            "path = \"/{n}\"\nheader = {{ X-A = {{ regex = \"(a|b)*a(a|b){{{}}}[^ab]\" }} }}",
            99 + n
        )
    };
    let mut conditions: Vec<(u16, String)> =
        (0..EXPRESSIONS).map(|n| (500 + n, growing(n))).collect();
    conditions.push((452, "path_regex = \"^/(a+)+[^a!]$\"".into()));
    conditions.push((453, "header = { X-A = { regex = \"^(([a-z])+.)+[A-Z]([a-z])+$\" } }".into()));
    let conditions: Vec<(u16, &str)> = conditions.iter().map(|(s, text)| (*s, &**text)).collect();
    let mut weir = Weir::start(&scene, &scene.config("workers = 1", &routes(&conditions)));
    let mut random = 7_u32;
    let mut value = || -> String {
        let mut letter = || {
            random ^= random << 13;
            random ^= random >> 17;
            random ^= random << 5;
            if random & 1 == 0 { 'a' } else { 'b' }
        };
        (0..4_000).map(|_| letter()).collect()
    };
    let path = "a".repeat(4_000);
    let before = weir.process().resident_bytes();
    for turn in 0..400 {
        let field = format!("X-A: {}", value());
        for path in [format!("/{}", turn % EXPRESSIONS), format!("/{path}!")] {
            let seen = http::get_with(weir.front(), &path, &[&field]).unwrap();
            assert_eq!(seen.status, 404);
        }
    }
    let grown_bytes = weir.process().resident_bytes().saturating_sub(before);
    // 256 kB for each expression and thread, and half as much for everything else.
    let bound_bytes = 384 * 1024 * (u64::from(EXPRESSIONS) + 2);
    assert!(grown_bytes <= bound_bytes, "{grown_bytes} bytes");
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
    // One with a mistake does not, and keeps the one before.
    let from = weir.log().len();
    scene.file("list.txt", format!("{office}\n{other}/3x\n"));
    weir.wait_for_log_from(from, &["list.txt, line 2"], Duration::from_secs(20));
    assert_eq!([office, other].map(status), [404, 451]);
}

/// A client that spoils the field that its proxy extends is unknown: it must be neither in the networks
/// that may nor outside of those that may not.
#[test]
fn an_unknown_client_meets_no_condition_on_clients() {
    let Some(scene) = Scene::new("conditions-unknown", &[]) else {
        return;
    };
    let rest = format!(
        "trusted = [\"127.0.0.0/8\"]\nclient_address = {{ field = \"Forwarded\" }}\n{}",
        routes(&[
            (451, "path = \"/in\"\nclient = [\"127.0.0.0/8\"]"),
            (452, "path = \"/out\"\nclient_not = [\"10.0.0.0/8\"]"),
            (453, "path = \"/any\""),
        ])
    );
    let weir = Weir::start(&scene, &scene.config("workers = 1", &rest));
    let spoilt = "Forwarded: for=\"1.1.1.1, for=192.0.2.7";
    for (target, fields, expected) in [
        // The proxy's own requests.
        ("/in", &[][..], 451),
        ("/in", &["Forwarded: for=192.0.2.7"], 404),
        ("/in", &["Forwarded: for=127.0.0.9"], 451),
        ("/in", &[spoilt], 404),
        ("/in", &["Forwarded: for=unknown"], 404),
        ("/out", &["Forwarded: for=192.0.2.7"], 452),
        ("/out", &["Forwarded: for=10.1.1.1"], 404),
        ("/out", &[spoilt], 404),
        ("/any", &[spoilt], 453),
    ] {
        let status = http::get_with(weir.front(), target, fields).unwrap().status;
        assert_eq!(status, expected, "{target} {fields:?}");
    }
}

/// Streams of one HTTP/2 connection may come from different clients, and their cookies in crumbs
/// (RFC 9113 section 8.2.3).
#[test]
fn streams_of_one_connection_are_told_apart() {
    let Some(scene) = Scene::new("conditions-streams", &["curl"]) else {
        return;
    };
    let pair = Authority::new(&scene, "ca").issue("a", &["a.example.com"]);
    let rest = format!(
        "trusted = [\"127.0.0.0/8\"]\ntls = {{ certificates = [{}] }}\n{}",
        pair.table(),
        routes(&[
            (451, "client = [\"192.0.2.0/24\"]"),
            (452, "client = [\"198.51.100.0/24\"]\ncookie = { beta = \"1\" }"),
        ])
    );
    let weir = Weir::start(&scene, &scene.config("workers = 1", &rest));
    let url = format!("https://{}/", weir.front());
    let mut words = Vec::new();
    for fields in [
        &["X-Forwarded-For: 192.0.2.7"][..],
        &["X-Forwarded-For: 198.51.100.7", "Cookie: a=2", "Cookie: beta=1"],
        &["X-Forwarded-For: 198.51.100.7", "Cookie: a=2"],
        &["X-Forwarded-For: 203.0.113.7"],
        &["X-Forwarded-For: 192.0.2.8"],
    ] {
        let format = "%{http_code} %{http_version} %{num_connects}\n";
        words.extend(["-k", "--http2", "-s", "-o", "/dev/null", "-w", format]);
        words.extend(fields.iter().flat_map(|field| ["-H", field]));
        words.extend([&*url, "--next"]);
    }
    words.pop();
    let seen = curl(&scene, &words);
    let lines: Vec<&str> = seen.stdout.lines().collect();
    assert_eq!(lines, ["451 2 1", "452 2 0", "404 2 0", "404 2 0", "451 2 0"], "{seen:?}");
}

/// A PROXY header names the proxy in front of the one that sends it.
#[test]
fn a_proxy_header_and_a_field_name_the_client_together() {
    let Some(scene) = Scene::new("conditions-proxy", &[]) else {
        return;
    };
    let rest = format!(
        "proxy_protocol = [\"127.0.0.0/8\"]\ntrusted = [\"198.51.100.0/24\"]\n{}",
        routes(&[
            (451, "client = [\"192.0.2.0/24\"]"),
            (452, "client = [\"198.51.100.0/24\"]"),
            (453, "client = [\"203.0.113.0/24\"]"),
        ])
    );
    let weir = Weir::start(&scene, &scene.config("workers = 1", &rest));
    for (peer, field, expected) in [
        ("198.51.100.1", "X-Forwarded-For: 192.0.2.7", 451),
        ("198.51.100.1", "X-Other: 1", 452),
        // This one is not trusted.
        ("203.0.113.1", "X-Forwarded-For: 192.0.2.7", 453),
    ] {
        let text = format!(
            "PROXY TCP4 {peer} 127.0.0.1 1 2\r\nGET / HTTP/1.1\r\nHost: a\r\n{field}\r\nConnection: close\r\n\r\n"
        );
        let seen = http::raw(weir.front(), text.as_bytes()).unwrap();
        let seen = String::from_utf8_lossy(&seen);
        assert!(seen.starts_with(&format!("HTTP/1.1 {expected} ")), "{peer} {field}: {seen}");
    }
}

#[test]
fn names_in_client_certificates_select_routes() {
    let Some(scene) = Scene::new("conditions-certificate", &["curl", "openssl"]) else {
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
    // A resumed session has the certificate of its first handshake.
    for version in ["-tls1_2", "-tls1_3"] {
        let ask = "GET / HTTP/1.1\r\nHost: a.example.com\r\nConnection: close\r\n\r\n";
        let file = |path: &std::path::Path| path.display().to_string();
        let session = file(&scene.folder().join(format!("session{version}")));
        let (chain, key) = (file(&one.chain), file(&one.key));
        let words = [version, "-cert", &chain, "-key", &key, "-sess_out", &session];
        let first = s_client(&scene, weir.front(), &words, ask);
        assert!(first.stdout.contains("HTTP/1.1 451"), "{first:?}");
        let again = s_client(&scene, weir.front(), &[version, "-sess_in", &session], ask);
        assert!(again.stdout.contains("\nReused, "), "{version}: {again:?}");
        assert!(again.stdout.contains("HTTP/1.1 451"), "{version}: {again:?}");
    }
}
