//! Faults between a server's network and its clients', looked at from both sides at the same time: what
//! the doctor must find on each side, and what else it may say there, with the reason. How each is made
//! is in `make.rs`.

use crate::both::Both;
use crate::make;
use crate::stage::{self, Looked, Stage};

/// Which end the doctor looks from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Server,
    Client,
}

/// What the doctor must say on one side of a fault. Every other finding is false.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Expected {
    pub(crate) side: Side,
    /// The rule that must speak; `None` if this side cannot see the fault.
    pub(crate) finds: Option<&'static str>,
    /// Rules whose findings are true here too, and why.
    pub(crate) also: &'static [(&'static str, &'static str)],
}

/// A fault, and how it is made.
#[derive(Clone, Copy)]
pub(crate) struct Fault {
    pub(crate) name: &'static str,
    pub(crate) needs: &'static [&'static str],
    pub(crate) expected: &'static [Expected],
    pub(crate) make: fn(&Stage<'_>) -> Both,
}

/// What came of one side of a fault.
pub(crate) struct Outcome {
    pub(crate) fault: &'static str,
    pub(crate) expected: &'static Expected,
    /// Whether the rule spoke that must; true if none must.
    pub(crate) is_found: bool,
    /// How many findings are true.
    pub(crate) right: usize,
    /// Findings that do not belong here, and those that the kernel's counters contradict.
    pub(crate) wrong: Vec<String>,
}

/// Makes the fault in namespaces of its own, and judges what the doctor says on each side.
pub(crate) fn judge(fault: &'static Fault, scene: &str) -> Vec<Outcome> {
    let mut outcomes = Vec::new();
    stage::run(scene, fault.needs, |stage| {
        let both = (fault.make)(stage);
        for expected in fault.expected {
            let looked = both.on(expected.side);
            let outcome = outcome(fault.name, expected, looked);
            if !outcome.is_found || !outcome.wrong.is_empty() {
                let findings = &looked.report["findings"];
                eprintln!("{}, {:?}:", fault.name, expected.side);
                eprintln!("must find {:?}, found {findings:#}", expected.finds);
            }
            outcomes.push(outcome);
        }
    });
    outcomes
}

fn outcome(fault: &'static str, expected: &'static Expected, looked: &Looked) -> Outcome {
    let said = looked.rules();
    let belongs = |rule: &String| {
        expected.finds == Some(rule) || expected.also.iter().any(|(also, _)| also == rule)
    };
    let (right, foreign): (Vec<&String>, Vec<&String>) =
        said.iter().partition(|rule| belongs(rule));
    let foreign = foreign.into_iter().map(|rule| format!("{rule}: is not what was made"));
    let wrong = looked.contradictions.iter().cloned().chain(foreign);
    let side = expected.side;
    Outcome {
        fault,
        expected,
        is_found: expected.finds.is_none_or(|rule| said.iter().any(|one| one == rule)),
        right: right.len(),
        wrong: wrong.map(|what| format!("{fault}, {side:?}: {what}")).collect(),
    }
}

const fn server(
    finds: Option<&'static str>,
    also: &'static [(&'static str, &'static str)],
) -> Expected {
    Expected { side: Side::Server, finds, also }
}

const fn client(
    finds: Option<&'static str>,
    also: &'static [(&'static str, &'static str)],
) -> Expected {
    Expected { side: Side::Client, finds, also }
}

/// A fault that needs no program from outside.
const fn fault(
    name: &'static str,
    expected: &'static [Expected],
    make: fn(&Stage<'_>) -> Both,
) -> Fault {
    Fault { name, needs: &[], expected, make }
}

const fn with_nginx(fault: Fault) -> Fault {
    Fault { needs: &["nginx"], ..fault }
}

/// Why `loss` is true where nothing arrives.
const ALL_IS_LOST: (&str, &str) = ("loss", "everything sent is lost");

/// What a sender may say besides: on a busy machine the packets of a veth pair wait in queues of several
/// processors, and the kernel counts what overtakes (TCPSACKReorder) and what came twice (TCPDSACKRecv).
const OVERTAKEN: &[(&str, &str)] = &[(
    "reordering",
    "as advice, on a busy machine: the kernel counts packets that overtook others and came twice",
)];

/// What a receiver may say about segments that were lost on their way to it.
const GAPS: &[(&str, &str)] = &[
    ("reordering", "segments behind a lost one arrive ahead of their turn"),
    ("slow_reader", "as advice: segments behind a lost one fill the receive buffer"),
];

/// Those in which the other end is dead, and those of which the doctor once said what was not so. `make
/// test` runs these.
pub(crate) const DEAD_OR_FALSE: &[Fault] = &[
    fault(
        "every SYN is lost",
        &[client(Some("syn_unanswered"), &[]), server(None, &[])],
        make::every_syn_is_lost,
    ),
    fault(
        "established connections, nothing arrives at the server any more",
        &[client(Some("connections_stalled"), &[ALL_IS_LOST]), server(None, &[])],
        make::black_hole_to_server,
    ),
    fault(
        "established connections, nothing arrives at the clients any more",
        &[server(Some("connections_stalled"), &[ALL_IS_LOST]), client(None, &[])],
        make::black_hole_to_clients,
    ),
    fault(
        "MTU black hole towards the clients",
        &[server(Some("connections_stalled"), &[ALL_IS_LOST]), client(None, &[])],
        make::mtu_to_clients,
    ),
    fault(
        "MTU black hole towards the server",
        &[client(Some("connections_stalled"), &[ALL_IS_LOST]), server(None, &[])],
        make::mtu_to_server,
    ),
    fault(
        "connections are refused by a closed port",
        &[client(Some("connects_refused"), &[]), server(Some("resets_sent"), &[])],
        make::refused,
    ),
    fault(
        "the server resets established connections",
        &[client(Some("resets_received"), &[]), server(Some("resets_sent"), &[])],
        make::server_resets,
    ),
    with_nginx(fault(
        "the server's accept queue overflows",
        &[
            server(Some("listener_overflow"), &[]),
            client(
                Some("server_queue_full"),
                &[("syn_unanswered", "the full queue drops SYNs, which are repeated")],
            ),
        ],
        make::queue_overflows,
    )),
    fault(
        "one answer to a SYN is lost",
        &[server(None, &[]), client(None, &[])],
        make::one_answer_lost,
    ),
    fault(
        "tcp_rmem is tiny, the program reads fast",
        &[server(Some("receive_buffer_small"), &[]), client(Some("peer_slow_reader"), &[])],
        make::tiny_rmem,
    ),
    fault(
        "a firewall refuses by ICMP",
        &[client(Some("connects_refused"), &[]), server(None, &[])],
        make::refused_by_icmp,
    ),
];

/// All others.
pub(crate) const OTHERS: &[Fault] = &[
    fault("nothing is wrong", &[server(None, &[]), client(None, &[])], make::quiet),
    fault(
        "clients reset established connections",
        &[server(Some("resets_received"), &[]), client(Some("resets_sent"), &[])],
        make::clients_reset,
    ),
    fault(
        "answers to SYNs are lost",
        &[server(Some("syn_unanswered"), &[]), client(Some("syn_unanswered"), &[])],
        make::answers_lost,
    ),
    fault(
        "the connection table evicts entries",
        &[
            server(Some("conntrack_drops"), &[("conntrack_full", "the table is full")]),
            client(None, &[]),
        ],
        make::table_evicts,
    ),
    fault(
        "a program of the server does not read",
        &[server(Some("slow_reader"), &[]), client(Some("peer_slow_reader"), &[])],
        make::server_does_not_read,
    ),
    fault(
        "a client does not read",
        &[client(Some("slow_reader"), &[]), server(Some("peer_slow_reader"), &[])],
        make::client_does_not_read,
    ),
    fault(
        "3 % of what clients send is lost",
        &[client(Some("loss"), OVERTAKEN), server(None, GAPS)],
        make::loss_to_server,
    ),
    fault(
        "3 % of what the server sends is lost",
        &[server(Some("loss"), OVERTAKEN), client(None, GAPS)],
        make::loss_to_clients,
    ),
    with_nginx(fault(
        "a flood of SYNs",
        &[server(Some("syn_cookies"), &[]), client(None, &[])],
        make::flood,
    )),
    with_nginx(fault(
        "a flood of SYNs, cookies are off",
        &[
            server(
                Some("syn_drops"),
                &[("backlog_low", "the SYN queue is as short as nginx's backlog")],
            ),
            client(None, &[]),
        ],
        make::flood_without_cookies,
    )),
    with_nginx(fault(
        "somaxconn was raised after the start",
        &[server(Some("backlog_stale"), &[]), client(None, &[])],
        make::somaxconn_raised,
    )),
    fault(
        "SACK is off at the server",
        &[server(Some("sack_off"), &[]), client(None, &[])],
        |stage| make::with_setting(stage, "net/ipv4/tcp_sack", "0"),
    ),
    fault(
        "window scaling is off at the server",
        &[server(Some("window_scaling_off"), &[]), client(None, &[])],
        |stage| make::with_setting(stage, "net/ipv4/tcp_window_scaling", "0"),
    ),
    fault(
        "timestamps are off at the server",
        &[server(Some("timestamps_off"), &[]), client(None, &[])],
        |stage| make::with_setting(stage, "net/ipv4/tcp_timestamps", "0"),
    ),
    fault(
        "tcp_abort_on_overflow is on",
        &[server(Some("abort_on_overflow"), &[]), client(None, &[])],
        |stage| make::with_setting(stage, "net/ipv4/tcp_abort_on_overflow", "1"),
    ),
    fault(
        "ports run out towards one server",
        &[client(Some("ports_exhausted"), &[]), server(None, &[])],
        make::ports_run_out,
    ),
    fault(
        "sockets in TIME-WAIT exceed tcp_max_tw_buckets",
        &[
            client(
                Some("time_wait_overflow"),
                &[("resets_sent", "a FIN that finds no TIME-WAIT socket is answered by a reset")],
            ),
            server(None, &[]),
        ],
        make::time_wait_overflows,
    ),
];
