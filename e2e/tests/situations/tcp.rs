//! Connections in TCP mode, which have no status and no answer.

use e2e::http::Connection;
use e2e::rogue::{Peer, reset_on_close};

use super::{Expected, Seen, Situation, Stage};

/// Says something, and waits for the end; a tunnel that ends in an orderly way ends with EOF. One that
/// ends at once may be noticed while connecting or sending.
fn talk(stage: &Stage<'_>) -> Seen {
    let talked = Connection::open(stage.front).and_then(|mut connection| {
        connection.send(b"hello")?;
        connection.rest()
    });
    match talked {
        Ok(_) => Seen::Left,
        Err(error) => Seen::Broken(error),
    }
}

/// Greets, and sends nothing more.
pub(super) fn greets(peer: &mut Peer) {
    peer.say("hello");
    peer.hold();
}

pub(super) fn table() -> Vec<Situation> {
    vec![
        Situation::new(
            "tcp-refused",
            Expected::closed("connection_refused").not_retried("no other server"),
        )
        .tcp()
        .nobody()
        .act(talk),
        Situation::new(
            "tcp-refused-and-another-stands-in",
            Expected::gone("completed", None).failed(&["connection_refused"]),
        )
        .tcp()
        .nobody()
        .backup(|peer| peer.say("hello"))
        .act(|stage| {
            let mut connection = stage.open();
            connection.exactly(5).expect("the other server's greeting");
            connection.stream.shutdown(std::net::Shutdown::Write).expect("a half-close");
            connection.rest().expect("an orderly end");
            Seen::Left
        }),
        Situation::new(
            "tcp-total-while-connecting",
            Expected::closed("total_timeout").not_retried("no use"),
        )
        .tcp()
        .service("timeouts = { connect = \"20s\", total = \"300ms\" }")
        .full_listen_queue()
        .act(talk),
        Situation::new(
            "tcp-client-resets-while-connecting",
            Expected::gone("client_reset", None).not_retried("no use"),
        )
        .tcp()
        .service("timeouts = { connect = \"20s\" }")
        .full_listen_queue()
        .act(|stage| {
            let connection = stage.send("hello");
            stage.wait_for_in_flight(1);
            reset_on_close(&connection.stream);
            drop(connection);
            Seen::Left
        }),
        Situation::new(
            "tcp-server-down-while-connecting",
            Expected::gone("completed", None).failed(&["server_marked_down"]),
        )
        .tcp()
        .service(
            "timeouts = { connect = \"20s\" }\n\
             check = { kind = \"tcp\", interval = \"500ms\", timeout = \"300ms\", fall = 2 }",
        )
        .full_listen_queue()
        .backup(|peer| peer.say("hello"))
        .act(|stage| {
            let mut connection = stage.open();
            connection.exactly(5).expect("the other server's greeting");
            connection.stream.shutdown(std::net::Shutdown::Write).expect("a half-close");
            connection.rest().expect("an orderly end");
            Seen::Left
        }),
        Situation::new("tcp-maintenance", Expected::closed("maintenance"))
            .tcp()
            .service("maintenance = true")
            .nobody()
            .act(talk),
        Situation::new("tcp-server-resets", Expected::closed("connection_reset"))
            .tcp()
            .server(|peer| {
                drop(std::io::Read::read(&mut peer.stream, &mut [0; 5]));
                peer.reset();
            })
            .act(talk),
        Situation::new("tcp-client-resets", Expected::gone("client_reset", None))
            .tcp()
            .server(greets)
            .act(|stage| {
                let mut connection = stage.open();
                connection.exactly(5).expect("the server's greeting");
                reset_on_close(&connection.stream);
                drop(connection);
                Seen::Left
            }),
        Situation::new("tcp-idle", Expected::gone("tunnel_idle_timeout", None))
            .tcp()
            .service("timeouts = { idle = \"300ms\" }")
            .server(Peer::hold)
            .act(talk),
    ]
}
