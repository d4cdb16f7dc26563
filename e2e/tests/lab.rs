//! The lab: links between namespaces that do to packets what their file says.

use std::net::UdpSocket;
use std::time::Duration;

use e2e::{Linked, NAMESPACES, Scene, run, wait};

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
        // Taken now and then, so that the socket's own buffer loses nothing.
        if number % 100 == 99 {
            wait::measure_for(Duration::from_millis(5));
            far.set_nonblocking(true).expect("no waiting");
            while far.recv(&mut buffer).is_ok() {
                arrived.push(u32::from_be_bytes(buffer));
            }
            far.set_nonblocking(false).expect("waiting");
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
        wait::until("the mended link", Duration::from_secs(5), arrives);
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
