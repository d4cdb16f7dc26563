//! The doctor's output as text: the report with its heading, and tables of listeners and sockets.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use diagnose::facts::{
    Direction, Facts, Known, Listener, Namespace, PeerSockets, SocketState, Sockets, TcpSummary,
};
use diagnose::finding::Report;
use diagnose::sysctl::Reviewed;
use diagnose::words;

use super::columns::Columns;

/// Columns of text: what a terminal has at least, and what the eye follows.
pub(crate) const WIDTH: usize = 100;

/// What was looked at in a line, then the findings.
pub(crate) fn report(facts: &Facts, report: &Report, colour: bool) -> String {
    let mut out = String::new();
    let kernel = facts.host.kernel_release.get().map_or("a kernel unknown", String::as_str);
    let looked = match facts.host.samples.as_slice() {
        [first, .., last] => {
            let seconds = last.at_ms.saturating_sub(first.at_ms) as f64 / 1000.0;
            format!("observed for {seconds:.1} s")
        }
        _ => "one sample only, so no rates".to_owned(),
    };
    let namespaces = words::plural(facts.namespaces.len() as u64, "network namespace");
    _ = writeln!(out, "Linux {kernel}, {namespaces}, {looked}.\n");
    let text = diagnose::render::report(report, WIDTH);
    if !colour {
        out.push_str(&text);
        return out;
    }
    for line in text.lines() {
        let painted = ["CRITICAL", "WARNING", "ADVICE", "NOTE"]
            .iter()
            .zip(["\u{1b}[1;31m", "\u{1b}[1;33m", "\u{1b}[1;36m", "\u{1b}[1m"])
            .find_map(|(word, paint)| {
                let rest = line.strip_prefix(word)?;
                Some(format!("{paint}{word}\u{1b}[0m{rest}"))
            });
        out.push_str(painted.as_deref().unwrap_or(line));
        out.push('\n');
    }
    out
}

/// Settings and what they do, by whose they are.
pub(crate) fn settings(groups: &[(String, Vec<Reviewed>)], colour: bool) -> String {
    let mut out = String::new();
    let [on, off] = if colour { ["\u{1b}[1m", "\u{1b}[0m"] } else { ["", ""] };
    for (name, reviewed) in groups {
        if !out.is_empty() {
            out.push('\n');
        }
        _ = writeln!(out, "{on}{name}{off}\n");
        out.push_str(&diagnose::render::settings(reviewed, WIDTH));
    }
    out
}

/// Listening sockets of every namespace.
pub(crate) fn listeners(facts: &Facts, colour: bool) -> String {
    by_namespace(facts, colour, |namespace| {
        let Some(newest) = namespace.samples.last() else { return "no sample\n".to_owned() };
        match newest.listeners.as_result() {
            Ok(listeners) => listener_table(namespace, listeners),
            Err(why) => format!("could not look: {why}\n"),
        }
    })
}

fn listener_table(namespace: &Namespace, listeners: &[Listener]) -> String {
    if listeners.is_empty() {
        return "nothing listens\n".to_owned();
    }
    let mut columns =
        Columns::headed(["ADDRESS", "PROGRAM", "WAITING", "BACKLOG", "DROPPED", "ASKED FOR"]);
    let somaxconn =
        namespace.settings.get().and_then(|s| s.number("net.core.somaxconn").get().copied());
    for listener in listeners {
        let program = match (listener.program.get(), listener.pid.get()) {
            (Some(name), Some(pid)) => format!("{name} ({pid})"),
            _ => "?".to_owned(),
        };
        columns.row([
            listener.address.to_string(),
            program,
            words::thousands(listener.waiting.into()),
            words::thousands(listener.backlog.into()),
            known(&listener.drops, |drops| words::thousands(*drops)),
            asked(listener, somaxconn),
        ]);
    }
    let mut text = columns.text();
    let unnamed = listeners.iter().find_map(|listener| listener.program.as_result().err());
    if let Some(why) = unnamed {
        _ = writeln!(text, "?: {why}");
    }
    text
}

/// The kernel keeps the smaller of what was asked for and somaxconn.
fn asked(listener: &Listener, somaxconn: Option<u64>) -> String {
    match (listener.backlog_asked.get(), somaxconn) {
        (Some(asked), _) => words::thousands((*asked).into()),
        (None, Some(max)) if u64::from(listener.backlog) < max => {
            words::thousands(listener.backlog.into())
        }
        (None, Some(max)) if u64::from(listener.backlog) == max => {
            "that or more; somaxconn caps it".to_owned()
        }
        (None, Some(_)) => "that or more; opened under a higher somaxconn".to_owned(),
        (None, None) => "?".to_owned(),
    }
}

/// All other sockets of every namespace, added up.
pub(crate) fn sockets(facts: &Facts, colour: bool) -> String {
    by_namespace(facts, colour, |namespace| {
        let Some(newest) = namespace.samples.last() else { return "no sample\n".to_owned() };
        match newest.sockets.as_result() {
            Ok(sockets) => socket_tables(namespace, sockets),
            Err(why) => format!("could not look: {why}\n"),
        }
    })
}

fn socket_tables(namespace: &Namespace, sockets: &Sockets) -> String {
    let total: u64 = sockets.states.values().sum();
    if total == 0 {
        return "no connections\n".to_owned();
    }
    let mut text = format!("{}: {}\n", words::plural(total, "socket"), states(&sockets.states));
    let mut columns = Columns::headed([
        "PEER",
        "PORT",
        "SOCKETS",
        "RTT",
        "SENT AGAIN",
        "HELD BY PEER",
        "UNREAD",
        "UNSENT",
        "STATES",
    ]);
    for peer in &sockets.peers {
        columns.row(peer_row(peer));
    }
    _ = write!(text, "\n{}", columns.text());
    if let Err(why) = sockets.tcp_info.as_result() {
        _ = writeln!(text, "RTT to UNSENT: {why}");
    }
    if sockets.peers_left_out > 0 {
        _ = writeln!(text, "and {} more", words::plural(sockets.peers_left_out, "peer"));
    }
    if !sockets.ports.is_empty() {
        let range = namespace.settings.get().and_then(|settings| {
            let range = settings.numbers("net.ipv4.ip_local_port_range");
            match range.get().map(Vec::as_slice) {
                Some([low, high]) => Some(high.saturating_sub(*low) + 1),
                _ => None,
            }
        });
        let mut columns = Columns::headed(["FROM", "TO", "PORTS USED", "IN TIME_WAIT", "OF"]);
        for ports in &sockets.ports {
            columns.row([
                ports.source.to_string(),
                ports.destination.to_string(),
                words::thousands(ports.used),
                words::thousands(ports.time_wait),
                range.map_or_else(|| "?".to_owned(), words::thousands),
            ]);
        }
        _ = write!(text, "\n{}", columns.text());
    }
    text
}

fn peer_row(peer: &PeerSockets) -> [String; 9] {
    let port = match peer.direction {
        Direction::Inbound => format!("to our {}", peer.port),
        Direction::Outbound => format!("their {}", peer.port),
    };
    let count: u64 = peer.states.values().sum();
    let tcp = |show: fn(&TcpSummary) -> String| peer.tcp.get().map_or_else(|| "-".to_owned(), show);
    [
        peer.peer.to_string(),
        port,
        words::thousands(count),
        tcp(|tcp| format!("{:.1} ms", tcp.rtt_median_us as f64 / 1000.0)),
        tcp(|tcp| match tcp.segments_sent {
            0 => "-".to_owned(),
            sent => words::percent(tcp.segments_sent_again as f64 / sent as f64),
        }),
        tcp(|tcp| match tcp.busy_us {
            0 => "-".to_owned(),
            busy => words::percent(tcp.rwnd_limited_us as f64 / busy as f64),
        }),
        tcp(|tcp| words::bytes(tcp.unread_bytes)),
        tcp(|tcp| words::bytes(tcp.unsent_bytes)),
        states(&peer.states),
    ]
}

fn states(states: &BTreeMap<SocketState, u64>) -> String {
    let mut counted: Vec<_> =
        states.iter().map(|(state, count)| (*count, state_name(*state))).collect();
    counted.sort_unstable_by(|a, b| b.cmp(a));
    let parts = counted.iter().map(|(count, name)| format!("{} {name}", words::thousands(*count)));
    parts.collect::<Vec<_>>().join(", ")
}

/// As `ss` names it.
fn state_name(state: SocketState) -> &'static str {
    match state {
        SocketState::Established => "established",
        SocketState::SynSent => "syn-sent",
        SocketState::SynRecv => "syn-recv",
        SocketState::FinWait1 => "fin-wait-1",
        SocketState::FinWait2 => "fin-wait-2",
        SocketState::TimeWait => "time-wait",
        SocketState::Close => "closed",
        SocketState::CloseWait => "close-wait",
        SocketState::LastAck => "last-ack",
        SocketState::Listening => "listening",
        SocketState::Closing => "closing",
    }
}

fn known<T>(fact: &Known<T>, show: impl FnOnce(&T) -> String) -> String {
    fact.get().map_or_else(|| "?".to_owned(), show)
}

fn by_namespace(facts: &Facts, colour: bool, text: impl Fn(&Namespace) -> String) -> String {
    let mut out = String::new();
    for namespace in &facts.namespaces {
        if !out.is_empty() {
            out.push('\n');
        }
        let name = if namespace.is_own {
            "This network namespace".to_owned()
        } else {
            format!("Network namespace {}", namespace.name)
        };
        let [on, off] = if colour { ["\u{1b}[1m", "\u{1b}[0m"] } else { ["", ""] };
        _ = writeln!(out, "{on}{name}{off}");
        for line in text(namespace).lines() {
            _ = writeln!(out, "{}", format!("  {line}").trim_end());
        }
    }
    if let Some(why) = &facts.namespaces_left_out {
        _ = writeln!(out, "\nOther network namespaces are left out: {why}.");
    }
    out
}
