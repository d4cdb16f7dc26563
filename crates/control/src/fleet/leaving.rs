//! Servers that are about to be removed because their services need fewer. For each service, one member decides which
//! (`scaling::plan`). All members stop sending requests to them, and report how many they still have in flight there.
//!
//! A statement is valid for a few seconds and is repeated. So when the member that decides is gone, its servers either
//! come back or are taken over by the next one, and nothing has to be cleaned up.
//!
//! ```text
//! message  version (1)   row × 0..
//! row      kind (1)  in flight (4)  length (1)  service  length (1)  address, as text
//! ```
//!
//! Numbers are little-endian. Kinds: 0 gets requests again, 1 leaves, 2 the sender's requests in flight there, 3 the
//! sender can decide about the service (without an address).

use std::collections::HashMap;
use std::hash::Hash;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fleet::StartId;
use fleet::seal::PAYLOAD_MAX;
use model::{ByteReader, Moment};

/// How long a statement is valid.
const FRESH: Duration = Duration::from_secs(15);
/// How often it is repeated: two repetitions may be lost.
const REPEAT: Duration = Duration::from_secs(4);

const VERSION: u8 = 1;
const MESSAGE_MAX_BYTES: usize = 1_100;
/// Maximum number of decisions, of reported numbers, and of offers of other members; further ones are ignored.
const OTHERS_MAX: usize = 50_000;

// The kind and the receiver's start come before a message.
const _: () = assert!(MESSAGE_MAX_BYTES < PAYLOAD_MAX - StartId::BYTES);

/// The name of a member.
type Name = Arc<str>;

/// A server of a service.
type Server = (Arc<str>, SocketAddr);

/// What a member states about a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Said {
    /// It gets requests again.
    Back,
    /// It leaves.
    Leaves,
    /// The member's requests in flight there.
    InFlight(u32),
    /// The member can decide about the service, whatever the server.
    CanDecide,
}

/// In place of an address, where there is none.
const NO_ADDRESS: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);

/// The servers that leave, shared with the other members.
#[derive(Debug, Default)]
pub struct Leaving {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// There is a fleet.
    is_fleet: bool,
    /// The configuration names other members.
    expects_others: bool,
    /// This member and the others; `None`: this process is no member now.
    members: Option<(Name, HashMap<StartId, Name>)>,
    own: HashMap<Server, (Moment, Said)>,
    send_at: Moment,
    /// The latest decision about each server, of any member.
    decided: HashMap<Server, (Moment, bool)>,
    /// Requests in flight at other members.
    in_flight: HashMap<(StartId, Server), (Moment, u32)>,
    /// Which other members can decide about services.
    offers: HashMap<(StartId, Arc<str>), Moment>,
}

impl Leaving {
    /// Sets whether the configuration names a fleet.
    pub(crate) fn set_fleet(&self, is_fleet: bool) {
        self.state().is_fleet = is_fleet;
    }

    /// Sets whether the configuration names other members.
    pub(super) fn expect_others(&self, does: bool) {
        self.state().expects_others = does;
    }

    /// Sets who the members are: this one's name, and the others.
    pub(super) fn set_members(&self, members: Option<(Name, HashMap<StartId, Name>)>) {
        let mut state = self.state();
        if let Some((_, others)) = &members {
            state.in_flight.retain(|(member, _), _| others.contains_key(member));
            state.offers.retain(|(member, _), _| others.contains_key(member));
        }
        state.members = members;
    }

    /// States that this process can decide about a service.
    pub fn offer(&self, service: &Arc<str>, now: Moment) {
        let mut state = self.state();
        if state.is_fleet {
            state.own.insert((Arc::clone(service), NO_ADDRESS), (now, Said::CanDecide));
        }
    }

    /// Returns whether this process decides which servers of a service leave: it is alone, or of all members that can,
    /// the highest draw for this service is its own (rendezvous hashing, Thaler and Ravishankar 1998). Few services
    /// change hands when a member joins, and none when one is restarted.
    pub fn decides(&self, service: &Arc<str>, now: Moment) -> bool {
        let state = self.state();
        let Some((own, others)) = &state.members else { return !state.is_fleet };
        let own = (draw(own, service), &**own);
        others.iter().all(|(start, name)| {
            let offer = state.offers.get(&(*start, Arc::clone(service)));
            let can = offer.is_some_and(|at| now.since(*at) <= FRESH);
            !can || (draw(name, service), &**name) < own
        })
    }

    /// Returns whether servers may be removed: the load of the others is known. A member that the configuration sends
    /// to others and that finds none may be cut off from them.
    pub fn may_shrink(&self) -> bool {
        let state = self.state();
        let is_alone = state.members.as_ref().is_none_or(|(_, others)| others.is_empty());
        !(state.is_fleet && state.expects_others && is_alone)
    }

    /// Says that a server leaves, or gets requests again.
    pub fn decide(&self, service: &Arc<str>, address: SocketAddr, leaves: bool, now: Moment) {
        let mut state = self.state();
        let said = if leaves { Said::Leaves } else { Said::Back };
        state.own.insert((Arc::clone(service), address), (now, said));
        state.send_at = Moment::ZERO;
    }

    /// Repeats that a server leaves, while that is so.
    pub fn confirm(&self, service: &Arc<str>, address: SocketAddr, now: Moment) {
        self.state().own.insert((Arc::clone(service), address), (now, Said::Leaves));
    }

    /// Says how many requests this member has in flight at a server that leaves.
    pub fn report(&self, service: &Arc<str>, address: SocketAddr, in_flight: u32, now: Moment) {
        let mut state = self.state();
        state.own.insert((Arc::clone(service), address), (now, Said::InFlight(in_flight)));
    }

    /// Returns what another member has decided about a server lately: whether it leaves.
    pub fn decision(&self, service: &Arc<str>, address: SocketAddr, now: Moment) -> bool {
        let state = self.state();
        let decided = state.decided.get(&(Arc::clone(service), address));
        decided.is_some_and(|(at, leaves)| *leaves && now.since(*at) <= FRESH)
    }

    /// Returns the requests in flight at a server that leaves, of all other members; `None`: one of them has not said
    /// lately.
    pub fn in_flight_of_others(
        &self,
        service: &Arc<str>,
        address: SocketAddr,
        now: Moment,
    ) -> Option<u64> {
        let state = self.state();
        let Some((_, others)) = &state.members else { return Some(0) };
        let server = (Arc::clone(service), address);
        let of = |member: &StartId| -> Option<u64> {
            let (at, count) = state.in_flight.get(&(*member, server.clone()))?;
            (now.since(*at) <= FRESH).then_some(u64::from(*count))
        };
        others.keys().map(of).sum()
    }

    /// Returns messages with what this member has to say, if it is time.
    pub(super) fn take(&self, now: Moment) -> Vec<Vec<u8>> {
        let mut state = self.state();
        if now < state.send_at {
            return Vec::new();
        }
        state.send_at = now + REPEAT;
        state.own.retain(|_, (at, _)| now.since(*at) <= FRESH);
        state.decided.retain(|_, (at, _)| now.since(*at) <= FRESH);
        state.in_flight.retain(|_, (at, _)| now.since(*at) <= FRESH);
        state.offers.retain(|_, at| now.since(*at) <= FRESH);
        write(state.own.iter().map(|(server, (_, said))| (server, *said)))
    }

    /// Takes a message of a member. Returns whether it is one.
    pub(super) fn on_message(&self, from: StartId, bytes: &[u8], now: Moment) -> bool {
        let Some(rows) = read(bytes) else { return false };
        let mut state = self.state();
        let State { decided, in_flight, offers, .. } = &mut *state;
        for (server, said) in rows {
            match said {
                Said::Back => put(decided, server, (now, false)),
                Said::Leaves => put(decided, server, (now, true)),
                Said::InFlight(count) => put(in_flight, (from, server), (now, count)),
                Said::CanDecide => put(offers, (from, server.0), now),
            }
        }
        true
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sets a value, unless it is a further one and there are too many.
fn put<K: Eq + Hash, V>(map: &mut HashMap<K, V>, key: K, value: V) {
    if map.len() < OTHERS_MAX || map.contains_key(&key) {
        map.insert(key, value);
    }
}

/// Returns the draw of a member for a service: the same in every build, since the members must agree.
fn draw(member: &str, service: &str) -> u64 {
    let hash = decide::hash_key(&[member.as_bytes(), b"\0", service.as_bytes()].concat());
    // The last bytes must change all bits (the finalizer of SplitMix64, Steele, Lea and Flood 2014).
    let hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}

fn write<'a>(rows: impl Iterator<Item = (&'a Server, Said)>) -> Vec<Vec<u8>> {
    let mut messages: Vec<Vec<u8>> = Vec::new();
    for ((service, address), said) in rows {
        let address = address.to_string();
        let (Ok(name), Ok(text)) = (u8::try_from(service.len()), u8::try_from(address.len()))
        else {
            continue;
        };
        let (kind, count) = match said {
            Said::Back => (0, 0),
            Said::Leaves => (1, 0),
            Said::InFlight(count) => (2, count),
            Said::CanDecide => (3, 0),
        };
        let mut row = vec![kind];
        row.extend(u32::to_le_bytes(count));
        row.push(name);
        row.extend(service.as_bytes());
        row.push(text);
        row.extend(address.as_bytes());
        match messages.last_mut().filter(|last| last.len() + row.len() <= MESSAGE_MAX_BYTES) {
            Some(message) => message.extend(row),
            None => messages.push([&[VERSION], &row[..]].concat()),
        }
    }
    messages
}

/// Returns the rows of a message; `None`: it is none, and nothing of it counts.
fn read(bytes: &[u8]) -> Option<Vec<(Server, Said)>> {
    let mut from = ByteReader::new(bytes);
    if from.u8()? != VERSION || bytes.len() > MESSAGE_MAX_BYTES {
        return None;
    }
    let mut rows = Vec::new();
    while !from.is_empty() {
        let (kind, count) = (from.u8()?, from.u32()?);
        let said = match (kind, count) {
            (0, 0) => Said::Back,
            (1, 0) => Said::Leaves,
            (2, count) => Said::InFlight(count),
            (3, 0) => Said::CanDecide,
            _ => return None,
        };
        let service = text(&mut from)?;
        let address = text(&mut from)?.parse().ok()?;
        rows.push(((Arc::from(service), address), said));
    }
    Some(rows)
}

fn text<'a>(from: &mut ByteReader<'a>) -> Option<&'a str> {
    let length = from.u8()?;
    str::from_utf8(from.slice(length.into())?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: StartId = StartId([1; StartId::BYTES]);
    const TWO: StartId = StartId([2; StartId::BYTES]);

    fn at(seconds: u64) -> Moment {
        Moment::ZERO + Duration::from_secs(seconds)
    }

    fn address(port: u16) -> SocketAddr {
        SocketAddr::from(([10, 0, 0, 1], port))
    }

    /// What two members that are alone in a fleet know.
    fn pair() -> [Leaving; 2] {
        let pair = [Leaving::default(), Leaving::default()];
        for (leaving, own, other) in [(&pair[0], ONE, TWO), (&pair[1], TWO, ONE)] {
            leaving.set_fleet(true);
            leaving.set_members(Some((
                own.to_string().into(),
                [(other, other.to_string().into())].into(),
            )));
        }
        pair
    }

    /// Passes on what a member has to say.
    fn tell(from: (&Leaving, StartId), to: &Leaving, now: Moment) {
        for message in from.0.take(now) {
            assert!(to.on_message(from.1, &message, now));
        }
    }

    #[test]
    fn one_member_decides_about_each_service() {
        let services: Vec<Arc<str>> = (0..100).map(|n| n.to_string().into()).collect();
        let alone = Leaving::default();
        assert!(alone.decides(&services[0], at(0)) && alone.may_shrink());
        alone.set_fleet(true);
        assert!(!alone.decides(&services[0], at(0)), "it is no member yet");
        let [one, two] = pair();
        for service in &services {
            two.offer(service, at(9));
        }
        tell((&two, TWO), &one, at(9));
        let decides = |leaving: &Leaving| -> Vec<bool> {
            services.iter().map(|service| leaving.decides(service, at(10))).collect()
        };
        // The second does not know that the first can.
        assert!(decides(&two).iter().all(|decides| *decides));
        for service in &services {
            one.offer(service, at(10));
        }
        tell((&one, ONE), &two, at(10));
        let (of_one, of_two) = (decides(&one), decides(&two));
        assert!(of_one.iter().zip(&of_two).all(|(one, two)| one != two));
        let share = of_one.iter().filter(|decides| **decides).count();
        assert!((30..=70).contains(&share), "{share}");
        let service = &services[of_two.iter().position(|decides| *decides).unwrap()];
        assert!(!one.decides(service, at(24)));
        assert!(one.decides(service, at(25)), "the second has not repeated its offer");
    }

    #[test]
    fn a_member_that_misses_the_others_removes_no_server() {
        let [one, _] = pair();
        one.expect_others(true);
        assert!(one.may_shrink());
        one.set_members(Some(("one".into(), HashMap::new())));
        assert!(!one.may_shrink());
        one.expect_others(false);
        assert!(one.may_shrink());
    }

    #[test]
    fn the_others_follow_and_say_what_is_in_flight() {
        let [one, two] = pair();
        let service: Arc<str> = "a".into();
        one.decide(&service, address(1), true, at(100));
        assert_eq!(one.in_flight_of_others(&service, address(1), at(100)), None);
        for message in one.take(at(100)) {
            assert!(two.on_message(ONE, &message, at(100)));
        }
        assert!(one.take(at(101)).is_empty(), "it has just been said");
        assert!(two.decision(&service, address(1), at(115)));
        assert!(!two.decision(&service, address(1), at(116)), "it was not repeated");
        assert!(!two.decision(&service, address(2), at(100)));
        two.report(&service, address(1), 7, at(101));
        for message in two.take(at(101)) {
            assert!(one.on_message(TWO, &message, at(101)));
        }
        assert_eq!(one.in_flight_of_others(&service, address(1), at(116)), Some(7));
        assert_eq!(one.in_flight_of_others(&service, address(1), at(117)), None);
        one.decide(&service, address(1), false, at(102));
        for message in one.take(at(102)) {
            assert!(two.on_message(ONE, &message, at(102)));
        }
        assert!(!two.decision(&service, address(1), at(102)));
    }

    #[test]
    fn a_message_that_is_none_changes_nothing() {
        let server: Server = ("a".into(), "[2001:db8::1]:443".parse().unwrap());
        let messages = write([(&server, Said::InFlight(300))].into_iter());
        let good = messages[0].clone();
        assert_eq!(read(&good), Some(vec![(server.clone(), Said::InFlight(300))]));
        for end in 0..good.len() {
            assert!(end == 1 || read(&good[..end]).is_none(), "{end}");
        }
        for (index, byte) in [(0, 2), (1, 4), (1, 3), (1, 0), (6, 2), (9, b'x')] {
            let mut wrong = good.clone();
            wrong[index] = byte;
            assert_eq!(read(&wrong), None, "{index}");
        }
        let rows: Vec<(Server, Said)> =
            (0..200).map(|port| (("service".into(), address(port)), Said::Leaves)).collect();
        let messages = write(rows.iter().map(|(server, said)| (server, *said)));
        assert!(messages.len() > 1 && messages.iter().all(|it| it.len() <= MESSAGE_MAX_BYTES));
        assert_eq!(messages.iter().flat_map(|it| read(it).unwrap()).count(), 200);
    }
}
