//! Measures how much of a shared concurrency limit the members use, compared with one balancer, and the CPU time of a TLS
//! session that resumes at another member: `make measure`.

#[path = "fleet/slots.rs"]
#[allow(dead_code, reason = "fleet uses the rest")]
mod slots;
#[path = "fleet/stage.rs"]
#[allow(dead_code, reason = "fleet uses the rest")]
mod stage;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use e2e::{Authority, Promises, Scene, Zones, wait};
use rustls::client::Resumption;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, HandshakeKind, RootCertStore, Stream};

use stage::{Member, SERVERS, SOON, Settings, address, start_apps, wait_until_all_see};

#[test]
#[ignore = "takes two minutes: make measure"]
fn a_limit_over_the_fleet_is_used_as_if_one_balancer_had_it() {
    let Some(scene) = Scene::alone("measure-fleet-slots", &["python3", "wrk"]) else { return };
    Zones::run(&[SERVERS], |zones| {
        let apps = start_apps(&scene, zones, 2, &["--work-ms", "50"]);
        let busy_share = |count, busy| {
            let members = slots::start(&scene, &apps, count);
            slots::busy_share(&scene, &apps, &members[..busy])
        };
        let alone = busy_share(1, 1);
        let mut promises = Promises::of("measure_fleet");
        for (count, busy) in [(3, 3), (3, 1), (32, 32), (32, 1)] {
            let what = format!(
                "slots in use with {count} members, {busy} with requests, beside one balancer's"
            );
            promises.at_least(&what, busy_share(count, busy) / alone * 100.0, 95.0, "%");
        }
        promises.hold();
    });
}

/// Connections of each kind. CPU time is counted in hundredths of a second.
const CONNECTIONS: usize = 3_000;

/// Makes a connection with one request. Returns whether it resumed a session.
fn connect(config: &Arc<ClientConfig>, at: SocketAddr) -> bool {
    let name = ServerName::try_from("a.example.com").expect("a name");
    let mut tls = ClientConnection::new(Arc::clone(config), name).expect("a client");
    let mut tcp = TcpStream::connect(at).expect("a connection");
    tcp.set_nodelay(true).expect("no delay");
    let mut stream = Stream::new(&mut tls, &mut tcp);
    let ask = b"GET / HTTP/1.1\r\nHost: a.example.com\r\nConnection: close\r\n\r\n";
    stream.write_all(ask).expect("a request sent");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("an answer to the end");
    assert!(answer.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&answer));
    tls.handshake_kind() == Some(HandshakeKind::Resumed)
}

/// Returns the members' CPU time for a connection, over connections to these members in turn.
fn cost(
    config: &Arc<ClientConfig>,
    members: &mut [Member],
    at: &[SocketAddr],
    resumes: bool,
) -> f64 {
    // The first one of each has no session to resume.
    for at in at {
        connect(config, *at);
    }
    let used = |members: &mut [Member]| -> Duration {
        members.iter_mut().map(|member| member.process().cpu_time()).sum()
    };
    let before = used(members);
    let turns = (0..CONNECTIONS).filter(|turn| connect(config, at[turn % at.len()]) == resumes);
    assert_eq!(turns.count(), CONNECTIONS, "resumed: {resumes}");
    used(members).saturating_sub(before).as_secs_f64() * 1e6 / CONNECTIONS as f64
}

#[test]
#[ignore = "takes a minute: make measure"]
fn a_session_resumes_at_another_member_for_what_it_costs_at_the_same_one() {
    let Some(scene) = Scene::alone("measure-fleet-tickets", &[]) else { return };
    let (public, ca) = (Authority::new(&scene, "public"), Authority::new(&scene, "members"));
    let site = public.issue("site", &["a.example.com"]);
    let mut members: Vec<Member> = (0..3)
        .map(|number| {
            let pair = ca.issue(&format!("member{number}"), &["fleet.internal"]);
            let rest = format!(
                "tls = {{ certificate = {}, {} }}\n[[listener]]\naddress = \"{}\"\n\
                 tls = {{ certificates = [{}] }}\n[[route]]\nrespond = {{ status = 200 }}\n",
                pair.table(),
                ca.ca(),
                address(&scene, number, 8443),
                site.table()
            );
            Member::start(&scene, number, &Settings::new(&rest))
        })
        .collect();
    wait_until_all_see(&members, 2);
    for member in &members {
        wait::until("a shared session ticket key", SOON, || {
            member.fleet()["tickets"]["sealing_age_s"].is_u64().then_some(())
        });
    }
    let at = [0, 1, 2].map(|number| address(&scene, number, 8443));
    let config = |resumption: Resumption| {
        let mut roots = RootCertStore::empty();
        for one in CertificateDer::pem_file_iter(public.pem()).expect("the authority") {
            roots.add(one.expect("a certificate")).expect("an authority");
        }
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.resumption = resumption;
        Arc::new(config)
    };
    let sessions = Resumption::in_memory_sessions;
    let full = cost(&config(Resumption::disabled()), &mut members, &at, false);
    let same = cost(&config(sessions(32)), &mut members, &at[..1], true);
    let other = cost(&config(sessions(32)), &mut members, &at, true);
    println!(
        "CPU time of a connection: full {full:.0} µs, resumed {same:.0} µs, elsewhere {other:.0} µs"
    );
    let mut promises = Promises::of("measure_fleet");
    promises.at_most(
        "CPU time of a session resumed at another member, compared with the same member",
        other / same * 100.0,
        110.0,
        "%",
    );
    promises.at_most(
        "CPU time of a session resumed at another member, compared with a full handshake",
        other / full * 100.0,
        100.0,
        "%",
    );
    promises.hold();
}
