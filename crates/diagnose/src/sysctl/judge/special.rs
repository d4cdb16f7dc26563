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
        "Limits FIN_WAIT_2 of orphaned sockets. It does not shorten TIME_WAIT, which is always 60 s, although many guides claim so.",
    )
}

pub(in crate::sysctl) fn syn_retries(value: &Value<'_>) -> Judgement {
    match value.first() {
        0 | 1 => Judgement::new(Effect::Harms, "A connection fails after one or two lost packets."),
        2..=4 => Judgement::new(
            Effect::Doubtful,
            "Connections to hosts that do not answer fail sooner, but also connections during a short outage. A load balancer's own connect timeout is the better place.",
        ),
        _ => any(value),
    }
}

pub(in crate::sysctl) fn synack_retries(value: &Value<'_>) -> Judgement {
    match value.first() {
        0 => Judgement::new(Effect::Harms, "A client's connection fails after one lost packet."),
        1..=4 => Judgement::new(
            Effect::Fine,
            "Half-open connections are dropped sooner, which helps in a SYN flood, but fails clients on very bad links.",
        ),
        _ => any(value),
    }
}

pub(in crate::sysctl) fn tw_reuse(value: &Value<'_>) -> Judgement {
    match value.text {
        "1" => Judgement::new(
            Effect::Helps,
            "Lets new outgoing connections reuse ports in TIME_WAIT after a second; no effect on incoming ones. Needs timestamps.",
        ),
        "0" => Judgement::new(
            Effect::Doubtful,
            "Off: a load balancer runs out of ephemeral ports sooner. The default is 2, loopback only.",
        ),
        _ => Judgement::new(Effect::Harms, "It must be 0, 1 or 2."),
    }
}

pub(in crate::sysctl) fn no_metrics_save(value: &Value<'_>) -> Judgement {
    if value.machine.kernel >= Kernel(5, 6) {
        return Judgement::new(
            Effect::Fine,
            "Does not cache round-trip times of past connections. The harmful part was the cached ssthresh, which Linux 5.6 and later do not cache anyway (tcp_no_ssthresh_metrics_save), so the effect is small.",
        );
    }
    Judgement::new(
        Effect::Helps,
        "Past losses of one client no longer slow down the next client from the same address.",
    )
}

pub(in crate::sysctl) fn idle_start(value: &Value<'_>) -> Judgement {
    if value.text == "0" {
        return Judgement::new(
            Effect::Helps,
            "Keep-alive connections stay fast after a pause; a burst after the pause may overload a path that has changed since.",
        );
    }
    any(value)
}

pub(in crate::sysctl) fn syncookies(value: &Value<'_>) -> Judgement {
    match value.text {
        "0" => Judgement::new(
            Effect::Harms,
            "Bursts beyond the backlog lose their SYNs; without bursts there is no benefit.",
        ),
        "2" => Judgement::new(Effect::Harms, "Cookies for every connection, a setting for tests."),
        _ => Judgement::new(Effect::Harms, "It must be 0, 1 or 2."),
    }
}

pub(in crate::sysctl) fn congestion(value: &Value<'_>) -> Judgement {
    match value.text {
        "bbr" => Judgement::new(
            Effect::Helps,
            "Tolerates loss and deep buffers better than cubic; takes more than its share where it competes with cubic.",
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
            "Very often; applies only to sockets that enable keep-alive.",
        );
    }
    Judgement::new(
        Effect::Helps,
        "Dead peers are detected sooner, and firewalls on the path do not expire idle connections. Applies only to sockets that enable keep-alive.",
    )
}

pub(in crate::sysctl) fn retries2(value: &Value<'_>) -> Judgement {
    match value.first() {
        0..=4 => Judgement::new(
            Effect::Harms,
            "Connections break after a few seconds of outage; RFC 1122 requires at least 100 s, which is 8.",
        ),
        5..=14 => Judgement::new(
            Effect::Doubtful,
            "Vanished peers are detected sooner than after 15 minutes; connections over bad links break sooner too. RFC 1122 requires at least 8.",
        ),
        _ => any(value),
    }
}

pub(in crate::sysctl) fn ecn(value: &Value<'_>) -> Judgement {
    match value.text {
        "0" => Judgement::new(
            Effect::Fine,
            "Off: only loss signals congestion. The default accepts ECN if the peer requests it.",
        ),
        "1" => Judgement::new(
            Effect::Doubtful,
            "Requests ECN on outgoing connections too; a few old routers drop such SYNs, and the kernel falls back.",
        ),
        _ => any(value),
    }
}

pub(in crate::sysctl) fn conntrack_established(value: &Value<'_>) -> Judgement {
    match value.first() {
        0..=600 => Judgement::new(
            Effect::Harms,
            "Stateful firewall rules cut connections that are idle for minutes.",
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
            "Strict: packets are dropped if the reply would leave by another interface. Breaks machines with several uplinks (multihomed, asymmetric routing).",
        ),
        _ => any(value),
    }
}
