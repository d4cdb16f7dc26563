//! Merges the sums of two halves of a namespace's sockets, each read by its own thread.

use diagnose::facts::TcpSummary;

use super::{KEPT_MAX, Peer, Sum};

impl Sum {
    /// This half and the `other`, within the same bounds.
    pub(super) fn and(mut self, other: Sum) -> Sum {
        for (state, count) in other.states {
            *self.states.entry(state).or_default() += count;
        }
        self.peers_left_out += other.peers_left_out;
        for (key, peer) in other.peers {
            if self.peers.len() >= KEPT_MAX && !self.peers.contains_key(&key) {
                self.peers_left_out += peer.states.values().sum::<u64>();
            } else {
                self.peers.entry(key).or_default().add(peer);
            }
        }
        for (key, (used, time_wait)) in other.ports {
            if self.ports.len() < KEPT_MAX || self.ports.contains_key(&key) {
                let sum = self.ports.entry(key).or_default();
                *sum = (sum.0 + used, sum.1 + time_wait);
            }
        }
        // Where one half came to its bound, a part of all was asked about.
        self.info_left = self.info_left.min(other.info_left);
        self
    }
}

impl Peer {
    fn add(&mut self, other: Peer) {
        for (state, count) in other.states {
            *self.states.entry(state).or_default() += count;
        }
        add_tcp(&mut self.tcp, &other.tcp);
        self.rtts_us.extend(other.rtts_us);
        self.rttvars_us.extend(other.rttvars_us);
        let both = |one: Option<u64>, other: Option<u64>| match (one, other) {
            (Some(one), Some(other)) => Some(one + other),
            (one, other) => one.or(other),
        };
        self.reordered = both(self.reordered, other.reordered);
        self.for_nothing = both(self.for_nothing, other.for_nothing);
        self.zero_window = both(self.zero_window, other.zero_window);
        self.syn_sent_again += other.syn_sent_again;
        self.stalled += other.stalled;
        self.stalled_full += other.stalled_full;
        for (name, more) in other.congestion {
            match self.congestion.iter_mut().find(|(known, _)| *known == name) {
                Some((_, count)) => *count += more,
                None => self.congestion.push((name, more)),
            }
        }
        for (without, more) in self.without.iter_mut().zip(other.without) {
            *without += more;
        }
    }
}

/// What is counted while sockets stream by; the rest is made of it at the end.
fn add_tcp(sum: &mut TcpSummary, other: &TcpSummary) {
    sum.connections += other.connections;
    sum.rtt_max_us = sum.rtt_max_us.max(other.rtt_max_us);
    sum.rtt_min_us = match (sum.rtt_min_us, other.rtt_min_us) {
        (0, min) | (min, 0) => min,
        (one, other) => one.min(other),
    };
    sum.segments_sent += other.segments_sent;
    sum.segments_sent_again += other.segments_sent_again;
    sum.lost += other.lost;
    sum.busy_us += other.busy_us;
    sum.rwnd_limited_us += other.rwnd_limited_us;
    sum.sndbuf_limited_us += other.sndbuf_limited_us;
    sum.unsent_bytes += other.unsent_bytes;
    sum.unread_bytes += other.unread_bytes;
}
