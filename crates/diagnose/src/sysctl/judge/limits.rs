//! Verdicts on memory, buffers and limits.

use super::{Effect, Judgement, Value, any, more};
use crate::sysctl::Kernel;
use crate::words;

pub(in crate::sysctl) fn buffers(value: &Value<'_>) -> Judgement {
    let [min, default, max] = value.numbers[..] else {
        return Judgement::new(Effect::Harms, "It takes three numbers.");
    };
    if min > default || default > max {
        return Judgement::new(
            Effect::Harms,
            "The three numbers must not decrease: minimum, default, maximum.",
        );
    }
    if default >= 1 << 20 {
        return Judgement::new(
            Effect::Harms,
            format!(
                "Each socket starts with {}: with many connections, memory runs out.",
                words::bytes(default)
            ),
        );
    }
    match value.default.get(2) {
        Some(&usual) if max < usual => Judgement::new(
            Effect::Harms,
            format!(
                "Limits a connection to {} per round trip; the default is {}.",
                words::bytes(max),
                words::bytes(usual)
            ),
        ),
        Some(&usual) if max > usual => {
            Judgement::new(Effect::Helps, "Long, fast paths carry more per connection.")
        }
        _ => Judgement::new(Effect::Fine, "The maximum is the default."),
    }
}

pub(in crate::sysctl) fn socket_max(value: &Value<'_>) -> Judgement {
    match value.default.first() {
        Some(&usual) if value.first() < usual => Judgement::new(
            Effect::Doubtful,
            format!(
                "Less than the {} of this kernel. Applies only to programs that set their buffers themselves (SO_RCVBUF, SO_SNDBUF); TCP autotuning ignores it.",
                words::bytes(usual)
            ),
        ),
        _ => Judgement::new(
            Effect::Fine,
            "Applies only to programs that set their buffers themselves (SO_RCVBUF, SO_SNDBUF); TCP autotuning ignores it.",
        ),
    }
}

pub(in crate::sysctl) fn tcp_mem(value: &Value<'_>) -> Judgement {
    /// Of the memory, more than TCP may ever have.
    const SHARE_MAX: f64 = 0.5;
    let [low, pressure, max] = value.numbers[..] else {
        return Judgement::new(Effect::Harms, "It takes three numbers.");
    };
    let page = value.machine.page_bytes;
    let size = words::bytes(max.saturating_mul(page));
    if low > pressure || pressure > max {
        return Judgement::new(Effect::Harms, "The three numbers must not decrease.");
    }
    if let Some(memory) = value.machine.memory_bytes
        && max.saturating_mul(page) as f64 > SHARE_MAX * memory as f64
    {
        return Judgement::new(
            Effect::Harms,
            format!(
                "It is in pages: {size} of the machine's {} for TCP alone, so memory runs out before sockets slow down.",
                words::bytes(memory)
            ),
        );
    }
    if pressure == max {
        return Judgement::new(
            Effect::Harms,
            format!(
                "It is in pages: TCP may use {size}, and nothing slows it down before that limit. The default is computed from the memory, about a tenth of it: remove the line."
            ),
        );
    }
    Judgement::new(
        Effect::Doubtful,
        format!(
            "It is in pages: TCP may use {size}. The default is computed from the memory, about a tenth of it."
        ),
    )
}

pub(in crate::sysctl) fn backlog_syn(value: &Value<'_>) -> Judgement {
    if value.machine.kernel >= Kernel(4, 4) {
        return Judgement::new(
            Effect::Fine,
            "Since Linux 4.4 the listen backlog limits the SYN queue; this applies only with tcp_syncookies = 0.",
        );
    }
    more(value)
}

pub(in crate::sysctl) fn tw_buckets(value: &Value<'_>) -> Judgement {
    /// Bytes of a socket in TIME-WAIT, roughly.
    const SOCKET_BYTES: u64 = 256;
    let size = words::bytes(value.first().saturating_mul(SOCKET_BYTES));
    if value.first() < 16_384 {
        return Judgement::new(
            Effect::Harms,
            "Sockets leave TIME_WAIT too early, and late packets can reach new connections.",
        );
    }
    Judgement::new(
        Effect::Fine,
        format!(
            "A limit that is rarely reached; a full table takes about {size}. Many sockets in TIME_WAIT are harmless on a server."
        ),
    )
}

pub(in crate::sysctl) fn orphans(value: &Value<'_>) -> Judgement {
    /// Bytes that an orphan may hold (`tcp_check_oom`).
    const ORPHAN_BYTES: u64 = 64 << 10;
    let size = words::bytes(value.first().saturating_mul(ORPHAN_BYTES));
    if value.first() < 4_096 {
        return Judgement::new(
            Effect::Harms,
            "Connections are reset before their peers have read all data.",
        );
    }
    Judgement::new(
        Effect::Fine,
        format!("A limit against floods; at the limit, orphans may use up to {size}."),
    )
}

pub(in crate::sysctl) fn port_range(value: &Value<'_>) -> Judgement {
    let [first, last] = value.numbers[..] else {
        return Judgement::new(Effect::Harms, "It takes two numbers.");
    };
    if first >= last || last > 65_535 {
        return Judgement::new(
            Effect::Harms,
            "The first must be below the second, and that below 65,536.",
        );
    }
    let ports = last - first + 1;
    let effect = if ports > 28_232 { Effect::Helps } else { Effect::Harms };
    let note = if first < 10_000 {
        " Programs that listen on a port in the range may find it in use: reserve it."
    } else {
        ""
    };
    Judgement::new(
        effect,
        format!(
            "{} ephemeral ports per server; the default has 28,232.{note}",
            words::thousands(ports)
        ),
    )
}

pub(in crate::sysctl) fn netdev_backlog(value: &Value<'_>) -> Judgement {
    if value.first() < 1_000 {
        return Judgement::new(Effect::Harms, "Less than the default of 1,000.");
    }
    Judgement::new(
        Effect::Fine,
        "Absorbs bursts on interfaces that use it (RPS, veth, tunnels). It helps only if the second column of /proc/net/softnet_stat rises.",
    )
}

pub(in crate::sysctl) fn socket_default(value: &Value<'_>) -> Judgement {
    if value.first() < 65_536 {
        return Judgement::new(Effect::Harms, "Protocols other than TCP lose packets in bursts.");
    }
    Judgement::new(
        Effect::Fine,
        "TCP uses its own setting (tcp_rmem, tcp_wmem); this one is for UDP and others.",
    )
}

pub(in crate::sysctl) fn conntrack_max(value: &Value<'_>) -> Judgement {
    /// Bytes of an entry, roughly.
    const ENTRY_BYTES: u64 = 400;
    let size = words::bytes(value.first().saturating_mul(ENTRY_BYTES));
    if value.first() < 65_536 {
        return Judgement::new(
            Effect::Harms,
            format!(
                "Too small for a server: beyond it, new connections are dropped. A full table takes {size}."
            ),
        );
    }
    Judgement::new(
        Effect::Helps,
        format!(
            "A full table takes about {size}. Enlarge nf_conntrack_buckets with it, to a quarter or more."
        ),
    )
}

pub(in crate::sysctl) fn lowat(value: &Value<'_>) -> Judgement {
    if value.first() <= 1 << 20 {
        return Judgement::new(
            Effect::Helps,
            "Less unsent data waits in the kernel: HTTP/2 can send urgent data first.",
        );
    }
    any(value)
}

pub(in crate::sysctl) fn gc_thresh(value: &Value<'_>) -> Judgement {
    more(value)
}
