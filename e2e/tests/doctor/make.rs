//! How the faults are made. Each waits for what the kernel has counted, never for a time, so that a busy
//! machine only makes it slower.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddrV4, TcpListener, TcpStream, UdpSocket};
use std::time::Duration;

use e2e::raw::Raw;
use e2e::rogue::reset_on_close;
use e2e::{offloads_off, wait};
use rustix::process::Signal;

use crate::both::{Both, counted};
use crate::stage::{self, SERVER, Stage};
use crate::witness::Counted;

/// How many connections a fault has to do with, as a small host has.
const CONNECTIONS: usize = 20;

/// Asked for by the tests' listeners: neither what somaxconn once was nor more than it allows now.
const BACKLOG: i32 = 1_024;

fn listen() -> TcpListener {
    let listener = TcpListener::bind(SERVER).expect("a listener");
    // The standard library asks for 128.
    rustix::net::listen(&listener, BACKLOG).expect("a longer backlog");
    listener
}

/// Established connections, both ends of them.
struct Pairs {
    /// Its port shows which end began.
    _listener: TcpListener,
    servers: Vec<TcpStream>,
    clients: Vec<TcpStream>,
}

impl Pairs {
    fn connect(stage: &Stage<'_>, count: usize) -> Pairs {
        let listener = listen();
        let (mut servers, mut clients) = (Vec::new(), Vec::new());
        for _ in 0..count {
            let connect = || TcpStream::connect(SERVER).expect("a connection");
            clients.push(stage.as_client(connect));
            servers.push(listener.accept().expect("a connection").0);
        }
        Pairs { _listener: listener, servers, clients }
    }
}

/// Writes what the send buffer takes.
fn write_some(streams: &mut [TcpStream], count: usize) {
    for stream in streams {
        stream.set_nonblocking(true).expect("a socket");
        let written = stream.write(&vec![0; count]).expect("room in the send buffer");
        assert!(written > 0, "no room in the send buffer");
    }
}

/// Carries 4,000 bytes on each connection.
fn carry(from: &mut [TcpStream], to: &mut [TcpStream]) {
    for (from, to) in from.iter_mut().zip(to) {
        from.write_all(&[0; 4_000]).expect("a connection");
        to.read_exact(&mut [0; 4_000]).expect("what was sent");
    }
}

/// Sends on every stream, each on a thread, until this is dropped.
struct Senders(Vec<TcpStream>);

impl Senders {
    fn start(streams: &[TcpStream]) -> Senders {
        let clone = |stream: &TcpStream| stream.try_clone().expect("a second handle");
        for mut stream in streams.iter().map(clone) {
            std::thread::spawn(move || while stream.write_all(&vec![0; 65_536]).is_ok() {});
        }
        Senders(streams.iter().map(clone).collect())
    }
}

impl Drop for Senders {
    fn drop(&mut self) {
        for stream in &self.0 {
            // The other end may have closed it.
            drop(stream.shutdown(Shutdown::Both));
        }
    }
}

/// Reads each stream to its end, on threads; returns when all have ended.
fn read_all(streams: &[TcpStream]) {
    std::thread::scope(|scope| {
        for mut stream in streams {
            scope.spawn(move || drop(std::io::copy(&mut stream, &mut std::io::sink())));
        }
    });
}

/// Drops packets that arrive in the calling thread's namespace and match.
fn drop_arriving(matching: &str) {
    stage::nft(&format!(
        "add table inet fault; add chain inet fault in {{ type filter hook input priority 0; }}; \
         add rule inet fault in {matching} drop"
    ));
}

pub(crate) fn every_syn_is_lost(stage: &Stage<'_>) -> Both {
    drop_arriving("tcp dport 8080");
    stage.look_both(|| {
        let held = stage.as_client(|| Stage::knock(5));
        stage.counted_at_client("TcpExtTCPSynRetrans", 10);
        held
    })
}

/// Timeouts of 20 connections that make each stalled: two in a row, and one to spare.
const TIMEOUTS: u64 = 3 * CONNECTIONS as u64;

pub(crate) fn black_hole_to_server(stage: &Stage<'_>) -> Both {
    let mut pairs = Pairs::connect(stage, CONNECTIONS);
    carry(&mut pairs.clients, &mut pairs.servers);
    drop_arriving("tcp dport 8080");
    stage.look_both(|| {
        write_some(&mut pairs.clients, 5);
        stage.counted_at_client("TcpExtTCPTimeouts", TIMEOUTS);
    })
}

pub(crate) fn black_hole_to_clients(stage: &Stage<'_>) -> Both {
    let mut pairs = Pairs::connect(stage, CONNECTIONS);
    carry(&mut pairs.servers, &mut pairs.clients);
    stage.as_client(|| drop_arriving("tcp sport 8080"));
    stage.look_both(|| {
        write_some(&mut pairs.servers, 5);
        counted("TcpExtTCPTimeouts", TIMEOUTS);
    })
}

/// Whole segments are lost, and nothing says so.
const LARGE: &str = "ip length > 1000";

pub(crate) fn mtu_to_clients(stage: &Stage<'_>) -> Both {
    offloads_off("zone1");
    stage.as_client(|| drop_arriving(LARGE));
    stage.look_both(|| {
        let mut pairs = Pairs::connect(stage, CONNECTIONS);
        write_some(&mut pairs.servers, 20_000);
        counted("TcpExtTCPTimeouts", TIMEOUTS);
        pairs
    })
}

pub(crate) fn mtu_to_server(stage: &Stage<'_>) -> Both {
    stage.as_client(|| offloads_off("eth0"));
    drop_arriving(LARGE);
    stage.look_both(|| {
        let mut pairs = Pairs::connect(stage, CONNECTIONS);
        write_some(&mut pairs.clients, 20_000);
        stage.counted_at_client("TcpExtTCPTimeouts", TIMEOUTS);
        pairs
    })
}

pub(crate) fn refused(stage: &Stage<'_>) -> Both {
    stage.look_both(|| {
        stage.as_client(|| {
            for _ in 0..500 {
                TcpStream::connect(SERVER).expect_err("a refusal");
            }
        });
    })
}

pub(crate) fn refused_by_icmp(stage: &Stage<'_>) -> Both {
    // By default the kernel sends a burst of these messages, and then one a second.
    stage::set("net/ipv4/icmp_ratelimit", "0");
    stage::set("net/ipv4/icmp_msgs_per_sec", "10000");
    stage::nft(
        "add table inet fault; add chain inet fault in { type filter hook input priority 0; }; \
         add rule inet fault in tcp dport 8080 reject with icmpx type admin-prohibited",
    );
    stage.look_both(|| {
        let held = stage.as_client(|| Stage::knock(CONNECTIONS));
        // On a veth pair the first message comes while connect() still holds the socket, and the kernel
        // drops it (LockDroppedIcmps). The answer to the second SYN counts.
        stage.counted_at_client("TcpAttemptFails", CONNECTIONS as u64);
        held
    })
}

pub(crate) fn server_resets(stage: &Stage<'_>) -> Both {
    stage.look_both(|| {
        let pairs = Pairs::connect(stage, 200);
        pairs.servers.iter().for_each(reset_on_close);
        drop(pairs.servers);
        stage.counted_at_client("TcpEstabResets", 200);
        pairs.clients
    })
}

pub(crate) fn clients_reset(stage: &Stage<'_>) -> Both {
    stage.look_both(|| {
        let pairs = Pairs::connect(stage, 200);
        pairs.clients.iter().for_each(reset_on_close);
        drop(pairs.clients);
        counted("TcpEstabResets", 200);
        pairs.servers
    })
}

pub(crate) fn queue_overflows(stage: &Stage<'_>) -> Both {
    let nginx = stage.nginx("backlog=16");
    nginx.signal(Signal::STOP);
    let both = stage.look_both(|| {
        let held = stage.as_client(|| Stage::knock(60));
        // 43 find no room; each repeats its SYN twice.
        stage.counted_at_client("TcpExtTCPSynRetrans", 80);
        held
    });
    nginx.signal(Signal::CONT);
    both
}

pub(crate) fn one_answer_lost(stage: &Stage<'_>) -> Both {
    const SYN_ACK: &str = "tcp flags & (syn | ack) == syn | ack quota until 60 bytes";
    stage.look_both(|| {
        stage.as_client(|| drop_arriving(SYN_ACK));
        let pairs = Pairs::connect(stage, 5);
        // The client repeats its SYN; the server repeats its answer, by itself and for that SYN.
        let again = "TcpExtTCPSynRetrans";
        let again = Counted::now().of(again) + stage.as_client(Counted::now).of(again);
        assert!((1..=3).contains(&again), "{again} repetitions for one lost answer");
        pairs
    })
}

pub(crate) fn answers_lost(stage: &Stage<'_>) -> Both {
    let listener = listen();
    stage.as_client(|| drop_arriving("tcp sport 8080"));
    stage.look_both(|| {
        let held = stage.as_client(|| Stage::knock(CONNECTIONS));
        stage.counted_at_client("TcpExtTCPSynRetrans", 2 * CONNECTIONS as u64);
        counted("TcpExtTCPSynRetrans", 2 * CONNECTIONS as u64);
        (held, listener)
    })
}

pub(crate) fn tiny_rmem(stage: &Stage<'_>) -> Both {
    // Room for some packets: a sender can fill it faster than any program reads. In a buffer of one packet
    // the sender waits for each acknowledgement, and the window is hardly ever full.
    stage::set("net/ipv4/tcp_rmem", "4096 32768 32768");
    let pairs = Pairs::connect(stage, 4);
    stage.look_both(|| {
        let senders = Senders::start(&pairs.clients);
        for mut stream in pairs.servers {
            std::thread::spawn(move || drop(std::io::copy(&mut stream, &mut std::io::sink())));
        }
        counted("TcpExtTCPToZeroWindowAdv", 10);
        // Senders have to be seen busy for a while.
        wait::measure_for(Duration::from_millis(500));
        senders
    })
}

pub(crate) fn server_does_not_read(stage: &Stage<'_>) -> Both {
    let pairs = Pairs::connect(stage, 4);
    let _senders = Senders::start(&pairs.clients);
    counted("TcpExtTCPToZeroWindowAdv", 4);
    stage.look_both(|| wait::measure_for(Duration::from_millis(500)))
}

pub(crate) fn client_does_not_read(stage: &Stage<'_>) -> Both {
    let pairs = Pairs::connect(stage, 4);
    let _senders = Senders::start(&pairs.servers);
    stage.counted_at_client("TcpExtTCPToZeroWindowAdv", 4);
    stage.look_both(|| wait::measure_for(Duration::from_millis(500)))
}

/// Whole packets of data, so that this is not about how SYNs are sent again.
const THREE_PERCENT: &str = "ip length > 500 numgen random mod 100 < 3";

/// Sends 2 MB on each connection and waits until all has arrived. Losses within a round trip are one episode,
/// and the doctor counts episodes: on 20 connections they are several times what its bound asks for.
fn send_much(from: &[TcpStream], to: &[TcpStream]) {
    std::thread::scope(|scope| {
        for mut stream in from {
            scope.spawn(move || {
                stream.write_all(&vec![0; 2_000_000]).expect("a peer that reads");
                stream.shutdown(Shutdown::Write).expect("a connection");
            });
        }
        read_all(to);
    });
}

pub(crate) fn loss_to_server(stage: &Stage<'_>) -> Both {
    stage.as_client(|| offloads_off("eth0"));
    drop_arriving(THREE_PERCENT);
    let pairs = Pairs::connect(stage, CONNECTIONS);
    stage.look_both(|| send_much(&pairs.clients, &pairs.servers))
}

pub(crate) fn loss_to_clients(stage: &Stage<'_>) -> Both {
    offloads_off("zone1");
    stage.as_client(|| drop_arriving(THREE_PERCENT));
    let pairs = Pairs::connect(stage, CONNECTIONS);
    stage.look_both(|| send_much(&pairs.servers, &pairs.clients))
}

pub(crate) fn quiet(stage: &Stage<'_>) -> Both {
    stage.look_both(|| {
        let mut pairs = Pairs::connect(stage, CONNECTIONS);
        carry(&mut pairs.clients, &mut pairs.servers);
        carry(&mut pairs.servers, &mut pairs.clients);
    })
}

pub(crate) fn with_setting(stage: &Stage<'_>, name: &str, value: &str) -> Both {
    stage::set(name, value);
    quiet(stage)
}

pub(crate) fn flood(stage: &Stage<'_>) -> Both {
    let _nginx = stage.nginx("");
    stage.look_both(|| stage.flood(3_000))
}

pub(crate) fn flood_without_cookies(stage: &Stage<'_>) -> Both {
    stage::set("net/ipv4/tcp_syncookies", "0");
    flood(stage)
}

pub(crate) fn somaxconn_raised(stage: &Stage<'_>) -> Both {
    stage::set("net/core/somaxconn", "128");
    let _nginx = stage.nginx("backlog=4096");
    stage::set("net/core/somaxconn", "4096");
    stage.look_both(|| {})
}

pub(crate) fn table_evicts(stage: &Stage<'_>) -> Both {
    // Connections are tracked where a rule asks about them.
    stage::nft(
        "add table inet track; add chain inet track in { type filter hook input priority 0; }; \
         add rule inet track in ct state new accept",
    );
    let max: u32 = stage::get("net/netfilter/nf_conntrack_max").parse().expect("a number");
    assert!(max <= 2_000_000, "a table of {max} entries takes too long to fill");
    // A machine may take longer to fill the table than an entry lives by default, 30 s.
    stage::set("net/netfilter/nf_conntrack_udp_timeout", "600");
    let _sink = UdpSocket::bind(("10.99.1.1", 9)).expect("a port that takes datagrams");
    let fill = |from: u32, to: u32| {
        let raw = Raw::open();
        for flow in from..to {
            let [_, b, c, d] = (flow / 50_000).to_be_bytes();
            let address = Ipv4Addr::new(198, 18 + (b & 1), c, d);
            let port = 10_000 + (flow % 50_000) as u16;
            let to = "10.99.1.1:9".parse().expect("an address");
            raw.datagram(SocketAddrV4::new(address, port), to);
        }
    };
    stage.as_client(|| fill(0, max));
    stage.look_both(|| {
        stage.as_client(|| fill(max, max + 20_000));
        counted("conntrack:early_drop", 1_000);
    })
}

pub(crate) fn ports_run_out(stage: &Stage<'_>) -> Both {
    stage.as_client(|| stage::set("net/ipv4/ip_local_port_range", "40000 40099"));
    let _pairs = Pairs::connect(stage, 95);
    stage.look_both(|| {})
}

pub(crate) fn time_wait_overflows(stage: &Stage<'_>) -> Both {
    stage.as_client(|| stage::set("net/ipv4/tcp_max_tw_buckets", "10"));
    stage.look_both(|| {
        // The end that closes first waits. Closed by both ends at once, on a machine that is busy, many
        // connections end without being counted.
        let pairs = Pairs::connect(stage, 200);
        drop(pairs.clients);
        read_all(&pairs.servers);
        drop(pairs.servers);
        stage.counted_at_client("TcpExtTCPTimeWaitOverflow", 100);
    })
}
