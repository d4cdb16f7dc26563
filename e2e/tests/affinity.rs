//! Cookie affinity (sticky sessions): the key of its tokens, and which balancers accept them.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use e2e::clients::curl;
use e2e::{App, Authority, NAMESPACES, Scene, Weir, http, run, server_tables};

const SOON: Duration = Duration::from_secs(10);

/// A configuration with three servers and an affinity cookie `shop` with `more` keys; `top` and
/// `listener` are further lines.
fn config(scene: &Scene, top: &str, listener: &str, more: &str) -> String {
    let servers = server_tables("app", [11, 12, 13].map(|host| scene.address(host, 8080)));
    let affinity = format!("affinity = {{ cookie = \"shop\"{more} }}");
    let rest =
        format!("{listener}\n[[route]]\nservice = \"app\"\n[service.app]\n{affinity}\n{servers}");
    scene.config(&format!("workers = 2\ndrain_max = \"2s\"\n{top}"), &rest)
}

fn apps(scene: &Scene) -> [App; 3] {
    [11, 12, 13].map(|host| App::start(scene, host, &[]))
}

/// A new client's cookie, and its server.
fn new_client(weir: &Weir) -> (String, String) {
    let answer = http::get(weir.front(), "/").unwrap();
    let set = answer.field("set-cookie").expect("a cookie").to_owned();
    (set.split(';').next().unwrap().to_owned(), served_by(&answer))
}

fn served_by(answer: &http::Response) -> String {
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.field("x-served-by").expect("the server's name").to_owned()
}

/// Whether a client with this cookie stays with the server, and keeps the cookie.
fn stays(weir: &Weir, (cookie, server): &(String, String)) -> bool {
    (0..10).all(|_| {
        let answer = http::get_with(weir.front(), "/", &[&format!("Cookie: {cookie}")]).unwrap();
        served_by(&answer) == *server && answer.field("set-cookie").is_none()
    })
}

#[test]
fn cookies_survive_a_reload_an_upgrade_and_a_restart() {
    let Some(scene) = Scene::new("affinity-kept", &["python3"]) else {
        return;
    };
    let _apps = apps(&scene);
    let state = scene.folder().join("state");
    std::fs::create_dir(&state).unwrap();
    let top = format!("state_directory = \"{}\"\nreload = {{ watch = false }}", state.display());
    let text = config(&scene, &top, "", "");
    let mut weir = Weir::start(&scene, &text);
    let client = new_client(&weir);
    assert!(stays(&weir, &client));
    scene.file("weir.toml", text.replace("workers = 2", "workers = 2\nconnections_max = 500"));
    assert_eq!(weir.ask("/api/v1/reload").status, 200);
    assert!(stays(&weir, &client), "after a reload");
    let (_, successor) = weir.upgrade(SOON);
    assert!(stays(&weir, &client), "after an upgrade");
    successor.signal(rustix::process::Signal::TERM);
    e2e::wait::until("the new process to end", SOON, || (!successor.is_running()).then_some(()));
    let mut weir = Weir::start(&scene, &text);
    assert!(stays(&weir, &client), "after a restart");
    assert!(!weir.log().contains("affinity"), "{}", weir.log());
    weir.begin_to_stop();
    assert_eq!(weir.wait(SOON).code, Some(0));

    // Another instance has another key; without a place to keep it, that is logged.
    let top = "state_directory = \"/nonexistent/weir\"";
    let weir = Weir::start(&scene, &config(&scene, top, "", ""));
    weir.wait_for_log(&["cannot save the key of affinity cookies", "state_directory"], SOON);
    let answer = http::get_with(weir.front(), "/", &[&format!("Cookie: {}", client.0)]).unwrap();
    assert!(answer.field("set-cookie").is_some(), "{}", answer.head);
}

/// No state directory: the old process hands its key over, where no other process sees it, and the
/// new one hands it on.
#[test]
fn clients_stay_with_their_servers_through_upgrades_without_a_state_directory() {
    let Some(scene) = Scene::new("affinity-handed", &["python3"]) else {
        return;
    };
    let _apps = apps(&scene);
    let top = "state_directory = \"/nonexistent/weir\"\nreload = { watch = false }";
    let text = config(&scene, top, "", "");
    let mut weir = Weir::start(&scene, &text);
    let clients = [(); 6].map(|()| new_client(&weir));
    let (_, successor) = weir.upgrade(SOON);
    assert!(clients.iter().all(|client| stays(&weir, client)), "after an upgrade");
    let seen = ["cmdline", "environ"].map(|name| {
        let bytes = std::fs::read(format!("/proc/{}/{name}", successor.pid())).unwrap();
        String::from_utf8_lossy(&bytes).into_owned()
    });
    let is_key = |word: &str| word.len() == 32 && word.bytes().all(|b| b.is_ascii_hexdigit());
    let mut words = seen.iter().flat_map(|text| text.split(|c: char| !c.is_ascii_alphanumeric()));
    assert!(!words.any(is_key), "{seen:?}");

    // A second one, with a state directory: the key is kept there from now on.
    let state = scene.folder().join("state");
    std::fs::create_dir(&state).unwrap();
    let kept = text.replace("/nonexistent/weir", &state.to_string_lossy());
    scene.file("weir.toml", kept);
    let answer = weir.ask("/api/v1/upgrade");
    assert_eq!(answer.status, 200, "{}", answer.text());
    e2e::wait::until("the second process to end", SOON, || (!successor.is_running()).then_some(()));
    let second = e2e::NewProcess::of(&answer.json());
    assert!(clients.iter().all(|client| stays(&weir, client)), "after two");
    second.signal(rustix::process::Signal::TERM);
    e2e::wait::until("the third process to end", SOON, || (!second.is_running()).then_some(()));
    let weir = Weir::start(
        &scene,
        &config(&scene, &top.replace("/nonexistent/weir", &state.to_string_lossy()), "", ""),
    );
    assert!(clients.iter().all(|client| stays(&weir, client)), "after a restart");
}

#[test]
fn instances_with_one_key_file_understand_one_another() {
    let Some(scene) = Scene::new("affinity-shared", &["python3"]) else {
        return;
    };
    let _apps = apps(&scene);
    let key = scene.file("affinity.key", "00112233445566778899aabbccddeeff\n");
    set_mode(&key, 0o640);
    let more = format!(", key_file = \"{}\"", key.display());
    let mut weir = Weir::start(&scene, &config(&scene, "", "", &more));
    let client = new_client(&weir);
    weir.begin_to_stop();
    assert_eq!(weir.wait(SOON).code, Some(0));
    let weir = Weir::start(&scene, &config(&scene, "zone = \"b\"", "", &more));
    assert!(stays(&weir, &client));
    // A token of the release before: SplitMix64's finalizer over the address. It still counts, and
    // is replaced.
    let server = scene.address(12, 8080);
    let old = (format!("shop={:016x}", old_token(server)), name_of(server));
    let answer = http::get_with(weir.front(), "/", &[&format!("Cookie: {}", old.0)]).unwrap();
    assert_eq!(served_by(&answer), old.1);
    let set = answer.field("set-cookie").expect("a new cookie").split(';').next().unwrap();
    assert_ne!(set, old.0);
    assert!(stays(&weir, &(set.to_owned(), old.1)));

    // A key that is none is a mistake.
    scene.file("affinity.key", "secret");
    let answer = weir.ask("/api/v1/reload");
    assert_eq!(answer.status, 422, "{}", answer.text());
    assert!(answer.text().contains("openssl rand -hex 16"), "{}", answer.text());
}

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

/// `weir check` and `weir serve` refuse a key that is no secret, or no file, with the same words: the
/// file that the configuration names, and the one in the state directory.
#[test]
fn keys_that_are_no_secret_are_refused_by_check_and_serve() {
    const KEY: &str = "00112233445566778899aabbccddeeff\n";
    let Some(scene) = Scene::new("affinity-refused", &[]) else {
        return;
    };
    let state = scene.folder().join("state");
    std::fs::create_dir(&state).unwrap();
    let real = scene.file("real.key", KEY);
    set_mode(&real, 0o600);
    let key = state.join("affinity.key");
    let file = |text: &str, mode: u32| {
        std::fs::write(&key, text).unwrap();
        set_mode(&key, mode);
    };
    let pipe = || assert!(Command::new("mkfifo").arg(&key).status().unwrap().success());
    // What makes the file, and what is then said of it.
    type Case<'m> = (&'m str, &'m dyn Fn(), [&'m str; 2]);
    let cases: [Case<'_>; 5] = [
        ("others may read it", &|| file(KEY, 0o644), ["other users of this machine", "chmod 600"]),
        (
            "others may change it",
            &|| file(KEY, 0o602),
            ["other users of this machine", "chmod 600"],
        ),
        (
            "a link",
            &|| std::os::unix::fs::symlink(&real, &key).unwrap(),
            ["is a symbolic link, which is not followed", "name the file itself"],
        ),
        ("a pipe", &pipe, ["is not a regular file", "affinity.key"]),
        (
            "too large",
            &|| file(&"0".repeat(129), 0o600),
            ["has more than 128 bytes", "affinity.key"],
        ),
    ];
    let named = config(&scene, "", "", &format!(", key_file = \"{}\"", key.display()));
    let kept = config(&scene, &format!("state_directory = \"{}\"", state.display()), "", "");
    for (case, make, said) in cases {
        make();
        for (text, code) in [(&named, 2), (&kept, 1)] {
            let config = scene.file("refused.toml", text);
            let config = config.to_string_lossy();
            let [checked, served] = ["check", "serve"].map(|verb| run(&scene, &[verb, &config]));
            assert_eq!((checked.code, served.code), (Some(code), Some(code)), "{case}: {served:?}");
            for words in said {
                assert!(checked.stderr.contains(words), "{case}: {checked:?}");
            }
            let checked = checked.stderr.trim();
            assert!(served.stderr.contains(checked), "{case}: {checked} but {served:?}");
            assert!(code == 2 || checked.lines().count() == 1, "{checked}");
        }
        std::fs::remove_file(&key).unwrap();
    }
}

/// A mount namespace whose /dev/urandom yields nothing.
#[test]
fn without_random_bytes_there_is_no_start() {
    let Some(scene) = Scene::new("affinity-random", &[NAMESPACES, "unshare", "timeout"]) else {
        return;
    };
    let text = config(&scene, "state_directory = \"/nonexistent/weir\"", "", "");
    let file = scene.file("random.toml", text);
    for verb in ["check", "serve"] {
        let script = "mount --bind /dev/null /dev/urandom && exec timeout 20 \"$@\"";
        let output = Command::new("unshare")
            .args(["--mount", "sh", "-c", script, "sh"])
            .arg(e2e::binary())
            .arg(verb)
            .arg(&file)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{verb}: {said}");
        assert!(said.contains("no random bytes from /dev/urandom"), "{verb}: {said}");
        assert!(said.contains("`affinity_key_file`"), "{verb}: {said}");
    }
}

/// What the server at `address` calls itself.
fn name_of(address: std::net::SocketAddr) -> String {
    served_by(&http::get(address, "/").unwrap())
}

/// What the release before called a server (IPv4).
fn old_token(address: std::net::SocketAddr) -> u64 {
    let mix = |x: u64| {
        let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    };
    let std::net::IpAddr::V4(ip) = address.ip() else { panic!("IPv4") };
    mix(mix(u64::from(u32::from(ip)) ^ (u64::from(address.port()) << 48) ^ 4))
}

#[test]
fn the_cookie_is_secure_where_the_client_uses_https() {
    let Some(scene) = Scene::new("affinity-secure", &["python3", "curl"]) else {
        return;
    };
    let _apps = apps(&scene);
    let pair = Authority::new(&scene, "ca").issue("a", &["a.example.com"]);
    let secured = scene.address(1, 8443);
    let listener = format!(
        "[[listener]]\nname = \"tls\"\naddress = \"{secured}\"\n\
         tls = {{ certificates = [{}] }}\n",
        pair.table()
    );
    let top = format!("state_directory = \"{}\"", scene.folder().display());
    let weir = Weir::start(&scene, &config(&scene, &top, &listener, ""));
    let set_by = |url: String| {
        let seen = curl(&scene, &["-k", "-s", "-D", "-", "-o", "/dev/null", &url]);
        let head = seen.stdout.to_lowercase();
        head.lines().find(|line| line.starts_with("set-cookie")).expect("a cookie").to_owned()
    };
    assert!(set_by(format!("https://{secured}/")).contains("; secure"));
    assert!(!set_by(format!("http://{}/", weir.front())).contains("secure"));
}
