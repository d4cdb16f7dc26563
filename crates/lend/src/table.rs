//! The members among which slots are divided, and the share of each.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};

use model::mix;

/// The members of a fleet by their addresses, which are the same at each of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    members: BTreeSet<SocketAddr>,
    digest: u64,
}

impl Table {
    /// Returns the table with these members.
    pub fn new(members: BTreeSet<SocketAddr>) -> Table {
        let digest = members.iter().fold(1, |digest, member| mix(digest ^ hash(*member)));
        // Zero stands for no table in messages.
        Table { members, digest: digest.max(1) }
    }

    /// Returns a number that differs from that of other tables.
    pub fn digest(&self) -> u64 {
        self.digest
    }

    pub(crate) fn len(&self) -> usize {
        self.members.len()
    }

    pub(crate) fn contains(&self, member: SocketAddr) -> bool {
        self.members.contains(&member)
    }

    pub(crate) fn others(&self, own: SocketAddr) -> impl Iterator<Item = SocketAddr> {
        self.members.iter().copied().filter(move |&member| member != own)
    }

    /// Returns how many of the `max` slots of a server, whose name is this hash, belong to a member. All shares
    /// together are `max`. The slots that are left over after a division go to the members with the highest
    /// scores of rendezvous hashing, so that each member has some at some servers.
    pub fn share(&self, server: u64, max: u32, member: SocketAddr) -> u32 {
        self.shares(server, max).into_iter().find(|(one, _)| *one == member).map_or(0, |it| it.1)
    }

    /// Returns the shares of all members that have one.
    pub(crate) fn shares(&self, server: u64, max: u32) -> Vec<(SocketAddr, u32)> {
        let count = u32::try_from(self.members.len()).unwrap_or(u32::MAX).max(1);
        let (each, left) = (max / count, max % count);
        let mut members: Vec<SocketAddr> = self.members.iter().copied().collect();
        if left > 0 {
            members.sort_by_cached_key(|member| Reverse((mix(server ^ hash(*member)), *member)));
        }
        let shares =
            members.into_iter().zip(0..).map(|(one, at)| (one, each + u32::from(at < left)));
        shares.filter(|(_, share)| *share > 0).collect()
    }
}

fn hash(address: SocketAddr) -> u64 {
    let ip = match address.ip() {
        IpAddr::V4(ip) => u128::from(u32::from(ip)),
        IpAddr::V6(ip) => u128::from(ip),
    };
    mix(mix(ip as u64 ^ u64::from(address.port())) ^ (ip >> 64) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(count: u16) -> Table {
        Table::new((1..=count).map(|port| SocketAddr::from(([10, 0, 0, 1], port))).collect())
    }

    #[test]
    fn shares_add_up_to_the_limit() {
        for (members, max) in [(1, 4), (3, 4), (32, 4), (32, 100), (7, 0)] {
            let table = table(members);
            for server in 0..50 {
                let shares: Vec<u32> =
                    table.members.iter().map(|one| table.share(server, max, *one)).collect();
                assert_eq!(shares.iter().sum::<u32>(), max);
                let (least, most) = (shares.iter().min().unwrap(), shares.iter().max().unwrap());
                assert!(most - least <= 1, "{shares:?}");
            }
        }
    }

    #[test]
    fn each_member_has_slots_at_some_of_many_servers() {
        let table = table(32);
        for member in &table.members {
            let slots: u32 = (0..400).map(|server| table.share(mix(server), 4, *member)).sum();
            assert!((25..=80).contains(&slots), "{slots} of 1600");
        }
    }

    #[test]
    fn one_that_is_not_listed_has_no_share() {
        assert_eq!(table(3).share(1, 9, "192.0.2.1:1".parse().unwrap()), 0);
    }

    #[test]
    fn tables_differ_by_their_digests() {
        let digests: BTreeSet<u64> = (0..1_000).map(|count| table(count).digest()).collect();
        assert_eq!(digests.len(), 1_000);
    }
}
