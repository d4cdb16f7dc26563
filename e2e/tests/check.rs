//! `weir check`: what it verifies beyond the file's text, and its cost.

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::{Command, Stdio};

use e2e::{Scene, Weir, binary, run};

/// What `weir serve` refuses beside mistakes in the file is refused by `weir check` in the same words.
#[test]
fn check_refuses_what_serve_would() {
    let Some(scene) = Scene::new("check-host", &[]) else {
        return;
    };
    let folder = scene.folder().to_string_lossy().into_owned();
    let token = scene.file("token", "0123456789abcdef0123456789abcdef");
    let open = token.to_string_lossy().into_owned();
    let plain = scene.one_service("", &["127.0.0.1:1".parse().expect("an address")]);
    let base: String =
        plain.split_inclusive('\n').filter(|line| !line.starts_with("access =")).collect();
    for (name, table, key, word) in [
        ("log", "[log]", format!("access = \"{folder}/none/access.log\""), "make the directory"),
        ("explain", "[log]", format!("explain_token_file = \"{folder}/none\""), "openssl rand"),
        ("open", "[log]", format!("explain_token_file = \"{open}\""), "chmod 600"),
        ("user", "", "user = \"nobody-has-this-name\"".to_owned(), "has no such user"),
    ] {
        let text = if table.is_empty() {
            format!("{key}\n{base}")
        } else if base.contains(table) {
            base.replace(table, &format!("{table}\n{key}"))
        } else {
            format!("{base}\n{table}\n{key}\n")
        };
        let file = scene.file(&format!("{name}.toml"), text);
        let file = file.to_string_lossy();
        let checked = run(&scene, &["check", &file]);
        assert_eq!(checked.code, Some(1), "{name}: {checked:?}");
        assert!(checked.stderr.contains(word), "{name}: {checked:?}");
        let served = run(&scene, &["serve", &file]);
        assert_eq!(served.code, Some(1), "{name}: {served:?}");
        assert!(served.stderr.contains(checked.stderr.trim()), "{checked:?} but {served:?}");
        let json = run(&scene, &["check", "--json", &file]);
        let said: serde_json::Value = serde_json::from_str(&json.stdout).expect("JSON");
        assert_eq!(said["valid"], false, "{said}");
        assert!(said["obstacles"][0].as_str().is_some_and(|line| line.contains(word)), "{said}");
    }
}

/// What is wrong with this machine is distinguished from what is wrong with the file, and
/// `--file-only` asks for the latter alone.
#[test]
fn check_tells_this_machine_from_the_file() {
    let Some(scene) = Scene::new("check-where", &[]) else {
        return;
    };
    let plain = scene.one_service("", &["127.0.0.1:1".parse().expect("an address")]);
    let key = scene.file("affinity.key", "no key");
    let elsewhere = format!(
        "user = \"nobody-has-this-name\"\n{plain}\n\
         [[listener]]\nname = \"secure\"\naddress = \"{}\"\n\
         tls = {{ certificates = [{{ chain = \"/nonexistent/a.pem\", key = \"/nonexistent/a.key\" }}] }}\n\
         [[route]]\npath = \"/kept\"\nservice = \"kept\"\n[service.kept]\n\
         affinity = {{ cookie = \"kept\", key_file = \"{}\" }}\n\
         server = [{{ address = \"127.0.0.1:2\" }}]\n",
        scene.address(1, 8443),
        key.display()
    );
    let check = |text: &str, words: &[&str]| {
        let file = scene.file("elsewhere.toml", text);
        let file = file.to_string_lossy();
        let words = [&["check", "--json"], words, &[&*file]].concat();
        let checked = run(&scene, &words);
        let said: serde_json::Value = serde_json::from_str(&checked.stdout).expect("JSON");
        (checked.code, said)
    };
    let places = |said: &serde_json::Value| {
        let mistakes = said["mistakes"].as_array().cloned().unwrap_or_default();
        let place = |one: &serde_json::Value| one["where"].as_str().expect("where").to_owned();
        mistakes.iter().map(place).collect::<Vec<_>>()
    };
    // Two files that are not there, and one that others may read.
    let (code, said) = check(&elsewhere, &[]);
    assert_eq!((code, &said["valid"]), (Some(2), &false.into()), "{said}");
    assert_eq!(places(&said), ["machine"; 3], "{said}");
    let (code, said) = check(&elsewhere, &["--file-only"]);
    assert_eq!((code, &said["valid"]), (Some(0), &true.into()), "{said}");

    // A mistake of the file as well.
    let wrong = elsewhere.replace("service = \"kept\"", "service = \"lost\"");
    let (code, said) = check(&wrong, &[]);
    assert_eq!(code, Some(2));
    let mut all = places(&said);
    all.sort();
    assert_eq!(all, ["file", "machine", "machine", "machine"], "{said}");
    let (code, said) = check(&wrong, &["--file-only"]);
    assert_eq!((code, &said["valid"]), (Some(2), &false.into()), "{said}");
    assert_eq!(places(&said), ["file"], "{said}");

    // As text, and what is no file: the user.
    let file = scene.file("elsewhere.toml", format!("user = \"nobody-has-this-name\"\n{plain}"));
    let file = file.to_string_lossy();
    assert_eq!(run(&scene, &["check", &file]).code, Some(1));
    let checked = run(&scene, &["check", "--file-only", &file]);
    assert_eq!(checked.code, Some(0), "{checked:?}");
    assert!(checked.stdout.contains("is valid. The files that it names"), "{checked:?}");
}

/// The picture in the README shows what `weir check` prints today. `scripts/terminal-svg --pictures`
/// draws it again.
#[test]
fn the_picture_of_check_is_up_to_date() {
    let Some(scene) = Scene::new("check-picture", &[]) else {
        return;
    };
    let read = |path: &str| {
        let path = format!("{}/../{path}", env!("CARGO_MANIFEST_DIR"));
        std::fs::read_to_string(path).expect("a file of this repository")
    };
    let between = |text: &str, begin: &str, end: &str| {
        let rest = text.split_once(begin).expect(begin).1;
        rest.split_once(end).expect(end).0.to_owned()
    };
    let mistaken = between(&read("scripts/terminal-svg"), "MISTAKEN = \"\"\"\\\n", "\"\"\"");
    let file = scene.file("weir.toml", mistaken);
    let file = file.to_string_lossy();
    let printed = run(&scene, &["check", &file]).stderr.replace(&*file, "weir.toml");
    let shown = between(&read("docs/check.svg"), "<desc>$ weir check weir.toml\n", "</desc>");
    let shown = shown.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
    let lines =
        |text: &str| text.trim().lines().map(|l| l.trim_end().to_owned()).collect::<Vec<_>>();
    assert_eq!(lines(&printed), lines(&shown));
}

#[test]
fn check_reads_standard_input_and_nothing_without_end() {
    let Some(scene) = Scene::new("check-input", &[]) else {
        return;
    };
    let given = |text: &str| {
        let mut child = Command::new(binary())
            .args(["check", "-"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("weir starts");
        child.stdin.take().expect("a pipe").write_all(text.as_bytes()).expect("read");
        child.wait_with_output().expect("it ends")
    };
    let valid = given(&scene.one_service("", &["127.0.0.1:1".parse().expect("an address")]));
    assert_eq!(valid.status.code(), Some(0), "{valid:?}");
    assert!(String::from_utf8_lossy(&valid.stdout).starts_with("standard input is valid."));
    let wrong = given("nonsense = 1\n");
    assert_eq!(wrong.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("--> standard input:1:1"), "{wrong:?}");

    let endless = run(&scene, &["check", "/dev/zero"]);
    assert_eq!(endless.code, Some(2), "{endless:?}");
    assert!(endless.stderr.contains("it has more than 16 MB"), "{endless:?}");
}

/// Files of `n` things of one kind.
fn shapes(n: u32) -> Vec<(&'static str, String)> {
    let ip = |i: u32| format!("10.{}.{}.{}", i >> 16, (i >> 8) & 255, i & 255);
    let listener = "[[listener]]\nname = \"public\"\naddress = \"0.0.0.0:8080\"\n";
    let app = "[service.app]\nserver = [{ address = \"10.0.0.1:80\" }]\n";
    let each = |one: &dyn Fn(u32) -> String| (0..n).map(one).collect::<String>();
    let routes = each(&|i| format!("[[route]]\npath = \"/p{i}\"\nservice = \"app\"\n"));
    let services = each(&|i| {
        let ip = ip(i);
        format!(
            "[[route]]\npath = \"/p{i}\"\nservice = \"s{i}\"\n[service.s{i}]\n\
             check = {{ path = \"/{i}\" }}\nserver = [{{ address = \"{ip}:80\" }}]\n"
        )
    });
    let listeners = each(&|i| {
        let ip = ip(i);
        format!(
            "[[listener]]\nname = \"l{i}\"\naddress = \"{ip}:80\"\n\
             [[route]]\nlistener = \"l{i}\"\nservice = \"app\"\n"
        )
    });
    let mut names = "[[listener]]\naddress = \"0.0.0.0:443\"\nprotocol = \"tcp\"\n\
                     [listener.server_names]\n"
        .to_owned();
    for i in 0..n {
        writeln!(names, "\"h{i}.example.com\" = \"app\"").expect("a String");
    }
    vec![
        ("routes", format!("{listener}{routes}{app}")),
        ("services", format!("{listener}{services}")),
        ("listeners", format!("{listeners}{app}")),
        ("server names", format!("{names}{app}")),
    ]
}

/// Four times the file takes about four times the work, whatever there is much of. What is measured
/// is processor time, which other programs on the machine hardly move; were it quadratic, it would
/// be sixteen times.
#[test]
fn check_takes_time_in_proportion_to_the_file() {
    const FEW: u32 = 5_000;
    const TIMES_MAX: f64 = 8.0;
    let Some(scene) = Scene::new("check-linear", &["bash"]) else {
        return;
    };
    let seconds = |name: &str, text: &str| -> f64 {
        let file = scene.file("large.toml", text);
        let script = format!(
            "TIMEFORMAT=%U; time '{}' check '{}' >/dev/null",
            binary().display(),
            file.display()
        );
        let timed = Command::new("bash").args(["-c", &script]).output().expect("bash runs");
        let said = String::from_utf8_lossy(&timed.stderr).into_owned();
        assert!(timed.status.success(), "{name}: {said}");
        // Warnings come first.
        let time = said.trim().lines().last().unwrap_or_default();
        time.parse().unwrap_or_else(|_| panic!("{name}: {said}"))
    };
    for ((name, few), (_, many)) in shapes(FEW).iter().zip(&shapes(4 * FEW)) {
        let (few_s, many_s) = (seconds(name, few), seconds(name, many));
        // A start takes a hundredth of a second by itself.
        let times = many_s / few_s.max(0.02);
        println!("{name}: {FEW} in {few_s} s, {} in {many_s} s: {times:.1} times", 4 * FEW);
        assert!(times < TIMES_MAX, "{name}: {few_s} s, then {many_s} s");
    }
}

/// A server whose name does not resolve is shown, and a service that gets its first servers a moment
/// after the start has not been without any.
#[test]
fn a_named_server_is_no_error_at_the_start_and_an_unresolved_one_is_shown() {
    let Some(scene) = Scene::new("check-names", &[]) else {
        return;
    };
    let config = |host: &str| {
        let text = scene.one_service("", &["127.0.0.1:1".parse().expect("an address")]);
        text.replace("127.0.0.1:1", &format!("{host}:1"))
    };
    let weir = Weir::start(&scene, &config("localhost"));
    let servers = weir.api("/api/v1/services")["services"][0]["servers"].clone();
    assert!(servers.as_array().is_some_and(|servers| !servers.is_empty()), "{servers}");
    let log = weir.log();
    assert!(!log.contains("service has no server") && !log.contains("has servers again"), "{log}");
    drop(weir);

    // RFC 6761 section 6.4: never resolves.
    let weir = Weir::start(&scene, &config("nowhere.invalid"));
    weir.wait_for_log(&["service has no server"], std::time::Duration::from_secs(10));
    let service = weir.api("/api/v1/services")["services"][0].clone();
    assert_eq!(service["unresolved"][0]["name"], "nowhere.invalid:1", "{service}");
    let status = run(&scene, &["status", "--admin", &scene.admin().to_string()]);
    assert!(status.stdout.contains("name not resolved"), "{status:?}");
}
