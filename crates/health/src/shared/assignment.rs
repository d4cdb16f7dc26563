//! Which members of a zone run a probe: those with the highest scores of rendezvous hashing (Thaler
//! and Ravishankar 1998), from different hosts as long as the zone has enough of them.
//!
//! All members weigh the same. Members with the same list agree without a message. A member that
//! leaves moves only its own probes, spread over the others. A score depends on the member's name
//! alone, so a restart moves nothing.
//!
//! The number of probes of a member follows a binomial distribution: with 32 members, two probers a probe and 2,000 probes, a
//! member has 125 ± 11 (standard deviation); with 20,000 probes, 1,250 ± 35.

use std::cmp::Reverse;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use aws_lc_rs::digest::{SHA256, digest};
use model::mix;

use super::identity::ProbeHash;

/// Maximum number of probers of one probe in a zone.
pub const PROBERS_MAX: usize = 8;
/// Usual number of probers of one probe in a zone.
pub const PROBERS_DEFAULT: usize = 2;
/// Maximum number of members of a zone that take part; later ones probe for themselves.
pub const MEMBERS_MAX: usize = 4_096;

/// Names that left whose indices are kept, so that a member that returns is the same one.
const LEFT_KEPT_MAX: usize = 1_024;

/// A member by its name, as long as a [`Roster`] knows it. Never reused for another name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MemberIndex(pub u32);

/// A member of the fleet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Unique in the fleet.
    pub name: Arc<str>,
    /// Its zone. Those without one form a zone of their own.
    pub zone: Option<Arc<str>>,
    /// Its machine: members of the same one fail together.
    pub host: Arc<str>,
    /// Identifies this start of its process.
    pub start: u64,
}

/// The members of one zone.
#[derive(Debug)]
pub struct Roster {
    zone: Option<Arc<str>>,
    probers: usize,
    /// Sorted by index.
    members: Vec<Entry>,
    indices: HashMap<Arc<str>, MemberIndex>,
    /// Names in `indices` that are not in `members`, the oldest first.
    left: VecDeque<Arc<str>>,
    indices_given: u32,
}

#[derive(Debug)]
struct Entry {
    index: MemberIndex,
    member: Member,
    /// What its score is drawn from.
    token: u64,
    host: u64,
}

/// A change of a [`Roster`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Changed {
    /// This member joined.
    Joined(MemberIndex),
    /// This member left.
    Left(MemberIndex),
    /// This member is on another host than before.
    Moved(MemberIndex),
}

/// The probers of one probe, the highest score first.
#[derive(Clone, Copy, Debug, Default)]
pub struct Probers {
    drawn: [Drawn; PROBERS_MAX],
    len: usize,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Drawn {
    score: u64,
    index: Option<MemberIndex>,
    host: u64,
}

impl Roster {
    /// Returns a roster of `zone` (`None`: the members without one) that has no member yet. `probers`
    /// is the number of probers for each probe, in 1..=[`PROBERS_MAX`] (others are clamped).
    pub fn new(zone: Option<Arc<str>>, probers: usize) -> Roster {
        Roster {
            zone,
            probers: probers.clamp(1, PROBERS_MAX),
            members: Vec::new(),
            indices: HashMap::new(),
            left: VecDeque::new(),
            indices_given: 0,
        }
    }

    /// Changes the number of probers for each probe, as of [`Roster::new`].
    pub fn set_probers(&mut self, probers: usize) {
        self.probers = probers.clamp(1, PROBERS_MAX);
    }

    /// Adds a member, or updates it. `None` if nothing changes for assignments: it is of another zone,
    /// was here with the same host, or the zone has [`MEMBERS_MAX`].
    pub fn join(&mut self, member: Member) -> Option<Changed> {
        if member.zone != self.zone {
            return self.leave(&member.name);
        }
        if let Some(index) = self.index_of(&member.name)
            && let Some(at) = self.position(index)
            && let Some(entry) = self.members.get_mut(at)
        {
            let host_before = std::mem::replace(&mut entry.host, token(&member.host));
            entry.member = member;
            return (entry.host != host_before).then_some(Changed::Moved(index));
        }
        if self.members.len() >= MEMBERS_MAX {
            return None;
        }
        let known = self.indices.get(&member.name).copied();
        let index = known.unwrap_or_else(|| {
            // Four billion names are not reached in a process's life.
            self.indices_given = self.indices_given.saturating_add(1);
            MemberIndex(self.indices_given)
        });
        self.left.retain(|name| *name != member.name);
        self.indices.insert(Arc::clone(&member.name), index);
        let (token, host) = (token(&member.name), token(&member.host));
        let at = self.members.partition_point(|entry| entry.index < index);
        self.members.insert(at, Entry { index, member, token, host });
        Some(Changed::Joined(index))
    }

    /// Removes a member; `None` if it is not here.
    pub fn leave(&mut self, name: &str) -> Option<Changed> {
        let index = self.index_of(name)?;
        let entry = self.members.remove(self.position(index)?);
        self.left.push_back(entry.member.name);
        if self.left.len() > LEFT_KEPT_MAX
            && let Some(oldest) = self.left.pop_front()
        {
            self.indices.remove(&oldest);
        }
        Some(Changed::Left(index))
    }

    /// Returns the index of a member that is here or has left not long ago.
    pub fn index_of(&self, name: &str) -> Option<MemberIndex> {
        self.indices.get(name).copied()
    }

    /// Returns a member that is here.
    pub fn member(&self, index: MemberIndex) -> Option<&Member> {
        self.members.get(self.position(index)?).map(|entry| &entry.member)
    }

    /// Returns the members that are here.
    pub fn members(&self) -> impl Iterator<Item = &Member> {
        self.members.iter().map(|entry| &entry.member)
    }

    /// Returns the number of members.
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Returns whether it has no member.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// Returns the probers of a probe. Takes time proportional to the number of members: 20,000
    /// probes over 250 members take 18 ms in a release build.
    pub fn probers(&self, probe: ProbeHash) -> Probers {
        let mut probers = Probers::default();
        for entry in &self.members {
            probers.offer(entry.drawn(probe), self.probers);
        }
        if probers.len < self.probers {
            // Too few hosts: further members of the same hosts, the highest first.
            let mut others: Vec<Drawn> = self.members.iter().map(|e| e.drawn(probe)).collect();
            others.retain(|drawn| !probers.iter().any(|index| Some(index) == drawn.index));
            others.sort_unstable_by_key(|drawn| Reverse(drawn.rank()));
            for drawn in others.into_iter().take(self.probers - probers.len) {
                probers.push(drawn);
            }
        }
        probers
    }

    /// Returns the probers of a probe after a change, given those before it; `None` if nothing about
    /// them changed. Computes scores of all members only where the set does change: for 20,000 probes
    /// and one of 250 members, 0.5 ms in a release build.
    pub fn probers_after(
        &self,
        probe: ProbeHash,
        before: &Probers,
        changed: Changed,
    ) -> Option<Probers> {
        let may_change = match changed {
            Changed::Moved(_) => true,
            Changed::Left(index) => before.contains(index),
            Changed::Joined(index) => {
                let entry = self.position(index).and_then(|at| self.members.get(at));
                entry.is_some_and(|entry| before.may_admit(entry.drawn(probe), self.probers))
            }
        };
        let after = may_change.then(|| self.probers(probe))?;
        // Scores and hosts, too: the next change is judged by them.
        (after.drawn != before.drawn).then_some(after)
    }

    fn position(&self, index: MemberIndex) -> Option<usize> {
        self.members.binary_search_by_key(&index, |entry| entry.index).ok()
    }
}

impl Entry {
    fn drawn(&self, probe: ProbeHash) -> Drawn {
        let score = mix(probe.low() ^ self.token);
        Drawn { score, index: Some(self.index), host: self.host }
    }
}

impl Drawn {
    /// Equal scores of two members are as good as impossible; members with the same list order even
    /// those alike, as hosts are hashes of names.
    fn rank(self) -> (u64, u64) {
        (self.score, self.host)
    }
}

impl Probers {
    /// Returns their indices, the highest score first.
    pub fn iter(&self) -> impl Iterator<Item = MemberIndex> + '_ {
        self.drawn.iter().take(self.len).filter_map(|drawn| drawn.index)
    }

    /// Returns whether this member is one of them.
    pub fn contains(&self, index: MemberIndex) -> bool {
        self.iter().any(|prober| prober == index)
    }

    /// Returns their number: less than asked for only in a zone of fewer members.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether there is none: the zone has no member.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Keeps the best of each host, and of these the best `wanted`, in order.
    fn offer(&mut self, drawn: Drawn, wanted: usize) {
        let kept = self.drawn.get(..self.len).unwrap_or_default();
        if let Some(same) = kept.iter().position(|other| other.host == drawn.host) {
            if kept.get(same).is_some_and(|other| other.rank() >= drawn.rank()) {
                return;
            }
            self.drawn.copy_within(same + 1..self.len, same);
            self.len -= 1;
        } else if self.len == wanted {
            if kept.last().is_some_and(|last| last.rank() >= drawn.rank()) {
                return;
            }
            self.len -= 1;
        }
        let kept = self.drawn.get(..self.len).unwrap_or_default();
        let at = kept.partition_point(|other| other.rank() > drawn.rank());
        self.drawn.copy_within(at..self.len, at + 1);
        if let Some(place) = self.drawn.get_mut(at) {
            *place = drawn;
            self.len += 1;
        }
    }

    fn push(&mut self, drawn: Drawn) {
        if let Some(place) = self.drawn.get_mut(self.len) {
            *place = drawn;
            self.len += 1;
        }
    }

    /// Returns false only if a member that joins cannot be one of them.
    fn may_admit(&self, drawn: Drawn, wanted: usize) -> bool {
        let kept = self.drawn.get(..self.len).unwrap_or_default();
        let has_twins =
            kept.iter().enumerate().any(|(n, a)| kept.iter().skip(n + 1).any(|b| a.host == b.host));
        let lowest = kept.iter().map(|other| other.rank()).min();
        self.len < wanted || has_twins || lowest.is_none_or(|lowest| drawn.rank() > lowest)
    }
}

/// Returns a number for a name that is the same in every process. The digest spreads names that
/// differ in one digit.
fn token(name: &str) -> u64 {
    let digest = digest(&SHA256, name.as_bytes());
    digest.as_ref().first_chunk().map_or(0, |first| u64::from_le_bytes(*first))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(number: usize, hosts: usize) -> Member {
        Member {
            name: format!("weir-{number}").into(),
            zone: Some("a".into()),
            host: format!("host-{}", number % hosts).into(),
            start: 1,
        }
    }

    fn roster(members: usize, hosts: usize) -> Roster {
        let mut roster = Roster::new(Some("a".into()), PROBERS_DEFAULT);
        for number in 0..members {
            roster.join(member(number, hosts)).expect("a new member");
        }
        roster
    }

    fn probes(number: usize) -> Vec<ProbeHash> {
        let mut rng = fastrand::Rng::with_seed(1);
        (0..number).map(|_| ProbeHash(rng.u128(..).to_le_bytes())).collect()
    }

    fn names(roster: &Roster, probers: &Probers) -> Vec<Arc<str>> {
        probers.iter().map(|i| roster.member(i).expect("a member").name.clone()).collect()
    }

    #[test]
    fn members_with_the_same_list_agree_in_whatever_order_they_learned_it() {
        let one = roster(32, 32);
        let mut other = Roster::new(Some("a".into()), PROBERS_DEFAULT);
        for number in (0..32).rev() {
            other.join(member(number, 32));
        }
        for probe in probes(500) {
            let (a, b) = (one.probers(probe), other.probers(probe));
            assert_eq!(names(&one, &a), names(&other, &b));
        }
    }

    #[test]
    fn duties_are_spread_evenly() {
        // The bounds are five standard deviations; see the header.
        for (number, share) in [(2_000, 0.45), (20_000, 0.15)] {
            let roster = roster(32, 32);
            let mut duties = HashMap::<MemberIndex, usize>::new();
            for probe in probes(number) {
                for index in roster.probers(probe).iter() {
                    *duties.entry(index).or_default() += 1;
                }
            }
            let mean = (number * 2) as f64 / 32.0;
            let worst = duties.values().map(|&n| (n as f64 / mean - 1.0).abs()).fold(0.0, f64::max);
            println!("{number} probes: at most {:.1} % from the mean", worst * 100.0);
            assert_eq!(duties.len(), 32);
            assert!(worst < share, "{worst}");
        }
    }

    #[test]
    fn a_leaving_member_moves_only_its_own_probes() {
        let mut roster = roster(32, 16);
        let probes = probes(2_000);
        let before: Vec<Probers> = probes.iter().map(|&probe| roster.probers(probe)).collect();
        let changed = roster.leave("weir-7").expect("it was here");
        let Changed::Left(gone) = changed else { panic!("{changed:?}") };
        let mut moved = 0;
        for (&probe, before) in probes.iter().zip(&before) {
            let after = roster.probers(probe);
            let same = before.iter().filter(|&index| after.contains(index)).count();
            assert_eq!(same, 2 - usize::from(before.contains(gone)));
            let told = roster.probers_after(probe, before, changed);
            assert_eq!(told.is_some(), before.contains(gone));
            moved += usize::from(told.is_some());
        }
        println!("{moved} of 2000 probes moved");
        // It returns as the same member, and everything is as before.
        assert_eq!(roster.join(member(7, 16)), Some(Changed::Joined(gone)));
        for (&probe, before) in probes.iter().zip(&before) {
            assert!(roster.probers(probe).iter().eq(before.iter()));
        }
    }

    #[test]
    fn a_change_is_followed_as_if_all_were_assigned_again() {
        let seed = fastrand::u64(..);
        println!("seed {seed}");
        let mut rng = fastrand::Rng::with_seed(seed);
        let probes = probes(50);
        let mut roster = roster(3, 2);
        let mut sets: Vec<Probers> = probes.iter().map(|&probe| roster.probers(probe)).collect();
        for _ in 0..300 {
            let number = rng.usize(0..10);
            let hosts = rng.usize(3..5);
            let changed = if rng.bool() {
                roster.join(member(number, hosts))
            } else {
                roster.leave(&format!("weir-{number}"))
            };
            let Some(changed) = changed else { continue };
            for (&probe, set) in probes.iter().zip(&mut sets) {
                if let Some(after) = roster.probers_after(probe, set, changed) {
                    *set = after;
                }
                assert!(set.iter().eq(roster.probers(probe).iter()));
            }
        }
    }

    #[test]
    fn probers_are_on_different_hosts_where_the_zone_has_enough() {
        let roster = roster(32, 2);
        for probe in probes(200) {
            let probers = roster.probers(probe);
            let hosts: Vec<_> =
                probers.iter().map(|i| roster.member(i).expect("a member").host.clone()).collect();
            assert_eq!(hosts.len(), 2);
            assert_ne!(hosts[0], hosts[1]);
        }
        // One host: two members of it all the same. One member: alone.
        for (members, probers) in [(5, 2), (1, 1), (0, 0)] {
            let roster = self::roster(members, 1);
            let set = roster.probers(probes(1)[0]);
            assert_eq!(set.len(), probers);
            assert_eq!(set.iter().collect::<std::collections::HashSet<_>>().len(), probers);
        }
    }

    #[test]
    fn members_of_other_zones_take_no_part_and_those_without_are_a_zone() {
        let mut roster = Roster::new(None, PROBERS_DEFAULT);
        assert_eq!(roster.join(member(1, 1)), None);
        assert!(roster.is_empty());
        assert!(roster.join(Member { zone: None, ..member(2, 1) }).is_some());
        assert_eq!(roster.len(), 1);
        // It restarts in a zone.
        assert!(matches!(roster.join(member(2, 1)), Some(Changed::Left(_))));
        assert!(roster.is_empty());
    }

    #[test]
    fn a_restart_moves_nothing() {
        let mut roster = roster(4, 4);
        let index = roster.index_of("weir-2");
        assert_eq!(roster.join(Member { start: 2, ..member(2, 4) }), None);
        assert_eq!(roster.index_of("weir-2"), index);
        assert_eq!(roster.member(index.expect("known")).map(|member| member.start), Some(2));
    }

    /// `cargo test --release -- --ignored --nocapture`.
    #[test]
    #[ignore = "measures; asserts nothing"]
    #[allow(clippy::disallowed_methods, reason = "a measurement needs the clock")]
    fn what_a_change_of_membership_costs() {
        let mut roster = roster(250, 250);
        let probes = probes(20_000);
        let begun = std::time::Instant::now();
        let sets: Vec<Probers> = probes.iter().map(|&probe| roster.probers(probe)).collect();
        println!("all: {:?}", begun.elapsed());
        let changed = roster.leave("weir-100").expect("it was here");
        let begun = std::time::Instant::now();
        let moved = probes
            .iter()
            .zip(&sets)
            .filter_map(|(&probe, set)| roster.probers_after(probe, set, changed))
            .count();
        println!("one that leaves: {:?}, {moved} sets moved", begun.elapsed());
        let changed = roster.join(member(100, 250)).expect("it was not here");
        let begun = std::time::Instant::now();
        let moved = probes
            .iter()
            .zip(&sets)
            .filter_map(|(&probe, set)| roster.probers_after(probe, set, changed))
            .count();
        println!("one that joins: {:?}, {moved} sets moved", begun.elapsed());
    }
}
