//! Failures caused by the balancer itself, or by its machine.

use std::time::Duration;

use e2e::rogue::Peer;
use e2e::wait;

use super::servers::holds;
use super::tcp::greets;
use super::{Expected, Situation, Table};

/// SIGTERM, and requests that do not end in time.
pub(crate) fn stopping() -> Table {
    fn half(peer: &mut Peer) {
        peer.request();
        peer.say("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf");
        peer.hold();
    }
    const IN_TCP: &str = "stopping-in-tcp-mode";
    const WAITING: &str = "stopping-while-waiting";
    const IN_BODY: &str = "stopping-in-the-body";
    let situations = vec![
        Situation::new(WAITING, Expected::answered("shutting_down", 503)).server(holds).act(
            |stage| {
                let mut sent = stage.send_it();
                let mut admin = stage.weir.admin();
                for name in [WAITING, IN_BODY, IN_TCP] {
                    wait::until("all to be under way", super::SOON, || {
                        (admin.in_flight(name) >= 1).then_some(())
                    });
                }
                stage.weir.begin_to_stop();
                sent.response(false).into()
            },
        ),
        Situation::new(IN_BODY, Expected::cut("shutting_down", 200).response_bytes(4)).server(half),
        Situation::new(IN_TCP, Expected::closed("shutting_down").response_bytes(5))
            .tcp()
            .server(greets)
            .act(|stage| {
                let mut connection = stage.open();
                connection.exactly(5).expect("the server's greeting");
                connection.response(false).into()
            }),
    ];
    Table { top: |_| "drain_max = \"300ms\"".to_owned(), outlives: false, ..Table::of(situations) }
}

/// Two local ports, two connections that need them, and a third. In a network of its own, since
/// ports are everybody's.
pub(crate) fn out_of_ports() -> Table {
    const RANGE: &str = "/proc/sys/net/ipv4/ip_local_port_range";
    let situation = Situation::new(
        "no-local-port-left",
        Expected::answered("connection_limit_reached", 503).not_retried("no other server"),
    )
    .server(holds)
    .act(|stage| {
        let all = std::fs::read(RANGE).expect("the range of ports");
        // Opened while there are still ports for clients too.
        let mut beside = [stage.open(), stage.open()];
        let mut connection = stage.open();
        std::fs::write(RANGE, "61000 61001").expect("a smaller range of ports");
        for held in &mut beside {
            held.send(b"GET /beside HTTP/1.1\r\nHost: a\r\n\r\n").expect("to be able to send");
        }
        // Fewer than three clients may ask for it at a time.
        stage.wait_for_in_flight(2);
        wait::measure_for(Duration::from_millis(100));
        let seen = super::get(&mut connection);
        std::fs::write(RANGE, all).expect("all ports again");
        seen
    });
    Table { zones: &["unused"], ..Table::of(vec![situation]) }
}
