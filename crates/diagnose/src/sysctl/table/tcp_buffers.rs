//! `net.ipv4.tcp_*`: memory, buffers and limits.

use super::super::{Machine, Unit, judge};
use super::{always, since};

settings! {
    /// Receive buffer of a TCP socket: the least, what it begins with, the most.
    ///
    /// The kernel tunes it between the first and the last as the connection needs. About half of it
    /// becomes window, and a connection carries one window per round trip: 6 MiB suffice for 1
    /// Gbit/s over 25 ms. The second value is what every connection may take at once, so keep it
    /// small: 131,072 since Linux 4.20, 87,380 before. The last is 32 MiB on recent kernels (6.16),
    /// 6 MiB before.
    ///
    /// A common slip is a zero too many: 873800 for 87380.
    "net.ipv4.tcp_rmem", Unit::Bytes, |machine| Some(rmem(machine)), judge::buffers;
    /// Send buffer of a TCP socket: the least, what it begins with, the most.
    ///
    /// The kernel tunes it between the first and the last. What is in it is unsent or
    /// unacknowledged; more than the path can hold only makes slow clients cost more memory. The
    /// defaults are 4,096, 16,384 and 4 MiB.
    ///
    /// A common slip is a zero too many: 655360 for 65536.
    "net.ipv4.tcp_wmem", Unit::Bytes, |machine| Some(wmem(machine)), judge::buffers;
    /// Memory of all TCP sockets together, in pages: no care below the first, pressure from the
    /// second, no more than the last.
    ///
    /// The numbers count pages of mostly 4 KiB, not bytes: 8388608 is 32 GiB. The kernel computes
    /// the default from the machine's memory (three quarters, all, and one and a half of a
    /// sixteenth of it), and it belongs to the machine, not to a container.
    ///
    /// "High enough that there is never pressure" means that the machine runs out of memory
    /// instead. Remove the line.
    "net.ipv4.tcp_mem", Unit::Pages, tcp_mem, judge::tcp_mem;
    /// Whether the kernel tunes receive buffers by itself.
    ///
    /// Off, every connection keeps the second value of `tcp_rmem`, which is too small for far peers
    /// and too large for near ones.
    "net.ipv4.tcp_moderate_rcvbuf", Unit::Switch, always!("1"), judge::on;
    /// Share of a receive buffer that is not counted as window.
    ///
    /// Obsolete since Linux 6.6, which measures the share for each socket.
    "net.ipv4.tcp_adv_win_scale", Unit::Word, always!("1"), |value| {
        if value.machine.kernel >= super::super::Kernel(6, 6) { judge::unused(value) } else { judge::depends(value) }
    };
    /// Share of a receive buffer that is kept for the program.
    ///
    /// Hardly anything reads it any more.
    "net.ipv4.tcp_app_win", Unit::Of("bits"), always!("31"), judge::any;
    /// How many sockets may be in TIME-WAIT.
    ///
    /// Beyond it a socket ends at once, without the protection that TIME-WAIT gives. It exists
    /// against simple attacks; lowering it is never a cure. A socket in TIME-WAIT takes about 256
    /// bytes, holds no program, and is gone after 60 s, which can't be set. Millions of them are
    /// harmless on a server.
    ///
    /// The default is half of the table of connections, up to 262,144.
    "net.ipv4.tcp_max_tw_buckets", Unit::Of("sockets"), |_| None, judge::tw_buckets;
    /// How many sockets may live on that no program holds.
    ///
    /// They send what is left after `close()`. Beyond the limit they are reset, and peers lose the
    /// end of what was sent. Each may hold 64 KiB. The default is half of the table of connections.
    "net.ipv4.tcp_max_orphans", Unit::Of("sockets"), |_| None, judge::orphans;
    /// Half-open connections that a listening socket may have while SYN cookies are off.
    ///
    /// Since Linux 4.4 the listen backlog limits the SYN queue. This number counts only with
    /// `tcp_syncookies = 0`, where SYNs of unknown clients are dropped from three quarters of it
    /// on.
    "net.ipv4.tcp_max_syn_backlog", Unit::Of("connections"), |_| None, judge::backlog_syn;
    /// Data that may wait in the kernel, not yet sent, before a socket counts as not writable.
    ///
    /// Off by default (the largest number). 16,384 to 131,072 lets a server of HTTP/2 decide later
    /// what goes first, and saves memory behind slow clients.
    "net.ipv4.tcp_notsent_lowat", Unit::Bytes, always!("4294967295"), judge::lowat;
    /// Data that one socket may have in the queues of the interface.
    ///
    /// 4 MiB on recent kernels (6.17), 1 MiB before (256 KiB before 4.20). Smaller values keep
    /// local queues short.
    "net.ipv4.tcp_limit_output_bytes", Unit::Bytes, since!(6, 17, "4194304", before "1048576"), judge::any;
    /// Whether a receive window may shrink under memory pressure.
    ///
    /// A remedy for machines with very many connections whose peers outrun them; off by default.
    "net.ipv4.tcp_shrink_window", Unit::Switch, always!("0"), judge::depends;
    /// The smallest MSS that is accepted for sending.
    ///
    /// It exists on kernels that are patched against SACK Panic (CVE-2019-11479), which is how to
    /// know one. Raising it to 500 refuses peers that ask for tiny segments.
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
