//! What the simulation cannot arrange, or would show only by chance.

use super::*;

const MAX: u32 = 6;

/// Slots of which some are in use and some are wanted.
#[derive(Default)]
struct Worker {
    allowed: u32,
    in_flight: u32,
    waiting: u32,
}

impl Slots for Worker {
    fn usage(&mut self, _: usize) -> Usage {
        Usage { allowed: self.allowed, in_flight: self.in_flight, waiting: self.waiting }
    }

    fn allow(&mut self, _: usize, allowed: u32) -> u32 {
        self.allowed = allowed;
        self.in_flight
    }
}

fn at(ms: u64) -> Moment {
    Moment::from_millis(ms)
}

fn member(number: u8, start: u8) -> MemberAt {
    MemberAt { address: ([10, 0, 0, number], 7946).into(), start: [start; 16] }
}

fn lending(own: u8, others: &[MemberAt], listed: &[u8]) -> Lending {
    let mut lending = Lending::new(member(own, own), at(0));
    lending.set_listed(listed.iter().map(|one| member(*one, 0).address).collect(), at(0));
    lending.set_live(others, at(0));
    let request_max = Duration::from_secs(1);
    lending.set_servers(&[ServerLimit { key: 7, max: MAX, request_max }], at(0));
    lending
}

/// Lets two members talk for some seconds.
fn talk(both: [(&mut Lending, &mut Worker); 2], from_ms: u64, to_ms: u64) {
    let [(one, worker), (other, other_worker)] = both;
    for ms in (from_ms..to_ms).step_by(10) {
        for (_, bytes) in one.turn(worker, at(ms)) {
            other.on_message(one.own, &bytes, at(ms)).expect("a message");
        }
        for (_, bytes) in other.turn(other_worker, at(ms)) {
            one.on_message(other.own, &bytes, at(ms)).expect("a message");
        }
    }
}

#[test]
fn a_member_that_waits_borrows_and_one_that_needs_its_slots_gets_them_back() {
    let (mut one, mut other) =
        (lending(1, &[member(2, 2)], &[1, 2]), lending(2, &[member(1, 1)], &[1, 2]));
    let (mut worker, mut idle) = (Worker::default(), Worker::default());
    talk([(&mut one, &mut worker), (&mut other, &mut idle)], 0, 500);
    assert_eq!((worker.allowed, idle.allowed), (3, 3));
    assert!(one.is_settled() && other.is_settled());
    (worker.in_flight, worker.waiting) = (3, 5);
    talk([(&mut one, &mut worker), (&mut other, &mut idle)], 500, 1_000);
    assert_eq!((worker.allowed, idle.allowed), (6, 0));
    assert_eq!(other.standing(0), Standing { share: 3, lent: 3, borrowed: 0 });
    (worker.in_flight, worker.waiting) = (6, 9);
    idle.waiting = 9;
    talk([(&mut one, &mut worker), (&mut other, &mut idle)], 1_000, 1_500);
    assert_eq!((worker.allowed, idle.allowed), (3, 0), "requests are still in flight");
    worker.in_flight = 4;
    talk([(&mut one, &mut worker), (&mut other, &mut idle)], 1_500, 2_000);
    assert_eq!((worker.allowed, idle.allowed), (3, 2));
}

#[test]
fn all_members_are_told_at_once_that_a_process_ends() {
    let others: Vec<MemberAt> = (2..9).map(|number| member(number, number)).collect();
    let mut lending = lending(1, &others, &[]);
    let mut worker = Worker::default();
    assert_eq!(lending.turn(&mut worker, at(0)).len(), 7);
    assert!(lending.turn(&mut worker, at(100)).is_empty());
    lending.end(Duration::from_secs(30), at(150));
    let told = lending.turn(&mut worker, at(150));
    assert_eq!(told.len(), 7);
    for (_, bytes) in told {
        assert_eq!(wire::read(&bytes).map(|message| message.ends_after_s), Ok(31));
    }
}

#[test]
fn without_servers_nothing_is_sent() {
    let mut one = Lending::new(member(1, 1), at(0));
    one.set_live(&[member(2, 2)], at(0));
    let mut worker = Worker::default();
    assert!((0..100).all(|n| one.turn(&mut worker, at(n * 250)).is_empty()));
    // Another member has some, and waits for an answer.
    let mut other = lending(2, &[member(1, 1)], &[]);
    let asks = other.turn(&mut worker, at(30_000));
    assert_eq!(asks.len(), 1);
    one.on_message(member(2, 2), &asks[0].1, at(30_000)).expect("a message");
    assert_eq!(one.turn(&mut worker, at(30_000)).len(), 1);
}

#[test]
fn of_two_processes_at_one_address_the_new_one_counts() {
    let starts =
        |lending: &Lending| lending.peers.values().map(|one| one.start[0]).collect::<Vec<_>>();
    let mut one = lending(1, &[member(2, 5)], &[]);
    // The old one is listed first or last while it is not yet known to have ended.
    for live in [[member(2, 5), member(2, 6)], [member(2, 6), member(2, 5)]] {
        one.set_live(&live, at(1_000));
        assert_eq!(starts(&one), [6]);
    }
    one.set_live(&[member(2, 6)], at(2_000));
    assert_eq!(starts(&one), [6]);
    // Both are new.
    let mut one = lending(1, &[member(2, 6), member(2, 5)], &[]);
    one.set_live(&[member(2, 6), member(2, 5)], at(1_000));
    assert_eq!(starts(&one), [6]);
    one.set_live(&[member(2, 5)], at(2_000));
    assert_eq!(starts(&one), [5]);
}

#[test]
fn a_member_that_does_not_answer_keeps_its_share_while_it_is_listed() {
    let has = |one: &Lending| one.agreement.wanted().contains(member(2, 0).address);
    let mut one = lending(1, &[member(2, 2)], &[1, 2]);
    one.set_live(&[], at(1_000));
    one.turn(&mut Worker::default(), at(9_999_000));
    assert!(has(&one));
    one.set_listed([].into(), at(9_999_000));
    one.turn(&mut Worker::default(), at(9_999_001));
    assert!(!has(&one));
    // It leaves the list first.
    let mut one = lending(1, &[member(2, 2)], &[1, 2]);
    one.set_listed([].into(), at(1_000));
    assert!(has(&one), "it answers");
    one.set_live(&[], at(2_000));
    one.turn(&mut Worker::default(), at(2_001));
    assert!(!has(&one));
    // It was never in the list.
    let mut one = lending(1, &[member(2, 2)], &[]);
    one.set_live(&[], at(1_000));
    one.turn(&mut Worker::default(), at(3_600_000));
    assert!(has(&one));
    one.turn(&mut Worker::default(), at(3_601_000));
    assert!(!has(&one));
}

#[test]
fn what_a_server_unknown_here_was_lent_is_given_back() {
    let mut lending = Lending::new(member(1, 1), at(0));
    lending.set_live(&[member(2, 2)], at(0));
    let row = Row { server: 9, lent: 2, ..Row::default() };
    let message = Message { number: 1, epoch: 1, rows: vec![row], ..Message::default() };
    let mut bytes = Vec::new();
    wire::write(&message, &mut bytes);
    lending.on_message(member(2, 2), &bytes, at(10)).expect("a message");
    let sent = lending.turn(&mut Worker::default(), at(10));
    let rows: Vec<Row> =
        sent.iter().flat_map(|(_, bytes)| wire::read(bytes).expect("a message").rows).collect();
    assert_eq!(rows, [Row { server: 9, given_back: 2, ..Row::default() }]);
}

#[test]
fn totals_go_on_where_one_member_has_forgotten_them() {
    let (mut one, mut other) =
        (lending(1, &[member(2, 2)], &[1, 2]), lending(2, &[member(1, 1)], &[1, 2]));
    let (mut worker, mut idle) = (Worker::default(), Worker::default());
    talk([(&mut one, &mut worker), (&mut other, &mut idle)], 0, 500);
    let mut now = 500;
    for forgets in 0..4 {
        for _ in 0..5 {
            (worker.in_flight, worker.waiting) = (3, 5);
            talk([(&mut one, &mut worker), (&mut other, &mut idle)], now, now + 500);
            assert_eq!((worker.allowed, idle.allowed), (6, 0), "{forgets} at {now} ms");
            (worker.in_flight, worker.waiting) = (0, 0);
            talk([(&mut one, &mut worker), (&mut other, &mut idle)], now + 500, now + 1_500);
            assert_eq!((worker.allowed, idle.allowed), (3, 3));
            now += 1_500;
        }
        let loser = if forgets % 2 == 0 { &mut one } else { &mut other };
        if forgets < 2 {
            loser.servers[0].loans.clear();
        } else {
            // The whole record of the other.
            let address = if forgets == 2 { member(2, 2) } else { member(1, 1) };
            loser.servers[0].loans.clear();
            loser.peers.insert(address.address, Peer::new(address.start, at(now)));
        }
    }
}
