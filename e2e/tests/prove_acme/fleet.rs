//! A fleet obtains each certificate once: one member orders, all answer the challenges and use it.

use std::net::SocketAddr;
use std::time::Duration;

use e2e::{Authority, Pair, Process, Scene, binary, http, wait};
use serde_json::Value;

use super::{NAMES, PEBBLE, Pebble, Tls};

/// Between the start and the second certificate there are 30 s, and a member that ends is missed after a few.
const PATIENCE: Duration = Duration::from_mins(2);
/// A certificate is renewed after two thirds of it.
const VALIDITY: Duration = Duration::from_mins(1);
const MEMBERS: u8 = 3;

/// A member of the fleet.
struct Member {
    number: u8,
    process: Process,
}

fn at(scene: &Scene, number: u8, port: u16) -> SocketAddr {
    scene.address(100 + number, port)
}

fn config(
    scene: &Scene,
    pebble: &Pebble,
    (challenge, names): (&str, &[&str]),
    number: u8,
    tls: &str,
) -> String {
    let listed: Vec<String> =
        (0..MEMBERS).map(|other| format!("\"{}\"", at(scene, other, 7946))).collect();
    format!(
        "workers = 1\nreload = {{ watch = false }}\nstate_directory = \"{}\"\n[log]\naccess = \"off\"\n\
         [admin]\naddress = \"{}\"\n\
         [fleet]\naddress = \"{}\"\nname = \"b{number}\"\nmembers = [{}]\n\
         keys = [\"a secret of a fleet in a test, 48 bytes of letters\"]\n{tls}\n\
         [[listener]]\nname = \"public\"\naddress = \"{}\"\n\
         [[listener]]\nname = \"secure\"\naddress = \"{}\"\ntls = {{ certificates = [{{ acme = {names:?} }}] }}\n\
         [acme]\ndirectory = \"https://{}/dir\"\nterms_agreed = true\nchallenge = \"{challenge}\"\n\
         renewal = {{ ari = false }}\n{}\n\
         [[route]]\nlistener = \"secure\"\nrespond = {{ body = \"ok\" }}\n",
        scene.folder().join(format!("state{number}")).display(),
        at(scene, number, 9900),
        at(scene, number, 7946),
        listed.join(", "),
        at(scene, number, 8080),
        at(scene, number, 8443),
        pebble.address,
        pebble.authority.ca(),
    )
}

impl Member {
    fn start(scene: &Scene, number: u8, config: &str) -> Member {
        let file = scene.file(&format!("b{number}.toml"), config);
        let words = ["serve", &file.display().to_string()].map(str::to_owned);
        let process = Process::start(scene, &format!("b{number}"), binary(), words);
        Member { number, process }
    }

    fn api(&self, scene: &Scene, path: &str) -> Option<Value> {
        http::get(at(scene, self.number, 9900), path).ok().map(|answer| answer.json())
    }

    /// How many certificates it has ordered, and how many it has from others.
    fn issued(&self) -> (usize, usize) {
        let log = self.process.stderr();
        let count = |words: &str| log.matches(words).count();
        (
            count("certificate issued by ACME; it takes effect"),
            count("certificate issued by ACME to another member"),
        )
    }

    /// Who orders, as it sees it, and until when its certificate is valid.
    fn certificate(&self, scene: &Scene) -> Option<(Option<String>, String)> {
        let status = self.api(scene, "/api/v1/status")?;
        let one = &status["acme"]["certificates"][0];
        let by = one["ordered_by"].as_str().map(str::to_owned);
        Some((by, one["not_after"].as_str()?.to_owned()))
    }
}

/// Waits until all members have the same certificate, which is not `before`. Returns until when it is valid.
fn wait_for_one(scene: &Scene, members: &[Member], before: Option<&str>) -> String {
    wait::until("one certificate at all members", PATIENCE, || {
        let seen: Option<Vec<String>> =
            members.iter().map(|member| Some(member.certificate(scene)?.1)).collect();
        let seen = seen?;
        let first = seen.first()?.clone();
        (seen.iter().all(|one| *one == first) && Some(first.as_str()) != before).then_some(first)
    })
}

/// The members that have ordered, and how many certificates.
fn orders(members: &[Member]) -> Vec<(u8, usize)> {
    let ordered = members.iter().map(|member| (member.number, member.issued().0));
    ordered.filter(|(_, count)| *count > 0).collect()
}

struct Stage {
    scene: Scene,
    pebble: Pebble,
    members: Vec<Member>,
    tls: Vec<String>,
}

/// Starts the authority and a fleet, and waits for the first certificate, which is validated at the first member.
fn start(name: &str, challenge: &str) -> Option<(Stage, String)> {
    let scene = Scene::new(name, &["curl", PEBBLE])?;
    let pebble = Pebble::start_with(&scene, 1, VALIDITY);
    pebble.set_names(&scene, at(&scene, 0, 0).ip());
    let authority = Authority::new(&scene, "members");
    let tls = |number: u8| {
        let pair: Pair = authority.issue(&format!("member{number}"), &["fleet.internal"]);
        format!(
            "tls = {{ certificate = {}, {}, name = \"fleet.internal\" }}",
            pair.table(),
            authority.ca()
        )
    };
    let tls: Vec<String> = (0..MEMBERS).map(tls).collect();
    let start = |number: u8| {
        let tls = &tls[usize::from(number)];
        Member::start(&scene, number, &config(&scene, &pebble, (challenge, &NAMES), number, tls))
    };
    let members: Vec<Member> = (0..MEMBERS).map(start).collect();
    let first = wait_for_one(&scene, &members, None);
    let orders = orders(&members);
    assert!(matches!(orders[..], [(_, 1)]), "{orders:?}");
    for member in &members {
        let (own, of_others) = member.issued();
        assert_eq!(own + of_others, 1, "b{}: {}", member.number, member.process.stderr());
        let trusted = pebble.trusted(&scene);
        let secure = at(&scene, member.number, 8443);
        wait::until("the certificate to take effect", PATIENCE, || {
            Tls::connect(secure, &trusted, NAMES[0]).ask().ok()
        });
    }
    Some((Stage { scene, pebble, members, tls }, first))
}

/// Has the authority validate at a member that does not order, and waits for the renewal.
fn renew(stage: &mut Stage, first: &str) -> (u8, String) {
    let Stage { scene, pebble, members, .. } = stage;
    let owner = orders(members)[0].0;
    pebble.set_names(scene, at(scene, (owner + 1) % MEMBERS, 0).ip());
    let second = wait_for_one(scene, members, Some(first));
    assert_eq!(orders(members), [(owner, 2)], "it is renewed by the same member, once");
    for member in members.iter().filter(|member| member.number != owner) {
        let by = member.certificate(scene).unwrap().0;
        assert_eq!(by, Some(format!("b{owner}")), "as b{} sees it", member.number);
        assert!(
            !member.process.stderr().contains("no certificate for"),
            "{}",
            member.process.stderr()
        );
    }
    pebble.is_well();
    (owner, second)
}

#[test]
#[ignore = "needs Pebble: make prove"]
fn one_member_orders_by_http_01_and_another_one_when_it_is_gone() {
    let Some((mut stage, first)) = start("prove-acme-fleet-http", "http-01") else { return };
    let (owner, second) = renew(&mut stage, &first);

    // The others go on: the next member renews.
    let Stage { scene, mut pebble, mut members, tls } = stage;
    drop(members.remove(usize::from(owner)));
    pebble.set_names(&scene, at(&scene, members[0].number, 0).ip());
    let third = wait_for_one(&scene, &members, Some(&second));
    let after = orders(&members);
    assert!(matches!(after[..], [(_, 1)]), "{after:?}");

    // One that comes back with its old certificate, and one whose state is lost, get the present one.
    let _ = std::fs::remove_dir_all(scene.folder().join(format!("state{owner}")));
    let config = config(&scene, &pebble, ("http-01", &NAMES), owner, &tls[usize::from(owner)]);
    members.push(Member::start(&scene, owner, &config));
    let with_it = wait_for_one(&scene, &members, Some(&second));
    assert!(with_it >= third, "{with_it} {third}");
    let total: usize = orders(&members[..2]).iter().map(|(_, count)| count).sum();
    let renewals = usize::from(with_it != third);
    assert!(total <= 1 + renewals, "{:?}", orders(&members));
    pebble.is_well();
}

#[test]
#[ignore = "needs Pebble: make prove"]
fn one_member_orders_by_tls_alpn_01() {
    let Some((mut stage, first)) = start("prove-acme-fleet-alpn", "tls-alpn-01") else { return };
    renew(&mut stage, &first);
}
