//! Session ticket keys that members share (`[fleet] tls`).

use std::net::SocketAddr;
use std::path::PathBuf;

use e2e::clients::{client, s_client};
use e2e::{Authority, NewProcess, Pair, Scene, http, run, wait};
use rustix::process::Signal;
use serde_json::Value;

use super::stage::{Member, SOON, Settings, address, wait_until_all_see};

const MEMBERS: usize = 3;
const ASK: &str = "GET / HTTP/1.1\r\nHost: a.example.com\r\nConnection: close\r\n\r\n";
const VERSIONS: [&str; 2] = ["-tls1_2", "-tls1_3"];

/// The certificates of a test: of listeners, of members, and of the authorities that sign those.
struct Certificates {
    site: Pair,
    other_site: Pair,
    clients: Authority,
    members: Authority,
    /// Another member of the same authority, with another name.
    named_otherwise: Pair,
}

impl Certificates {
    fn new(scene: &Scene) -> Certificates {
        let public = Authority::new(scene, "public");
        let members = Authority::new(scene, "members");
        Certificates {
            site: public.issue("site", &["a.example.com"]),
            other_site: public.issue("other-site", &["a.example.com"]),
            clients: Authority::new(scene, "clients"),
            named_otherwise: members.issue("named-otherwise", &["else.internal"]),
            members,
        }
    }
}

/// `tls` of [fleet] with this certificate, which the authorities of members are to have signed.
fn tls(certificates: &Certificates, pair: &Pair) -> String {
    let ca = certificates.members.ca();
    format!("tls = {{ certificate = {}, {ca}, name = \"fleet.internal\" }}\n", pair.table())
}

/// A listener with TLS at a port of member `number`.
fn listener(scene: &Scene, number: usize, port: u16, site: &Pair, more: &str) -> String {
    let address = address(scene, number, port);
    let site = site.table();
    format!("[[listener]]\naddress = \"{address}\"\ntls = {{ certificates = [{site}]{more} }}\n")
}

/// The settings of member `number`: listeners with the site's certificate (8443), with another one for the same name
/// (8444), and with the site's that asks for certificates of clients (8445).
fn settings(scene: &Scene, certificates: &Certificates, number: usize, tls: &str) -> Settings {
    let asks =
        format!(", client_certificates = {{ {}, required = false }}", certificates.clients.ca());
    let listeners = [
        listener(scene, number, 8443, &certificates.site, ""),
        listener(scene, number, 8444, &certificates.other_site, ""),
        listener(scene, number, 8445, &certificates.site, &asks),
    ];
    let rest = format!("{tls}{}[[route]]\nrespond = {{ status = 200 }}\n", listeners.concat());
    Settings { knows: (0..MEMBERS).collect(), ..Settings::new(&rest) }
}

fn start(scene: &Scene, certificates: &Certificates, number: usize) -> Member {
    let pair = certificates.members.issue(&format!("member{number}"), &["fleet.internal"]);
    Member::start(scene, number, &settings(scene, certificates, number, &tls(certificates, &pair)))
}

fn tickets(member: &Member) -> Value {
    member.fleet()["tickets"].clone()
}

fn wait_until_sealing(members: &[Member]) {
    for member in members {
        wait::until("a shared session ticket key", SOON, || {
            tickets(member)["sealing_age_s"].is_u64().then_some(())
        });
    }
}

/// A client's sessions, one of each version of TLS.
struct Sessions(Vec<(&'static str, PathBuf)>);

impl Sessions {
    /// Begins some at this address.
    fn begin(scene: &Scene, name: &str, at: SocketAddr) -> Sessions {
        let begin = |version| {
            let file = scene.folder().join(format!("{name}{version}"));
            let words = [version, "-sess_out", &file.to_string_lossy()];
            let seen = s_client(scene, at, &words, ASK);
            assert!(seen.stdout.contains("\nNew, "), "{version}: {seen:?}");
            assert!(seen.stdout.contains("HTTP/1.1 200"), "{version}: {seen:?}");
            (version, file)
        };
        Sessions(VERSIONS.map(begin).into())
    }

    /// Returns which of them are resumed at this address. All are answered.
    fn resumed(&self, scene: &Scene, at: SocketAddr) -> Vec<bool> {
        let is_resumed = |(version, file): &(&str, PathBuf)| {
            let seen = s_client(scene, at, &[version, "-sess_in", &file.to_string_lossy()], ASK);
            assert!(seen.stdout.contains("HTTP/1.1 200"), "{version}: {seen:?}");
            seen.stdout.contains("\nReused, ")
        };
        self.0.iter().map(is_resumed).collect()
    }
}

#[test]
fn a_session_is_resumed_at_any_member() {
    let Some(scene) = Scene::new("fleet-tickets", &["openssl"]) else { return };
    let certificates = Certificates::new(&scene);
    let mut members: Vec<Member> =
        (0..MEMBERS).map(|number| start(&scene, &certificates, number)).collect();
    wait_until_all_see(&members, MEMBERS - 1);
    wait_until_sealing(&members);

    let at = |number, port| address(&scene, number, port);
    let sessions = Sessions::begin(&scene, "first", at(0, 8443));
    for number in 0..MEMBERS {
        assert_eq!(sessions.resumed(&scene, at(number, 8443)), [true; 2], "member {number}");
        // A ticket is for the listeners that are alike.
        assert_eq!(sessions.resumed(&scene, at(number, 8444)), [false; 2], "member {number}");
        assert_eq!(sessions.resumed(&scene, at(number, 8445)), [false; 2], "member {number}");
    }

    // One that is killed and starts again, and one that is upgraded, have the keys of the others.
    members[1].process().kill();
    members[1] = start(&scene, &certificates, 1);
    let upgraded = NewProcess::of(&members[2].post("/api/v1/upgrade"));
    wait_until_all_see(&members, MEMBERS - 1);
    wait_until_sealing(&members);
    for number in [1, 2] {
        assert_eq!(sessions.resumed(&scene, at(number, 8443)), [true; 2], "member {number}");
        let new = Sessions::begin(&scene, &format!("of{number}"), at(number, 8443));
        assert_eq!(new.resumed(&scene, at(0, 8443)), [true; 2], "of member {number}");
    }

    let status = run(&scene, &["status", "--admin", &members[0].admin().to_string()]).stdout;
    assert!(status.contains("\nsession tickets: 1 key shared; "), "{status}");
    let metrics = http::get(members[0].admin(), "/metrics").expect("metrics").text();
    assert!(metrics.contains("\nweir_fleet_ticket_keys 1\n"), "{metrics}");
    upgraded.signal(Signal::TERM);
}

#[test]
fn keys_are_for_members_alone() {
    let Some(scene) = Scene::new("fleet-tickets-strangers", &["openssl"]) else { return };
    let certificates = Certificates::new(&scene);
    let (one, other) = (start(&scene, &certificates, 0), start(&scene, &certificates, 1));
    // It has the fleet's key for datagrams, and authorities of its own.
    let strangers = Authority::new(&scene, "strangers");
    let stranger = strangers.issue("stranger", &["fleet.internal"]);
    let own = format!(
        "tls = {{ certificate = {}, {}, name = \"fleet.internal\" }}\n",
        stranger.table(),
        strangers.ca()
    );
    let members = [one, other, Member::start(&scene, 2, &settings(&scene, &certificates, 2, &own))];
    wait_until_all_see(&members, MEMBERS - 1);
    wait_until_sealing(&members[..2]);
    wait::until("a fetch that fails", SOON, || {
        (tickets(&members[2])["fetches_failed"].as_u64() > Some(0)).then_some(())
    });
    let at = |number| address(&scene, number, 8443);
    let sessions = Sessions::begin(&scene, "of-members", at(0));
    assert_eq!(sessions.resumed(&scene, at(1)), [true; 2]);
    assert_eq!(sessions.resumed(&scene, at(2)), [false; 2], "the stranger has no key");
    assert_eq!(tickets(&members[0])["behind"], serde_json::json!(["b2"]));
    let status = run(&scene, &["status", "--admin", &members[2].admin().to_string()]).stdout;
    assert!(status.contains("certificate"), "{status}");

    // Without a certificate, and with one that the authorities of members signed for another name.
    let refused = || tickets(&members[0])["connections_refused"].as_u64().unwrap_or(0);
    let before = refused();
    let fleet = address(&scene, 0, 7946).to_string();
    let none = client(&scene, "openssl", &["s_client", "-connect", &fleet, "-ign_eof"], 20);
    assert!(none.stdout.contains("certificate required") || none.code != Some(0), "{none:?}");
    let (chain, key) = (&certificates.named_otherwise.chain, &certificates.named_otherwise.key);
    let (chain, key) = (chain.to_string_lossy(), key.to_string_lossy());
    let words = ["-cert", &chain, "-key", &key];
    let named = s_client(&scene, address(&scene, 0, 7946), &words, "\u{1}\u{1}");
    assert!(!named.stdout.contains("\u{1}\u{1}"), "{named:?}");
    wait::until("both to be counted", SOON, || (refused() >= before + 2).then_some(()));
}

#[test]
fn tls_between_members_begins_and_ends_with_a_reload() {
    let Some(scene) = Scene::new("fleet-tickets-reload", &["openssl"]) else { return };
    let certificates = Certificates::new(&scene);
    let members: Vec<Member> = (0..2).map(|number| start(&scene, &certificates, number)).collect();
    wait_until_all_see(&members, 1);
    wait_until_sealing(&members);
    let at = |number| address(&scene, number, 8443);
    let shared = Sessions::begin(&scene, "shared", at(0));

    members[1].reload(&scene, &settings(&scene, &certificates, 1, ""));
    wait::until("keys to be dropped", SOON, || tickets(&members[1]).is_null().then_some(()));
    assert_eq!(shared.resumed(&scene, at(1)), [false; 2], "the keys are gone");
    assert_eq!(shared.resumed(&scene, at(0)), [true; 2]);

    let pair = certificates.members.issue("member1", &["fleet.internal"]);
    members[1].reload(&scene, &settings(&scene, &certificates, 1, &tls(&certificates, &pair)));
    wait_until_sealing(&members);
    assert_eq!(shared.resumed(&scene, at(1)), [true; 2]);
}
