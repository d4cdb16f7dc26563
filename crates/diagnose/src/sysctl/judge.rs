//! Is a value good? One function for each kind of setting; what is special to one stands here too.

use serde::{Deserialize, Serialize};

use super::{Machine, Setting};
use crate::words;

/// What a value does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Effect {
    /// Makes something worse, or dangerous.
    Harms,
    /// Probably a typing error.
    Slip,
    /// Does nothing: the setting is gone, or no longer looked at.
    Dead,
    /// Its worth depends on what is not known here; the reason says on what.
    Doubtful,
    /// Makes something better for a server or a balancer.
    Helps,
    /// Neither.
    Fine,
    /// Not a network setting, or one that is not known here.
    Unknown,
}

impl Effect {
    /// Lower-case name, as in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Effect::Harms => "harms",
            Effect::Slip => "slip",
            Effect::Dead => "dead",
            Effect::Doubtful => "doubtful",
            Effect::Helps => "helps",
            Effect::Fine => "fine",
            Effect::Unknown => "unknown",
        }
    }
}

/// What a value does, and why, in one sentence or a few.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Judgement {
    /// What it does.
    pub effect: Effect,
    /// Why.
    pub why: String,
    /// What was probably meant instead, where a slip is suspected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub meant: Option<String>,
}

impl Judgement {
    pub(super) fn new(effect: Effect, why: impl Into<String>) -> Judgement {
        Judgement { effect, why: why.into(), meant: None }
    }
}

/// A value to be judged.
pub(super) struct Value<'a> {
    /// As written, with single spaces.
    pub(super) text: &'a str,
    /// Its numbers; empty when any part of it is none.
    pub(super) numbers: Vec<u64>,
    /// The kernel's default as numbers; empty when it is not known.
    pub(super) default: Vec<u64>,
    pub(super) machine: &'a Machine,
}

impl Value<'_> {
    pub(super) fn first(&self) -> u64 {
        self.numbers.first().copied().unwrap_or_default()
    }
}

/// What a value of `setting` does on `machine`.
pub(super) fn judge(setting: &Setting, text: &str, machine: &Machine) -> Judgement {
    let text = text.split_ascii_whitespace().collect::<Vec<_>>().join(" ");
    if let Some((since, why)) = setting.gone
        && machine.kernel >= since
    {
        let super::Kernel(major, minor) = since;
        return Judgement::new(Effect::Dead, format!("Gone since Linux {major}.{minor}: {why}."));
    }
    let numbers_of = |text: &str| -> Vec<u64> {
        let all: Result<Vec<u64>, _> = text.split(' ').map(str::parse).collect();
        all.unwrap_or_default()
    };
    let default = (setting.default)(machine);
    let numbers = numbers_of(&text);
    let count = default.as_deref().map_or(1, |default| default.split(' ').count());
    if !matches!(setting.unit, super::Unit::Word | super::Unit::Switch) && numbers.len() != count {
        let wants = words::plural(count as u64, "number");
        return Judgement::new(
            Effect::Harms,
            format!("It takes {wants}; the kernel refuses `{text}`."),
        );
    }
    if default.as_deref() == Some(&text) {
        return Judgement::new(Effect::Fine, "The kernel's default.");
    }
    let default = default.as_deref().map(numbers_of).unwrap_or_default();
    let value = Value { text: &text, numbers, default, machine };
    if setting.unit == super::Unit::Bytes
        && let Some((mut slip, meant)) = slip(&value)
    {
        let rest = (setting.judge)(&Value { numbers: meant, ..value });
        if rest.effect == Effect::Harms {
            slip.why.push_str(" Even so: ");
            slip.why.push_str(&rest.why);
        }
        return slip;
    }
    (setting.judge)(&value)
}

/// A zero too many: ten times a number that people write, in a place where it is not one itself. With
/// the numbers that were probably meant.
fn slip(value: &Value<'_>) -> Option<(Judgement, Vec<u64>)> {
    /// Below this a factor of ten is often meant.
    const SIZE_MIN: u64 = 16_384;
    /// What old kernels had as the default of `tcp_rmem`, and most lists on the web copy.
    const OLD_DEFAULT: u64 = 87_380;
    let is_written =
        |number: u64| number >= SIZE_MIN && (number.is_power_of_two() || number == OLD_DEFAULT);
    let at = value.numbers.iter().position(|&number| {
        number.is_multiple_of(10) && is_written(number / 10) && !number.is_power_of_two()
    })?;
    let mut meant = value.numbers.clone();
    meant[at] /= 10;
    let (found, instead) = (value.numbers[at], value.numbers[at] / 10);
    let known = if instead == OLD_DEFAULT {
        "the default of old kernels".to_owned()
    } else {
        format!("{}, a power of two", words::bytes(instead))
    };
    let words: Vec<String> = meant.iter().map(u64::to_string).collect();
    let judgement = Judgement {
        effect: Effect::Slip,
        why: format!("{found} looks like a zero too many: {instead} is {known}. Is it meant?"),
        meant: Some(words.join(" ")),
    };
    Some((judgement, meant))
}

/// 1 is right, 0 harms.
pub(super) fn on(value: &Value<'_>) -> Judgement {
    if value.text == "0" {
        return Judgement::new(Effect::Harms, "It should be on; see its page for what is lost.");
    }
    Judgement::new(Effect::Fine, "On.")
}

/// 0 is right, anything else harms.
pub(super) fn off(value: &Value<'_>) -> Judgement {
    if value.text == "0" {
        return Judgement::new(Effect::Fine, "Off, as it should be.");
    }
    Judgement::new(Effect::Harms, "It should be off; see its page for what it breaks.")
}

/// More room than the default helps where bursts come; less harms.
pub(super) fn more(value: &Value<'_>) -> Judgement {
    match value.default.first() {
        Some(&default) if value.first() < default => Judgement::new(
            Effect::Harms,
            format!("Less than the default of {}.", words::thousands(default)),
        ),
        Some(_) => Judgement::new(Effect::Helps, "More room for bursts than the default."),
        None => Judgement::new(Effect::Doubtful, "Compare it with the default of this machine."),
    }
}

/// A taste within wide limits: neither here nor there.
pub(super) fn any(_: &Value<'_>) -> Judgement {
    Judgement::new(
        Effect::Fine,
        "Differs from the default, and does neither good nor harm by itself.",
    )
}

/// Worth something only for what its page names.
pub(super) fn depends(_: &Value<'_>) -> Judgement {
    Judgement::new(Effect::Doubtful, "Worth something only where its page says; measure it.")
}

/// Nothing looks at it, though it can still be set.
pub(super) fn unused(_: &Value<'_>) -> Judgement {
    Judgement::new(Effect::Dead, "The kernel accepts it and no longer looks at it.")
}

pub(super) fn buffers(value: &Value<'_>) -> Judgement {
    let [min, default, max] = value.numbers[..] else {
        return Judgement::new(Effect::Harms, "It takes three numbers.");
    };
    if min > default || default > max {
        return Judgement::new(
            Effect::Harms,
            "The three must not fall: minimum, default, maximum.",
        );
    }
    if default >= 1 << 20 {
        return Judgement::new(
            Effect::Harms,
            format!(
                "Each socket begins with {}: with many connections memory runs out.",
                words::bytes(default)
            ),
        );
    }
    match value.default.get(2) {
        Some(&usual) if max < usual => Judgement::new(
            Effect::Harms,
            format!(
                "Caps a connection at {} per round trip; the default is {}.",
                words::bytes(max),
                words::bytes(usual)
            ),
        ),
        Some(&usual) if max > usual => {
            Judgement::new(Effect::Helps, "Long, fast paths carry more per connection.")
        }
        _ => Judgement::new(Effect::Fine, "The maximum is the default's."),
    }
}

pub(super) fn socket_max(value: &Value<'_>) -> Judgement {
    match value.default.first() {
        Some(&usual) if value.first() < usual => Judgement::new(
            Effect::Doubtful,
            format!(
                "Less than the {} of this kernel. Counts only for programs that set their buffers themselves (SO_RCVBUF, SO_SNDBUF); TCP's own tuning does not look at it.",
                words::bytes(usual)
            ),
        ),
        _ => Judgement::new(
            Effect::Fine,
            "Counts only for programs that set their buffers themselves (SO_RCVBUF, SO_SNDBUF); TCP's own tuning does not look at it.",
        ),
    }
}

pub(super) fn tcp_mem(value: &Value<'_>) -> Judgement {
    /// Of the memory, more than TCP may ever have.
    const SHARE_MAX: f64 = 0.5;
    let [low, pressure, max] = value.numbers[..] else {
        return Judgement::new(Effect::Harms, "It takes three numbers.");
    };
    let page = value.machine.page_bytes;
    let size = words::bytes(max.saturating_mul(page));
    if low > pressure || pressure > max {
        return Judgement::new(Effect::Harms, "The three must not fall.");
    }
    if let Some(memory) = value.machine.memory_bytes
        && max.saturating_mul(page) as f64 > SHARE_MAX * memory as f64
    {
        return Judgement::new(
            Effect::Harms,
            format!(
                "It counts pages: {size} of the machine's {} for TCP alone, so that memory runs out before sockets slow down.",
                words::bytes(memory)
            ),
        );
    }
    if pressure == max {
        return Judgement::new(
            Effect::Harms,
            format!(
                "It counts pages: TCP may have {size}, and is not slowed down before it is cut off. The default is computed from the memory, about a tenth of it: remove the line."
            ),
        );
    }
    Judgement::new(
        Effect::Doubtful,
        format!(
            "It counts pages: TCP may have {size}. The default is computed from the memory, about a tenth of it."
        ),
    )
}

pub(super) fn backlog_syn(value: &Value<'_>) -> Judgement {
    if value.machine.kernel >= super::Kernel(4, 4) {
        return Judgement::new(
            Effect::Fine,
            "Since Linux 4.4 the listen backlog limits the SYN queue; this counts only with tcp_syncookies = 0.",
        );
    }
    more(value)
}

pub(super) fn tw_buckets(value: &Value<'_>) -> Judgement {
    /// Bytes of a socket in TIME-WAIT, roughly.
    const SOCKET_BYTES: u64 = 256;
    let size = words::bytes(value.first().saturating_mul(SOCKET_BYTES));
    if value.first() < 16_384 {
        return Judgement::new(
            Effect::Harms,
            "Sockets leave TIME-WAIT too early, and late packets meet new connections.",
        );
    }
    Judgement::new(
        Effect::Fine,
        format!(
            "A limit that is seldom reached; when full it takes about {size}. Many sockets in TIME-WAIT are harmless on a server."
        ),
    )
}

pub(super) fn orphans(value: &Value<'_>) -> Judgement {
    /// Bytes that an orphan may hold (`tcp_check_oom`).
    const ORPHAN_BYTES: u64 = 64 << 10;
    let size = words::bytes(value.first().saturating_mul(ORPHAN_BYTES));
    if value.first() < 4_096 {
        return Judgement::new(
            Effect::Harms,
            "Connections are reset before their peers have read the end.",
        );
    }
    Judgement::new(
        Effect::Fine,
        format!("A guard against floods; when reached orphans may hold up to {size}."),
    )
}

pub(super) fn fin_timeout(value: &Value<'_>) -> Judgement {
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

pub(super) fn syn_retries(value: &Value<'_>) -> Judgement {
    match value.first() {
        0 | 1 => Judgement::new(Effect::Harms, "One lost packet, or two, and a connection fails."),
        2..=4 => Judgement::new(
            Effect::Doubtful,
            "Connections to hosts that do not answer fail sooner; so do those through a bad minute. A balancer's own connect timeout is the better place.",
        ),
        _ => any(value),
    }
}

pub(super) fn synack_retries(value: &Value<'_>) -> Judgement {
    match value.first() {
        0 => Judgement::new(Effect::Harms, "One lost packet, and the client's connection fails."),
        1..=4 => Judgement::new(
            Effect::Fine,
            "Half-open connections are given up sooner, which helps in a SYN flood and costs clients on very bad links.",
        ),
        _ => any(value),
    }
}

pub(super) fn tw_reuse(value: &Value<'_>) -> Judgement {
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

pub(super) fn no_metrics_save(value: &Value<'_>) -> Judgement {
    if value.machine.kernel >= super::Kernel(5, 6) {
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

pub(super) fn idle_start(value: &Value<'_>) -> Judgement {
    if value.text == "0" {
        return Judgement::new(
            Effect::Helps,
            "Kept connections stay fast after a pause; a burst after it may overrun a path that has changed meanwhile.",
        );
    }
    any(value)
}

pub(super) fn syncookies(value: &Value<'_>) -> Judgement {
    match value.text {
        "0" => Judgement::new(
            Effect::Harms,
            "Bursts beyond the backlog lose their SYNs; nothing is gained while there is none.",
        ),
        "2" => Judgement::new(Effect::Harms, "Cookies for every connection, a setting for tests."),
        _ => Judgement::new(Effect::Harms, "It is 0, 1 or 2."),
    }
}

pub(super) fn port_range(value: &Value<'_>) -> Judgement {
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
        " Programs that listen below may find their port taken: reserve those."
    } else {
        ""
    };
    Judgement::new(
        effect,
        format!(
            "{} ports towards each server; the default has 28,232.{note}",
            words::thousands(ports)
        ),
    )
}

pub(super) fn congestion(value: &Value<'_>) -> Judgement {
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

pub(super) fn netdev_backlog(value: &Value<'_>) -> Judgement {
    if value.first() < 1_000 {
        return Judgement::new(Effect::Harms, "Less than the default of 1,000.");
    }
    Judgement::new(
        Effect::Fine,
        "Room for bursts on interfaces that use it (RPS, veth, tunnels). It helps only if the second column of /proc/net/softnet_stat rises.",
    )
}

pub(super) fn socket_default(value: &Value<'_>) -> Judgement {
    if value.first() < 65_536 {
        return Judgement::new(Effect::Harms, "Other protocols than TCP lose packets in bursts.");
    }
    Judgement::new(
        Effect::Fine,
        "TCP has its own (tcp_rmem, tcp_wmem); this is for UDP and others.",
    )
}

pub(super) fn keepalive_time(value: &Value<'_>) -> Judgement {
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

pub(super) fn retries2(value: &Value<'_>) -> Judgement {
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

pub(super) fn ecn(value: &Value<'_>) -> Judgement {
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

pub(super) fn conntrack_max(value: &Value<'_>) -> Judgement {
    /// Bytes of an entry, roughly.
    const ENTRY_BYTES: u64 = 400;
    let size = words::bytes(value.first().saturating_mul(ENTRY_BYTES));
    if value.first() < 65_536 {
        return Judgement::new(
            Effect::Harms,
            format!(
                "Too small for a server: new connections are dropped beyond it. It takes {size}."
            ),
        );
    }
    Judgement::new(
        Effect::Helps,
        format!(
            "When full it takes about {size}. Enlarge nf_conntrack_buckets with it, to a quarter or more."
        ),
    )
}

pub(super) fn conntrack_established(value: &Value<'_>) -> Judgement {
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

pub(super) fn lowat(value: &Value<'_>) -> Judgement {
    if value.first() <= 1 << 20 {
        return Judgement::new(
            Effect::Helps,
            "Less unsent data waits in the kernel: HTTP/2 can send what matters first.",
        );
    }
    any(value)
}

pub(super) fn gc_thresh(value: &Value<'_>) -> Judgement {
    more(value)
}

pub(super) fn rp_filter(value: &Value<'_>) -> Judgement {
    match value.text {
        "1" => Judgement::new(
            Effect::Doubtful,
            "Strict: packets are dropped whose answers would leave by another interface. Breaks machines with several ways (multihomed, asymmetric routing).",
        ),
        _ => any(value),
    }
}
