//! Networks that fail. Each zone stands for a host, or a part of a network, of its own.

use std::net::{Shutdown, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use e2e::rogue::Peer;
use e2e::{Scene, wait};

use super::servers::answers;
use super::{Expected, IT, SOON, Situation, Stage, Table, get, post};

/// Long enough for the first packet to be sent again, which Linux does after a second.
const PATIENT: &str = "timeouts = { connect = \"1500ms\" }";
const HASTY: &str = "timeouts = { connect = \"300ms\" }";

fn unanswered() -> Expected {
    Expected::answered("connect_syn_unanswered", 504).not_retried("no other server")
}

/// On loopback.
pub(super) fn table() -> Vec<Situation> {
    vec![
        Situation::new("listen-queue-full", unanswered()).service(PATIENT).full_listen_queue(),
        Situation::new(
            "unix-queue-full",
            Expected::answered("listen_queue_full", 504).not_retried("no other server"),
        )
        .service(HASTY)
        .full_unix_socket(),
        Situation::new(
            "listen-queue-full-and-another-stands-in",
            Expected::passed("completed", 200).failed(&["connect_syn_unanswered"]),
        )
        .service(PATIENT)
        .full_listen_queue()
        .backup(answers),
    ]
}

/// In networks of their own.
pub(crate) fn in_zones() -> Table {
    let timeout = Expected::answered("connection_timeout", 504).not_retried("no other server");
    let unroutable =
        || Expected::answered("destination_ip_unroutable", 502).not_retried("no other server");
    let dark = |situation: Situation| {
        situation.in_zone("dark", 11).act(|stage| {
            stage.cut("dark");
            stage.get()
        })
    };
    let situations = vec![
        dark(Situation::new("packets-are-dropped", timeout).service(HASTY)),
        dark(Situation::new("packets-are-dropped-again", unanswered()).service(PATIENT)),
        dark(
            Situation::new(
                "packets-are-dropped-and-another-stands-in",
                Expected::passed("completed", 200).failed(&["connection_timeout"]),
            )
            .service(HASTY),
        )
        .backup(answers),
        // There is no route at all; a documentation address (RFC 5737).
        Situation::new("no-route-to-the-network", unroutable()).named("192.0.2.1:80"),
        // No host answers for this address on its own network; Linux asks for three seconds.
        Situation::new("no-such-host-on-the-network", unroutable())
            .service("timeouts = { connect = \"6s\" }")
            .in_zone("empty", 99),
        Situation::new(
            "falls-silent-in-an-upload",
            Expected::answered("connection_lost", 504).not_retried("not idempotent"),
        )
        .service("timeouts = { response = \"1s\" }")
        .server_in("lost", |peer| {
            peer.head();
            peer.hold();
        })
        .act(|stage| {
            let mut connection = stage.send(
                "POST /it HTTP/1.1\r\nHost: a\r\nAccept: application/json\r\n\
                 Content-Length: 4000000000\r\n\r\n",
            );
            let mut writer = connection.stream.try_clone().expect("a second handle");
            std::thread::spawn(move || {
                // Ends when Weir has given up.
                while std::io::Write::write_all(&mut writer, &[b'x'; 65_536]).is_ok() {}
            });
            stage.wait_for_in_flight(1);
            wait::measure_for(Duration::from_millis(200));
            stage.cut("lost");
            connection.response(false).into()
        }),
    ];
    Table {
        zones: &["dark", "empty", "lost", "closes-post", "closes-get"],
        ..Table::of(situations.into_iter().chain(kept()).collect())
    }
}

/// Kept connections that end while the next request is on its way: that the server has closed is
/// not heard of, and what is sent to it then is answered by its kernel with a reset.
fn kept() -> [Situation; 2] {
    const POST_ZONE: &str = "closes-post";
    const GET_ZONE: &str = "closes-get";
    // The same client connection, since a kept one belongs to the worker that made it.
    let after_the_end = |stage: &Stage<'_>, zone, ended: &AtomicBool| {
        stage.hide_ends(zone);
        let mut connection = stage.open();
        post(&mut connection, "/beside", b"body");
        wait::until("the server's end", SOON, || ended.load(Ordering::SeqCst).then_some(()));
        // Nothing that may not be repeated is sent right after a response.
        wait::measure_for(Duration::from_millis(300));
        connection
    };
    let (of_post, of_get) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    [
        Situation::new(
            "kept-connection-closes-on-a-post",
            Expected::answered("server_closed_idle_connection", 502)
                .not_retried("not idempotent")
                .reused(true),
        )
        .server_in(POST_ZONE, answers_once(&of_post))
        .act(move |stage| post(&mut after_the_end(stage, POST_ZONE, &of_post), IT, b"body")),
        Situation::new(
            "kept-connection-closes-on-a-get",
            Expected::passed("completed", 200)
                .failed(&["server_closed_idle_connection"])
                .reused(false),
        )
        .server_in(GET_ZONE, answers_once(&of_get))
        .act(move |stage| get(&mut after_the_end(stage, GET_ZONE, &of_get))),
    ]
}

/// On its first connection it answers once, ends it and says so; from then on it does as it should.
fn answers_once(ended: &Arc<AtomicBool>) -> impl Fn(&mut Peer) + Send + Sync + 'static {
    let ended = Arc::clone(ended);
    move |peer| {
        if peer.number > 0 {
            return answers(peer);
        }
        peer.request();
        // Only on a promise is a POST sent where it cannot be taken back.
        peer.say("HTTP/1.1 200 OK\r\nKeep-Alive: timeout=60\r\nContent-Length: 2\r\n\r\nok");
        peer.stream.shutdown(Shutdown::Both).expect("to end the connection");
        ended.store(true, Ordering::SeqCst);
    }
}

/// Names that do not resolve.
pub(crate) fn unresolved() -> Table {
    let situations = vec![
        Situation::new("no-such-name", Expected::answered("dns_error", 502))
            .named("missing.example:80"),
    ];
    Table { top: resolver, ..Table::of(situations) }
}

/// A DNS server that says of every name that there is none.
fn resolver(scene: &Scene) -> String {
    let address = scene.address(2, 5353);
    let socket = UdpSocket::bind(address).expect("a free address");
    std::thread::spawn(move || {
        let mut message = [0; 512];
        while let Ok((length, from)) = socket.recv_from(&mut message) {
            // RFC 1035 section 4.1.1: a response, recursion available, NXDOMAIN; and nothing but
            // the question, whatever else the query held.
            message[2] |= 0x80;
            message[3] = 0x83;
            message[6..12].fill(0);
            let name = message[12..length].iter().position(|&byte| byte == 0).unwrap_or(0);
            let end = (12 + name + 5).min(length);
            drop(socket.send_to(&message[..end], from));
        }
    });
    format!("resolver = \"{address}\"")
}
