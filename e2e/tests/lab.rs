//! The lab: links between namespaces that treat packets as their file says, and incidents, three of them
//! shortened.

#[path = "scenarios/incident.rs"]
mod scenario;

use std::net::UdpSocket;
use std::path::Path;
use std::time::Duration;

use e2e::{Linked, NAMESPACES, Process, Scene, binary, run, wait};
use rustix::process::Signal;
use scenario::{assert_clean, namespaces_of};

/// Packets that are sent to see what becomes of them.
const PACKETS: u32 = 2_000;

/// Two sockets with the link between them; the second is far.
fn sockets(linked: &Linked) -> (UdpSocket, UdpSocket) {
    let near = UdpSocket::bind(linked.near(0)).expect("a socket");
    let far = linked.inside_far(|| UdpSocket::bind(linked.far(5_000)).expect("a socket"));
    near.connect(linked.far(5_000)).expect("an address");
    far.set_read_timeout(Some(Duration::from_millis(500))).expect("a time limit");
    (near, far)
}

/// Sends numbered packets; the numbers that arrive, in the order in which they do.
fn numbers(near: &UdpSocket, far: &UdpSocket) -> Vec<u32> {
    let mut arrived = Vec::new();
    let mut buffer = [0; 4];
    for number in 0..PACKETS {
        near.send(&number.to_be_bytes()).expect("a packet sent");
        // The next hundred only when the last of these arrive, so that neither the link's queue nor
        // the socket's buffer overflows: not all of fifty in a row are lost.
        if number % 100 == 99 {
            while arrived.last().is_none_or(|last| last + 50 < number) {
                far.recv(&mut buffer).expect("one of the last fifty");
                arrived.push(u32::from_be_bytes(buffer));
            }
        }
    }
    while far.recv(&mut buffer).is_ok() {
        arrived.push(u32::from_be_bytes(buffer));
    }
    arrived
}

#[test]
fn a_link_loses_doubles_and_reorders_as_asked_and_again_by_the_same_seed() {
    let Some(scene) = Scene::new("lab-link", &[NAMESPACES]) else { return };
    let ways = "there = { loss = \"10%\", duplicate = \"5%\", \
                reorder = { share = \"5%\", packets = 3, by = \"2ms\" } }";
    let runs = [7, 7, 8].map(|seed: u32| {
        Linked::run(&scene, ways, &["--seed", &seed.to_string()], |linked| {
            let (near, far) = sockets(linked);
            let arrived = numbers(&near, &far);
            let told = linked.end();
            let there = |name: &str| told["there"][name].as_u64().expect("a count");
            assert_eq!((there("packets"), there("refused")), (PACKETS.into(), 0));
            assert_eq!(there("packets"), there("delivered") + there("lost") - there("duplicated"));
            assert_eq!(arrived.len() as u64, there("delivered"));
            for (name, share) in [("lost", 0.1), ("duplicated", 0.045), ("held_back", 0.045)] {
                let expected = f64::from(PACKETS) * share;
                let found = there(name) as f64;
                assert!((found - expected).abs() < 0.4 * expected, "{name}: {found}");
            }
            assert!(!arrived.is_sorted(), "none has overtaken another");
            let mut sorted = arrived;
            sorted.sort_unstable();
            sorted
        })
    });
    assert_eq!(runs[0], runs[1]);
    assert_ne!(runs[0], runs[2]);
}

#[test]
fn a_link_is_cut_and_mended_while_it_runs() {
    let Some(scene) = Scene::new("lab-cut", &[NAMESPACES]) else { return };
    Linked::run(&scene, "", &[], |linked| {
        let (near, far) = sockets(linked);
        let arrives = || {
            near.send(b"here").expect("a packet sent");
            far.recv(&mut [0; 8]).is_ok().then_some(())
        };
        assert!(arrives().is_some());
        linked.set("both = { cut = true }");
        let gone = || arrives().is_none().then_some(());
        wait::until("the cut", Duration::from_secs(5), gone);
        linked.set("both = { delay = \"1ms\" }");
        wait::until("the repaired link", Duration::from_secs(5), arrives);
        linked.set("both = { delay = 5 }");
        let said = || linked.process().stderr().contains("goes on as it was").then_some(());
        wait::until("the refusal", Duration::from_secs(5), said);
        assert!(arrives().is_some());
    });
}

#[test]
fn a_mistake_in_a_links_file_is_told_with_its_place() {
    let Some(scene) = Scene::new("lab-mistake", &[]) else { return };
    let file = scene.file("link.toml", "both = { delay = \"1ms\" }\nback = { lose = \"1%\" }\n");
    let words = ["lab", "link", "no-such-one:a0", "no-such-one:b0", "--file"];
    let finished = run(&scene, &[&words[..], &[&file.to_string_lossy()]].concat());
    assert_eq!(finished.code, Some(2), "{finished:?}");
    assert!(finished.stderr.contains("line 2"), "{}", finished.stderr);
    assert!(finished.stderr.contains("lose"), "{}", finished.stderr);
    let finished = run(&scene, &["lab", "link", "no-such-one:a0", "no-such-one:b0"]);
    assert_eq!(finished.code, Some(1), "{finished:?}");
    assert!(finished.stderr.contains("a0 in namespace no-such-one"), "{}", finished.stderr);
}

/// Runs an incident shortened.
fn incident(name: &str, needs: &[&str]) {
    scenario::incident(name, needs, true, Duration::from_mins(2));
}

#[test]
fn a_hidden_backlog_is_found_and_raised() {
    incident("hidden-backlog", &["nginx"]);
}

#[test]
fn kept_connections_that_a_server_is_closing_lose_nothing() {
    incident("stale-keep-alive", &["uwsgi", "haproxy"]);
}

#[test]
fn a_zone_is_lost_and_comes_back() {
    incident("zone-loss", &["haproxy", "curl"]);
}

/// An incident whose programs do nothing for as long as they are let.
const LONG: &str = "title = \"t\"\nstory = \"s\"\nhere = \"h\"\n[hosts.a]\n[hosts.b]\n\
    [[links]]\nname = \"l\"\nbetween = [\"a\", \"b\"]\nboth = { delay = \"5ms\" }\n\
    [[steps]]\nname = \"reach\"\nhost = \"a\"\nrun = \"ip route get {{ b }}\"\n\
    [[steps]]\ntitle = \"waiting\"\nhost = \"b\"\nrun = \"sleep 300\"\ntimeout = \"1h\"\n\
    [[variants]]\nname = \"only\"\ntitle = \"o\"\n";

/// Starts that incident and waits until it stands still.
fn long(scene: &Scene) -> Process {
    let file = scene.file("long.toml", LONG);
    let words = ["lab", "run", &file.to_string_lossy()];
    let mut lab = Process::start(scene, "lab", binary(), words);
    wait::until("the incident's step", Duration::from_secs(20), || {
        assert!(lab.is_running(), "{}", lab.stderr());
        lab.stderr().contains("waiting").then_some(())
    });
    assert_eq!(namespaces_of(lab.pid()).len(), 2);
    lab
}

#[test]
fn an_interrupted_run_removes_what_it_made() {
    let Some(scene) = Scene::new("lab-interrupted", &[NAMESPACES]) else { return };
    let mut lab = long(&scene);
    lab.signal(Signal::INT);
    let finished = lab.wait(Duration::from_secs(20));
    assert_eq!(finished.code, Some(1), "{finished:?}");
    assert_clean(lab.pid());
}

#[test]
fn what_a_killed_run_has_left_is_removed_by_clean() {
    let Some(scene) = Scene::new("lab-killed", &[NAMESPACES]) else { return };
    let mut lab = long(&scene);
    let pid = lab.pid();
    lab.kill();
    assert_eq!(namespaces_of(pid).len(), 2);
    let finished = run(&scene, &["lab", "clean"]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert!(finished.stdout.contains(&format!("weir-lab-{pid}-a")), "{}", finished.stdout);
    assert_clean(pid);
}

#[test]
fn a_shell_is_on_the_host_that_was_asked_for() {
    let Some(scene) = Scene::new("lab-shell", &[NAMESPACES, "nginx"]) else { return };
    let words = ["lab", "shell", "hidden-backlog", "client", "--", "ip", "-brief", "addr"];
    let finished = run(&scene, &words);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert!(finished.stdout.contains("10.78.1.1/32"), "{}", finished.stdout);
}

#[test]
fn a_command_on_a_host_ends_the_shell_as_it_ended_itself() {
    let Some(scene) = Scene::new("lab-shell-code", &[NAMESPACES, "nginx"]) else { return };
    for (line, code) in [("exit 7", 7), ("kill -KILL $$", 128 + 9)] {
        let words = ["lab", "shell", "hidden-backlog", "client", "--", "sh", "-c", line];
        let finished = run(&scene, &words);
        assert_eq!(finished.code, Some(code), "{line}: {finished:?}");
    }
    let words = ["lab", "shell", "hidden-backlog", "client", "--", "sleep", "300"];
    let mut shell = Process::start(&scene, "shell", binary(), words);
    wait::until("the command", Duration::from_secs(20), || {
        shell.stderr().contains("you are on client").then_some(())
    });
    let finished = shell.terminate(Duration::from_secs(20));
    assert_eq!(finished.code, Some(128 + 15), "{finished:?}");
    assert_clean(shell.pid());
}

#[test]
fn a_shell_that_ignores_sigterm_goes_with_its_hosts() {
    let Some(scene) = Scene::new("lab-shell-term", &[NAMESPACES, "nginx"]) else { return };
    // As shells at a terminal do.
    let shell =
        scene.file("shell", "#!/bin/sh\ntrap '' TERM\necho ready >&2\nwhile :; do sleep 1; done\n");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&shell, mode).expect("a program");
    let shell = format!("SHELL={}", shell.display());
    let weir = binary().to_string_lossy();
    let words = [&*shell, &*weir, "lab", "shell", "hidden-backlog", "client"];
    let mut shell = Process::start(&scene, "shell", Path::new("/usr/bin/env"), words);
    wait::until("the shell", Duration::from_secs(20), || {
        shell.stderr().contains("ready").then_some(())
    });
    let finished = shell.terminate(Duration::from_secs(20));
    // Killed, where a hang-up is ignored: under nohup(1).
    assert!(matches!(finished.code, Some(129 | 137)), "{finished:?}");
    assert_clean(shell.pid());
}

#[test]
fn hosts_that_are_being_made_are_removed_when_interrupted() {
    let Some(scene) = Scene::new("lab-shell-int", &[NAMESPACES]) else { return };
    let many = LONG.replace("[hosts.b]\n", "[hosts.b]\n[hosts.c]\ncount = 150\n");
    let file = scene.file("many.toml", many);
    let words = ["lab", "shell", &file.to_string_lossy(), "a"];
    let mut shell = Process::start(&scene, "shell", binary(), words);
    let made = || (namespaces_of(shell.pid()).len() > 1).then_some(());
    wait::until("the first hosts", Duration::from_secs(20), made);
    shell.signal(Signal::INT);
    let finished = shell.wait(Duration::from_secs(20));
    assert_eq!(finished.code, Some(1), "{finished:?}");
    assert!(finished.stderr.contains("stopped"), "{}", finished.stderr);
    assert!(!finished.stderr.contains("you are on"), "{}", finished.stderr);
    assert_clean(shell.pid());
}

#[test]
fn mistakes_in_an_incident_are_told_with_their_line() {
    let Some(scene) = Scene::new("lab-mistakes", &[]) else { return };
    let file = scene.file("wrong.toml", LONG.replace("\"b\"]", "\"c\"]"));
    let finished = run(&scene, &["lab", "run", &file.to_string_lossy()]);
    assert_eq!(finished.code, Some(2), "{finished:?}");
    assert!(finished.stderr.contains("line 8: no host `c`"), "{}", finished.stderr);
    let finished = run(&scene, &["lab", "run", "no-such-incident"]);
    assert_eq!(finished.code, Some(2), "{finished:?}");
    assert!(finished.stderr.contains("hidden-backlog"), "{}", finished.stderr);
    let finished = run(&scene, &["lab", "list", "--names"]);
    assert_eq!(finished.stdout.lines().count(), 10, "{}", finished.stdout);
}
