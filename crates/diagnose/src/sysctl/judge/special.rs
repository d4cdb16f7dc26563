//! Verdicts on timeouts, retries, and switches with more than two positions.

use super::{Effect, Judgement, Value, any};
use crate::sysctl::Kernel;

pub(in crate::sysctl) fn fin_timeout(value: &Value<'_>) -> Judgement {
    if value.first() < 5 {
        return Judgement::new(
            Effect::Harms,
            "Peers that answer slowly are reset while they close.",
        );
    }
    Judgement::new(
        Effect::Fine,
        "Limits FIN-WAIT-2 of sockets that no program holds. It does not shorten TIME-WAIT, which is 60 s and can't be set, though many lists say so.",
    )
}

pub(in crate::sysctl) fn syn_retries(value: &Value<'_>) -> Judgement {
    match value.first() {
        0 | 1 => Judgement::new(Effect::Harms, "One lost packet, or two, and a connection fails."),
        2..=4 => Judgement::new(
            Effect::Doubtful,
            "Connections to hosts that do not answer fail sooner; so do those through a bad minute. A balancer's own connect timeout is the better place.",
        ),
        _ => any(value),
    }
}

pub(in crate::sysctl) fn synack_retries(value: &Value<'_>) -> Judgement {
    match value.first() {
        0 => Judgement::new(Effect::Harms, "One lost packet, and the client's connection fails."),
        1..=4 => Judgement::new(
            Effect::Fine,
            "Half-open connections are given up sooner, which helps in a SYN flood and costs clients on very bad links.",
        ),
        _ => any(value),
    }
}

pub(in crate::sysctl) fn tw_reuse(value: &Value<'_>) -> Judgement {
    match value.text {
        "1" => Judgement::new(
            Effect::Helps,
            "Lets new outgoing connections take over ports in TIME-WAIT after a second; no effect on incoming ones. Needs timestamps.",
        ),
        "0" => Judgement::new(
            Effect::Doubtful,
            "Off: a balancer runs out of local ports sooner. The default is 2, loopback only.",
        ),
        _ => Judgement::new(Effect::Harms, "It is 0, 1 or 2."),
    }
}

pub(in crate::sysctl) fn no_metrics_save(value: &Value<'_>) -> Judgement {
    if value.machine.kernel >= Kernel(5, 6) {
        return Judgement::new(
            Effect::Fine,
            "Keeps no round-trip times of past connections. What used to hurt was the kept ssthresh, which is not kept since Linux 5.6 anyway (tcp_no_ssthresh_metrics_save); so it hardly matters.",
        );
    }
    Judgement::new(
        Effect::Helps,
        "Past bad luck of one client no longer slows down the next from its address.",
    )
}

pub(in crate::sysctl) fn idle_start(value: &Value<'_>) -> Judgement {
    if value.text == "0" {
        return Judgement::new(
            Effect::Helps,
            "Kept connections stay fast after a pause; a burst after it may overrun a path that has changed meanwhile.",
        );
    }
    any(value)
}

pub(in crate::sysctl) fn syncookies(value: &Value<'_>) -> Judgement {
    match value.text {
        "0" => Judgement::new(
            Effect::Harms,
            "Bursts beyond the backlog lose their SYNs; nothing is gained while there is none.",
        ),
        "2" => Judgement::new(Effect::Harms, "Cookies for every connection, a setting for tests."),
        _ => Judgement::new(Effect::Harms, "It is 0, 1 or 2."),
    }
}

pub(in crate::sysctl) fn congestion(value: &Value<'_>) -> Judgement {
    match value.text {
        "bbr" => Judgement::new(
            Effect::Helps,
            "Bears loss and deep buffers better than cubic; takes more than its share where it meets cubic.",
        ),
        "reno" => Judgement::new(
            Effect::Harms,
            "Slow to fill long, fast paths; cubic is the default since 2.6.19.",
        ),
        "cubic" => Judgement::new(Effect::Fine, "The kernel's default."),
        _ => Judgement::new(Effect::Doubtful, "Not the default; the module must be loaded."),
    }
}

pub(in crate::sysctl) fn keepalive_time(value: &Value<'_>) -> Judgement {
    if value.first() < 30 {
        return Judgement::new(
            Effect::Doubtful,
            "Very often; counts only for sockets that ask for keep-alive.",
        );
    }
    Judgement::new(
        Effect::Helps,
        "Dead peers are noticed sooner, and firewalls on the way do not forget silent connections. Counts only for sockets that ask for keep-alive.",
    )
}

pub(in crate::sysctl) fn retries2(value: &Value<'_>) -> Judgement {
    match value.first() {
        0..=4 => Judgement::new(
            Effect::Harms,
            "Connections break at the first bad seconds; RFC 1122 asks for 100 s at least, which is 8.",
        ),
        5..=14 => Judgement::new(
            Effect::Doubtful,
            "Peers that vanished are noticed sooner than after 15 minutes; bad links break sooner too. RFC 1122 asks for 8 at least.",
        ),
        _ => any(value),
    }
}

pub(in crate::sysctl) fn ecn(value: &Value<'_>) -> Judgement {
    match value.text {
        "0" => Judgement::new(
            Effect::Fine,
            "Off: congestion is told by loss only. The default answers those who ask for ECN.",
        ),
        "1" => Judgement::new(
            Effect::Doubtful,
            "Asks for ECN on outgoing connections too; a few old routers drop such SYNs, and the kernel falls back.",
        ),
        _ => any(value),
    }
}

pub(in crate::sysctl) fn conntrack_established(value: &Value<'_>) -> Judgement {
    match value.first() {
        0..=600 => Judgement::new(
            Effect::Harms,
            "Connections that are silent for minutes are cut by rules that follow state.",
        ),
        601..=86_400 => Judgement::new(
            Effect::Helps,
            "Entries of vanished peers leave the table sooner than after five days.",
        ),
        _ => any(value),
    }
}

pub(in crate::sysctl) fn rp_filter(value: &Value<'_>) -> Judgement {
    match value.text {
        "1" => Judgement::new(
            Effect::Doubtful,
            "Strict: packets are dropped whose answers would leave by another interface. Breaks machines with several ways (multihomed, asymmetric routing).",
        ),
        _ => any(value),
    }
}
