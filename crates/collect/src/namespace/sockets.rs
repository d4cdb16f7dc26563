//! Reads the TCP sockets of the calling thread's namespace: listeners one by one, all others summed as
//! they are read, so that memory depends on the number of peers (bounded), not of sockets.

mod both;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::ops::ControlFlow;

use diagnose::facts::{
    Direction, Known, Listener, PeerSockets, PortUse, SocketState, Sockets, TcpSummary,
};
use os::sock_diag::{self, Half, SockDiag, Socket, Wanted};
use os::tcp_info::{TcpInfo, TcpState};
use rustc_hash::FxHashMap;

use crate::file::reason;

/// Peers reported individually: those with the most sockets, and those with the most retransmissions.
const PEERS_BY_SOCKETS_MAX: usize = 48;
const PEERS_BY_LOSS_MAX: usize = 16;

/// Destinations reported individually, fullest first.
const PORTS_MAX: usize = 32;

/// Peers, and destinations, that are kept while sockets stream by. Later ones are counted only.
const KEPT_MAX: usize = 32_768;

/// Established connections of which the kernel is asked for `TCP_INFO`: a bound on time (about two
/// microseconds each) and on memory. Beyond it those asked are no fair choice, since Linux 6.15 keeps
/// the connections to one server next to each other in its table; so it is far above what most
/// hosts have, and the sockets' table says when it was reached.
const INFO_MAX: u64 = 262_144;

/// With so many sockets two threads look at a half each.
const FOR_TWO_MIN: u64 = 16_384;

/// Listeners, and what all other sockets add up to. `count` is how many TCP sockets the namespace has,
/// as far as that is known, connections to a listener that have yet to be made left out. Where there is
/// none the kernel need not look for them in its table, which is all namespaces' own and may have a
/// million places.
pub(super) fn read(count: Option<u64>) -> (Known<Vec<Listener>>, Known<Sockets>) {
    let read = || {
        let mut sock_diag = SockDiag::open()?;
        let listeners = listeners(&mut sock_diag)?;
        let ports = listeners.iter().map(|listener| listener.address.port()).collect();
        let sum = if listeners.is_empty() && count == Some(0) {
            Ok(Sum::new(ports, INFO_MAX))
        } else if count >= Some(FOR_TWO_MIN) {
            by_two(ports)
        } else {
            Sum::new(ports, INFO_MAX).read(sock_diag, Wanted::others())
        };
        Ok((listeners, sum.map(Sum::finish)))
    };
    let refused = |error: std::io::Error| format!("sock_diag: {}", reason(&error));
    match read() {
        Ok((listeners, sockets)) => (Known::Is(listeners), sockets.map_err(refused).into()),
        Err(error) => {
            let why = refused(error);
            (Known::unknown(why.clone()), Known::unknown(why))
        }
    }
}

/// Two threads, in the namespace of this one, add up a half each.
fn by_two(ports: BTreeSet<u16>) -> std::io::Result<Sum> {
    let sum = |half| {
        let sum = Sum::new(ports.clone(), INFO_MAX / 2);
        sum.read(SockDiag::open()?, Wanted::others().half(half))
    };
    std::thread::scope(|scope| {
        let named = std::thread::Builder::new().name("weir-sockets".to_owned());
        let upper = named.spawn_scoped(scope, || sum(Half::Upper))?;
        let lower = sum(Half::Lower);
        let upper = upper.join().map_err(|_| std::io::Error::other("a look at them panicked"))?;
        Ok(lower?.and(upper?))
    })
}

/// Whose they are is found out later, once for all.
fn listeners(sock_diag: &mut SockDiag) -> std::io::Result<Vec<Listener>> {
    let mut listeners = Vec::new();
    sock_diag.each(Wanted::listeners(), |socket| {
        let drops = socket.memory.and_then(|memory| memory.drops);
        listeners.push(Listener {
            address: socket.local,
            inode: socket.inode.into(),
            waiting: socket.receive_queue,
            backlog: socket.send_queue,
            backlog_asked: Known::unknown("the kernel does not keep it"),
            drops: drops.map_or_else(
                || Known::unknown("kernels before 4.7 do not tell"),
                |drops| Known::Is(drops.into()),
            ),
            ..Listener::default()
        });
        ControlFlow::Continue(())
    })?;
    listeners.sort_by_key(|listener| (listener.address, listener.inode));
    Ok(listeners)
}

/// What streamed by so far.
struct Sum {
    /// Ports that are listened on: a socket with one of these is the peer's doing.
    listened: BTreeSet<u16>,
    states: BTreeMap<SocketState, u64>,
    peers: FxHashMap<(IpAddr, Direction, u16), Peer>,
    peers_left_out: u64,
    ports: FxHashMap<(IpAddr, SocketAddr), (u64, u64)>,
    /// Of how many connections `TCP_INFO` may still be asked.
    info_left: u64,
}

/// One peer's sockets of one direction and port.
#[derive(Default)]
struct Peer {
    states: BTreeMap<SocketState, u64>,
    tcp: TcpSummary,
    rtts_us: Vec<u32>,
    rttvars_us: Vec<u32>,
    reordered: Option<u64>,
    for_nothing: Option<u64>,
    zero_window: Option<u64>,
    syn_sent_again: u64,
    stalled: u64,
    stalled_full: u64,
    congestion: Vec<(sock_diag::CongestionControl, u64)>,
    without: [u64; 3],
}

impl Sum {
    fn new(listened: BTreeSet<u16>, info_max: u64) -> Sum {
        Sum {
            listened,
            states: BTreeMap::new(),
            peers: FxHashMap::default(),
            peers_left_out: 0,
            ports: FxHashMap::default(),
            info_left: info_max,
        }
    }

    /// Adds up what is `wanted` of the namespace in which `sock_diag` was opened.
    fn read(mut self, mut sock_diag: SockDiag, wanted: Wanted) -> std::io::Result<Sum> {
        sock_diag.each(wanted.with_info(), |socket| self.add(socket))?;
        if self.info_left > 0 {
            return Ok(self);
        }
        // There are more: what TCP knows of those so far stands for all; they are counted again.
        self.forget_counts();
        SockDiag::open()?.each(wanted, |socket| {
            self.count(socket);
            ControlFlow::Continue(())
        })?;
        Ok(self)
    }

    /// Forgets how many there are, and keeps what TCP knows of them.
    fn forget_counts(&mut self) {
        self.states.clear();
        self.ports.clear();
        self.peers_left_out = 0;
        for peer in self.peers.values_mut() {
            peer.states.clear();
            peer.syn_sent_again = 0;
        }
    }

    /// Adds a socket with its `TCP_INFO`; breaks off after the last one that may have it.
    fn add(&mut self, socket: &Socket) -> ControlFlow<()> {
        let peer = self.count(socket);
        if socket.state != TcpState::Established {
            return ControlFlow::Continue(());
        }
        if let Some(peer) = peer {
            peer.add_tcp(socket);
        }
        self.info_left = self.info_left.saturating_sub(1);
        if self.info_left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// Counts a socket; yields its peer, unless there are too many.
    fn count(&mut self, socket: &Socket) -> Option<&mut Peer> {
        let state = state(socket.state)?;
        *self.states.entry(state).or_default() += 1;
        let direction = if self.listened.contains(&socket.local.port()) {
            Direction::Inbound
        } else {
            Direction::Outbound
        };
        let port = match direction {
            Direction::Inbound => socket.local.port(),
            Direction::Outbound => socket.peer.port(),
        };
        if direction == Direction::Outbound {
            let key = (socket.local.ip(), socket.peer);
            if self.ports.len() < KEPT_MAX || self.ports.contains_key(&key) {
                let (used, time_wait) = self.ports.entry(key).or_default();
                *used += 1;
                *time_wait += u64::from(state == SocketState::TimeWait);
            }
        }
        let key = (socket.peer.ip(), direction, port);
        if self.peers.len() >= KEPT_MAX && !self.peers.contains_key(&key) {
            self.peers_left_out += 1;
            return None;
        }
        let peer = self.peers.entry(key).or_default();
        *peer.states.entry(state).or_default() += 1;
        let is_repeated = state == SocketState::SynSent && socket.retransmits > 0;
        peer.syn_sent_again += u64::from(is_repeated);
        Some(peer)
    }

    fn finish(self) -> Sockets {
        let established = self.states.get(&SocketState::Established).copied().unwrap_or(0);
        let tcp_info = match self.info_left {
            0 => Known::unknown(format!(
                "TCP was asked about a part of the {established} connections only, since each takes time"
            )),
            _ => Known::Is(true),
        };
        let mut peers: Vec<_> = self.peers.into_iter().collect();
        let count = |peer: &Peer| peer.states.values().sum::<u64>();
        peers.sort_unstable_by_key(|(key, peer)| (Reverse(count(peer)), *key));
        let rest = peers.split_off(PEERS_BY_SOCKETS_MAX.min(peers.len()));
        let mut lossy: Vec<_> =
            rest.into_iter().map(|(key, peer)| (peer.tcp.segments_sent_again, key, peer)).collect();
        lossy.sort_unstable_by_key(|&(again, key, _)| (Reverse(again), key));
        let untold = lossy.len();
        let lossy = lossy.into_iter().take_while(|(again, ..)| *again > 0).take(PEERS_BY_LOSS_MAX);
        let before = peers.len();
        peers.extend(lossy.map(|(_, key, peer)| (key, peer)));
        let left_out = untold - (peers.len() - before);

        let mut ports: Vec<_> = self.ports.into_iter().collect();
        ports.sort_unstable_by_key(|&(key, (used, _))| (Reverse(used), key));
        Sockets {
            states: self.states,
            peers: peers.into_iter().map(Peer::told).collect(),
            peers_left_out: self.peers_left_out + left_out as u64,
            ports: ports.into_iter().take(PORTS_MAX).map(port_use).collect(),
            tcp_info,
        }
    }
}

impl Peer {
    fn add_tcp(&mut self, socket: &Socket) {
        let Some(info) = socket.info else { return };
        self.add_info(&info);
        if is_stalled(&info) {
            self.stalled += 1;
            let full = u64::from(info.snd_mss_bytes);
            let is_full = u64::from(socket.send_queue) >= full && info.bytes_acked < full;
            self.stalled_full += u64::from(is_full);
        }
        self.tcp.unsent_bytes += u64::from(socket.send_queue);
        self.tcp.unread_bytes += u64::from(socket.receive_queue);
        if let Some(name) = socket.congestion_control {
            match self.congestion.iter_mut().find(|(known, _)| *known == name) {
                Some((_, count)) => *count += 1,
                None => self.congestion.push((name, 1)),
            }
        }
    }

    fn add_info(&mut self, info: &TcpInfo) {
        let tcp = &mut self.tcp;
        let micros =
            |time: std::time::Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        tcp.connections += 1;
        tcp.rtt_max_us = tcp.rtt_max_us.max(micros(info.rtt));
        // Before the first measurement it is the largest number there is.
        let min = micros(info.min_rtt);
        if min < u64::from(u32::MAX) && (tcp.rtt_min_us == 0 || min < tcp.rtt_min_us) {
            tcp.rtt_min_us = min;
        }
        self.rtts_us.push(micros(info.rtt) as u32);
        self.rttvars_us.push(micros(info.rttvar) as u32);
        tcp.segments_sent += u64::from(info.data_segs_out);
        tcp.segments_sent_again += u64::from(info.total_retrans);
        tcp.lost += u64::from(info.lost);
        tcp.busy_us += info.busy.map_or(0, micros);
        tcp.rwnd_limited_us += info.rwnd_limited.map_or(0, micros);
        tcp.sndbuf_limited_us += info.sndbuf_limited.map_or(0, micros);
        let add = |sum: &mut Option<u64>, more: Option<u64>| {
            if let Some(more) = more {
                *sum.get_or_insert(0) += more;
            }
        };
        add(&mut self.reordered, info.reordering_seen.map(u64::from));
        add(&mut self.for_nothing, info.dsack_dups.map(u64::from));
        add(&mut self.zero_window, info.snd_wnd_bytes.map(|window| u64::from(window == 0)));
        let options = info.options;
        let offered = [options.sack, options.timestamps, options.window_scaling];
        for (without, offered) in self.without.iter_mut().zip(offered) {
            *without += u64::from(!offered);
        }
    }

    fn told(((peer, direction, port), mut sum): ((IpAddr, Direction, u16), Peer)) -> PeerSockets {
        let or_old = |sum: Option<u64>, since: &str| {
            sum.map_or_else(|| Known::unknown(format!("not before Linux {since}")), Known::Is)
        };
        let tcp = if sum.tcp.connections == 0 {
            Known::unknown("no established connection")
        } else {
            let [without_sack, without_timestamps, without_window_scaling] = sum.without;
            Known::Is(TcpSummary {
                rtt_median_us: median(&mut sum.rtts_us),
                rttvar_median_us: median(&mut sum.rttvars_us),
                reordered: or_old(sum.reordered, "4.20"),
                sent_again_for_nothing: or_old(sum.for_nothing, "4.19"),
                zero_window: or_old(sum.zero_window, "6.2"),
                stalled: Known::Is(sum.stalled),
                stalled_full: Known::Is(sum.stalled_full),
                congestion_control: sum
                    .congestion
                    .iter()
                    .map(|(name, count)| (name.as_str().to_owned(), *count))
                    .collect(),
                without_sack: Known::Is(without_sack),
                without_timestamps: Known::Is(without_timestamps),
                without_window_scaling: Known::Is(without_window_scaling),
                ..sum.tcp
            })
        };
        PeerSockets {
            peer,
            direction,
            port,
            states: sum.states,
            syn_sent_again: Known::Is(sum.syn_sent_again),
            tcp,
        }
    }
}

/// Whether two timeouts in a row brought no acknowledgement, though the peer's window is open: a closed
/// one is probed, and a peer that does not read is not dead.
fn is_stalled(info: &TcpInfo) -> bool {
    info.retransmits >= 2 && info.unacked > 0 && info.snd_wnd_bytes != Some(0)
}

/// The upper of the two in the middle.
fn median(times: &mut [u32]) -> u64 {
    let middle = times.len() / 2;
    if middle >= times.len() {
        return 0;
    }
    u64::from(*times.select_nth_unstable(middle).1)
}

fn port_use(
    ((source, destination), (used, time_wait)): ((IpAddr, SocketAddr), (u64, u64)),
) -> PortUse {
    PortUse { source, destination, used, time_wait }
}

fn state(state: TcpState) -> Option<SocketState> {
    Some(match state {
        TcpState::Established => SocketState::Established,
        TcpState::SynSent => SocketState::SynSent,
        TcpState::SynReceived => SocketState::SynRecv,
        TcpState::FinWait1 => SocketState::FinWait1,
        TcpState::FinWait2 => SocketState::FinWait2,
        TcpState::TimeWait => SocketState::TimeWait,
        TcpState::Closed => SocketState::Close,
        TcpState::CloseWait => SocketState::CloseWait,
        TcpState::LastAck => SocketState::LastAck,
        TcpState::Listen => SocketState::Listening,
        TcpState::Closing => SocketState::Closing,
        TcpState::Unknown => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn socket(local: &str, peer: &str, state: TcpState) -> Socket {
        Socket {
            state,
            local: local.parse().unwrap(),
            peer: peer.parse().unwrap(),
            receive_queue: 3,
            send_queue: 5,
            uid: 0,
            inode: 0,
            retransmits: 0,
            is_ipv6: false,
            memory: None,
            info: None,
            congestion_control: None,
        }
    }

    fn with_rtt(mut socket: Socket, rtt_us: u64, again: u32) -> Socket {
        socket.info = Some(TcpInfo {
            rtt: Duration::from_micros(rtt_us),
            total_retrans: again,
            snd_wnd_bytes: Some(0),
            ..TcpInfo::default()
        });
        socket
    }

    #[test]
    fn whose_port_is_listened_on_was_connected_to() {
        let mut sum = Sum::new(BTreeSet::from([80]), u64::MAX);
        let established = TcpState::Established;
        _ = sum.add(&with_rtt(socket("10.0.0.1:80", "10.0.0.9:4000", established), 300, 2));
        _ = sum.add(&with_rtt(socket("10.0.0.1:80", "10.0.0.9:4001", established), 100, 0));
        _ = sum.add(&with_rtt(socket("10.0.0.1:80", "10.0.0.9:4002", established), 200, 1));
        _ = sum.add(&socket("10.0.0.1:80", "10.0.0.9:4003", TcpState::TimeWait));
        _ = sum.add(&socket("10.0.0.1:5000", "10.0.0.9:80", TcpState::TimeWait));
        _ = sum.add(&socket("10.0.0.1:5001", "10.0.0.9:80", TcpState::SynSent));
        let told = sum.finish();
        assert_eq!(told.states[&SocketState::TimeWait], 2);
        let [clients, server] = told.peers.as_slice() else { panic!("{told:?}") };
        assert_eq!((clients.direction, clients.port), (Direction::Inbound, 80));
        let tcp = clients.tcp.get().unwrap();
        assert_eq!((tcp.connections, tcp.rtt_median_us, tcp.rtt_max_us), (3, 200, 300));
        assert_eq!((tcp.segments_sent_again, tcp.unsent_bytes, tcp.unread_bytes), (3, 15, 9));
        assert_eq!((tcp.zero_window.get(), tcp.without_sack.get()), (Some(&3), Some(&3)));
        assert!(tcp.reordered.get().is_none(), "unknown is not zero");
        assert_eq!((server.direction, server.port), (Direction::Outbound, 80));
        assert!(server.tcp.get().is_none());
        let [ports] = told.ports.as_slice() else { panic!("{told:?}") };
        assert_eq!((ports.used, ports.time_wait), (2, 1));
    }

    #[test]
    fn the_list_is_bounded_and_keeps_the_worst() {
        let mut sum = Sum::new(BTreeSet::from([80]), u64::MAX);
        for host in 0..200_u8 {
            let many = if host < 50 { 2 } else { 1 };
            for port in 0..many {
                let peer = format!("10.0.1.{host}:{}", 4000 + port);
                let again = if host == 199 { 7 } else { 0 };
                _ = sum.add(&with_rtt(
                    socket("10.0.0.1:80", &peer, TcpState::Established),
                    1,
                    again,
                ));
            }
        }
        let told = sum.finish();
        assert_eq!(told.peers.len(), PEERS_BY_SOCKETS_MAX + 1);
        assert_eq!(told.peers.last().map(|p| p.peer), Some("10.0.1.199".parse().unwrap()));
        assert_eq!(told.peers_left_out, 200 - told.peers.len() as u64);
    }

    #[test]
    fn of_more_than_may_be_asked_all_are_counted() {
        let mut sum = Sum::new(BTreeSet::from([80]), 2);
        let socket = |port: u16| {
            let peer = format!("10.0.0.9:{port}");
            with_rtt(socket("10.0.0.1:80", &peer, TcpState::Established), 300, 2)
        };
        assert_eq!(sum.add(&socket(4000)), ControlFlow::Continue(()));
        assert_eq!(sum.add(&socket(4001)), ControlFlow::Break(()));
        sum.forget_counts();
        for port in 4000..4005 {
            sum.count(&socket(port));
        }
        let told = sum.finish();
        assert_eq!(told.states[&SocketState::Established], 5);
        let [clients] = told.peers.as_slice() else { panic!("{told:?}") };
        assert_eq!(clients.states[&SocketState::Established], 5);
        assert_eq!(clients.tcp.get().unwrap().connections, 2);
        assert!(told.tcp_info.get().is_none());
    }

    #[test]
    fn a_median_of_nothing_is_nothing() {
        assert_eq!(median(&mut []), 0);
        assert_eq!(median(&mut [7]), 7);
        assert_eq!(median(&mut [9, 1, 5]), 5);
    }
    #[test]
    fn two_halves_tell_what_one_would() {
        let all: Vec<Socket> = (0..40_u16)
            .map(|n| {
                let state = if n % 5 == 0 { TcpState::TimeWait } else { TcpState::Established };
                let local = if n % 2 == 0 {
                    "10.0.0.1:80".to_owned()
                } else {
                    format!("10.0.0.1:{}", 5000 + n)
                };
                let one = socket(&local, &format!("10.0.0.{}:{}", n % 3, 4000 + n % 4), state);
                if n % 5 == 0 { one } else { with_rtt(one, 100 + u64::from(n) * 7 % 50, n.into()) }
            })
            .collect();
        let sum = |part: &[Socket]| {
            let mut sum = Sum::new(BTreeSet::from([80]), u64::MAX);
            for one in part {
                _ = sum.add(one);
            }
            sum
        };
        let (one, other) = all.split_at(13);
        assert_eq!(sum(one).and(sum(other)).finish(), sum(&all).finish());
        let mut bounded = sum(one);
        bounded.info_left = 0;
        assert!(bounded.and(sum(other)).finish().tcp_info.get().is_none(), "a part was asked");
    }
}
