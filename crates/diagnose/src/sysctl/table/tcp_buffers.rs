//! `net.ipv4.tcp_*`: memory, buffers and limits.

use super::super::{Machine, Unit, judge};
use super::{always, since};

settings! {
    /// Receive buffer of a TCP socket: minimum, initial and maximum size.
    ///
    /// The kernel tunes it between the first and the last value as the connection needs. About
    /// half of it becomes the window, and a connection carries one window per round trip: 6 MiB
    /// are enough for 1 Gbit/s over 25 ms. Every connection may use the second value at once, so
    /// keep it small: 131,072 since Linux 4.20, 87,380 before. The last is 32 MiB on recent
    /// kernels (6.16), 6 MiB before.
    ///
    /// A common mistake is a zero too many: 873800 for 87380.
    "net.ipv4.tcp_rmem", Unit::Bytes, |machine| Some(rmem(machine)), judge::buffers;
    /// Send buffer of a TCP socket: minimum, initial and maximum size.
    ///
    /// The kernel tunes it between the first and the last value. It holds unsent and
    /// unacknowledged data; a buffer larger than the path's capacity only raises the memory cost
    /// of slow clients. The defaults are 4,096, 16,384 and 4 MiB.
    ///
    /// A common mistake is a zero too many: 655360 for 65536.
    "net.ipv4.tcp_wmem", Unit::Bytes, |machine| Some(wmem(machine)), judge::buffers;
    /// Memory of all TCP sockets together, in pages: low mark, start of memory pressure, maximum.
    ///
    /// The values are in pages, usually of 4 KiB, not bytes: 8388608 is 32 GiB. The kernel
    /// computes the default from the machine's memory (three quarters, all, and one and a half of
    /// a sixteenth of it). The limit applies to the machine, not to a container.
    ///
    /// "High enough that there is never pressure" means that the machine runs out of memory
    /// instead. Remove the line.
    "net.ipv4.tcp_mem", Unit::Pages, tcp_mem, judge::tcp_mem;
    /// Whether the kernel tunes receive buffers automatically.
    ///
    /// If it is off, every connection keeps the second value of `tcp_rmem`, which is too small for
    /// distant peers and too large for near ones.
    "net.ipv4.tcp_moderate_rcvbuf", Unit::Switch, always!("1"), judge::on;
    /// Share of a receive buffer that is not counted as window.
    ///
    /// Obsolete since Linux 6.6, which measures the share for each socket.
    "net.ipv4.tcp_adv_win_scale", Unit::Word, always!("1"), |value| {
        if value.machine.kernel >= super::super::Kernel(6, 6) { judge::unused(value) } else { judge::depends(value) }
    };
    /// Share of a receive buffer that is reserved for the program.
    ///
    /// Almost nothing uses it any more.
    "net.ipv4.tcp_app_win", Unit::Of("bits"), always!("31"), judge::any;
    /// Maximum number of sockets in TIME_WAIT.
    ///
    /// Beyond it, a socket is closed immediately, without the protection of TIME_WAIT. The limit
    /// exists against simple attacks; lowering it is never a fix. A socket in TIME_WAIT takes
    /// about 256 bytes, belongs to no program, and disappears after 60 s, which is not
    /// configurable. Millions of them are harmless on a server.
    ///
    /// The default is half of the size of the connection table, up to 262,144.
    "net.ipv4.tcp_max_tw_buckets", Unit::Of("sockets"), |_| None, judge::tw_buckets;
    /// Maximum number of orphaned sockets, which no program holds any more.
    ///
    /// They send the remaining data after `close()`. Beyond the limit they are reset, and peers
    /// lose the end of the data. Each may hold 64 KiB. The default is half of the size of the
    /// connection table.
    "net.ipv4.tcp_max_orphans", Unit::Of("sockets"), |_| None, judge::orphans;
    /// Maximum number of half-open connections of a listening socket while SYN cookies are off.
    ///
    /// Since Linux 4.4 the listen backlog limits the SYN queue. This value applies only with
    /// `tcp_syncookies = 0`; then SYNs of unknown clients are dropped from three quarters of it
    /// on.
    "net.ipv4.tcp_max_syn_backlog", Unit::Of("connections"), |_| None, judge::backlog_syn;
    /// Unsent data that may wait in the kernel before a socket counts as not writable.
    ///
    /// Off by default (the largest number). 16,384 to 131,072 lets an HTTP/2 server decide later
    /// what to send first, and saves memory behind slow clients.
    "net.ipv4.tcp_notsent_lowat", Unit::Bytes, always!("4294967295"), judge::lowat;
    /// Data that one socket may have in the interface's queues.
    ///
    /// 4 MiB on recent kernels (6.17), 1 MiB before (256 KiB before 4.20). Smaller values keep
    /// local queues short.
    "net.ipv4.tcp_limit_output_bytes", Unit::Bytes, since!(6, 17, "4194304", before "1048576"), judge::any;
    /// Whether a receive window may shrink under memory pressure.
    ///
    /// Useful on machines with very many connections whose peers send faster than programs read;
    /// off by default.
    "net.ipv4.tcp_shrink_window", Unit::Switch, always!("0"), judge::depends;
    /// The smallest MSS that is accepted for sending.
    ///
    /// It exists on kernels that are patched against SACK Panic (CVE-2019-11479), so it identifies
    /// them. Raising it to 500 refuses peers that request tiny segments.
    "net.ipv4.tcp_min_snd_mss", Unit::Bytes, always!("48"), judge::any;
}

fn rmem(machine: &Machine) -> String {
    let begin = if machine.kernel >= super::super::Kernel(4, 20) { 131_072 } else { 87_380 };
    let max = if machine.kernel >= super::super::Kernel(6, 16) { 32 << 20 } else { 6 << 20 };
    format!("4096 {begin} {}", by_memory(machine, max))
}

fn wmem(machine: &Machine) -> String {
    format!("4096 16384 {}", by_memory(machine, 4 << 20))
}

/// Small machines have less: a 128th of the memory (`tcp_init`).
fn by_memory(machine: &Machine, max: u64) -> u64 {
    machine.memory_bytes.map_or(max, |memory| (memory / 128).clamp(64 << 10, max))
}

fn tcp_mem(machine: &Machine) -> Option<String> {
    // Computed from the memory that was free at the start, which is not known exactly later; so the
    // numbers are near the default and seldom equal to it.
    let base = machine.memory_bytes? / machine.page_bytes.max(1) / 16;
    let low = base / 4 * 3;
    Some(format!("{low} {base} {}", low * 2))
}
