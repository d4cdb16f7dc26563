//! Two or three members, one step at a time.

use super::*;

fn at(ms: u64) -> Moment {
    Moment::from_millis(ms)
}

fn peer(number: u8) -> Peer {
    Peer {
        name: format!("b{number}").into(),
        address: ([10, 0, 0, number], 7946).into(),
        start: [number; 16],
    }
}

fn ring(number: u8, others: &[u8]) -> Keyring {
    let mut ring = Keyring::new([number; 16], at(0));
    ring.set_live(others.iter().map(|other| peer(*other)), at(0));
    ring
}

/// `from` says what it has to `to`.
fn say(from: &mut Keyring, to: &mut Keyring, now: Moment) {
    from.pace = Pace::new(now);
    let message = from.turn(now).message.unwrap();
    to.on_message(from.own, &message, now).unwrap();
}

/// `to` fetches all that `from` has.
fn fetch(from: &Keyring, to: &mut Keyring, now: Moment) {
    assert_eq!(to.fetch(now).unwrap().start, from.own);
    to.fetched(from.own, from.iter(), now);
}

#[test]
fn one_alone_makes_a_key_after_its_start_and_the_next_before_it_ends() {
    let mut one = ring(1, &[]);
    assert!(!one.turn(at(2_999)).must_make);
    assert!(one.turn(at(3_000)).must_make);
    let first = one.make([7; 16], at(3_000));
    assert_eq!((one.seals(), first.generation), (Some(first), 1));
    assert_eq!(one.turn(at(3_500)), Turn::default());
    let next_at = at(3_000) + SEALS_MAX.saturating_sub(LEAD);
    assert!(one.turn(next_at).must_make);
    let second = one.make([6; 16], next_at);
    assert_eq!((one.seals(), second.generation), (Some(second), 2));
    one.turn(at(3_000) + OPENS_MAX);
    assert_eq!(one.iter().map(|key| key.name).collect::<Vec<_>>(), [second]);
}

#[test]
fn the_first_of_those_that_take_part_makes_the_key() {
    let (mut one, mut two) = (ring(1, &[2, 3]), ring(2, &[1, 3]));
    say(&mut one, &mut two, at(3_000));
    say(&mut two, &mut one, at(3_000));
    // The third has said nothing yet; later it does not take part.
    assert!(!one.turn(at(3_000)).must_make);
    assert!(one.turn(at(16_000)).must_make);
    assert!(!two.turn(at(16_000)).must_make);
    assert_eq!(one.state(at(16_000)).silent, ["b3".into()]);
}

/// Returns two members with the key that the first has made, the last moment at which it makes no other, and the key.
fn two_with_a_key() -> (Keyring, Keyring, Moment, KeyName) {
    let (mut one, mut two) = (ring(1, &[2]), ring(2, &[1]));
    say(&mut two, &mut one, at(3_000));
    assert!(one.turn(at(3_000)).must_make);
    let name = one.make([9; 16], at(3_000));
    say(&mut one, &mut two, at(3_100));
    fetch(&one, &mut two, at(3_200));
    assert_eq!(two.fetch(at(3_200)), None);
    say(&mut two, &mut one, at(3_300));
    (one, two, at(3_000) + SEALS_MAX.saturating_sub(LEAD), name)
}

#[test]
fn one_whose_keys_cannot_be_fetched_is_not_left_to_make_them() {
    let mut two = ring(2, &[1]);
    let name = KeyName { generation: 1, id: [9; 16] };
    two.on_message([1; 16], &wire::write([(name, Duration::ZERO)]), at(3_000)).unwrap();
    assert!(!two.turn(at(3_000)).must_make);
    for seconds in [3, 4, 6, 10, 18] {
        let now = at(seconds * 1_000);
        assert!(two.fetch(now).is_some(), "{seconds} s");
        assert!(!two.turn(now).must_make, "it is being asked");
        two.not_fetched([1; 16], now);
    }
    assert!(two.turn(at(18_000)).must_make);
}

#[test]
fn the_first_key_seals_at_once_where_it_is() {
    let (mut one, mut two) = (ring(1, &[2]), ring(2, &[1]));
    say(&mut two, &mut one, at(3_000));
    let name = one.make([9; 16], at(3_000));
    assert_eq!((one.seals(), two.seals()), (Some(name), None));
    say(&mut one, &mut two, at(3_100));
    assert_eq!(one.state(at(3_100)).behind, ["b2".into()]);
    fetch(&one, &mut two, at(3_200));
    assert_eq!(two.seals(), Some(name));
}

#[test]
fn a_further_key_seals_when_all_have_it() {
    let (mut one, mut two, end, first) = two_with_a_key();
    say(&mut two, &mut one, end);
    assert!(one.turn(end).must_make);
    let second = one.make([8; 16], end);
    assert_eq!(one.seals(), Some(first));
    say(&mut one, &mut two, end + Duration::from_millis(100));
    fetch(&one, &mut two, end + Duration::from_millis(200));
    // It knows that the other has it.
    assert_eq!(two.seals(), Some(second));
    say(&mut two, &mut one, end + Duration::from_millis(300));
    one.turn(end + Duration::from_millis(300));
    assert_eq!(one.seals(), Some(second));
    assert_eq!(one.state(end).behind, [] as [Arc<str>; 0]);
}

#[test]
fn one_that_does_not_fetch_is_waited_for_a_minute() {
    let (mut one, _, end, first) = two_with_a_key();
    one.set_live([peer(2), peer(3)], end);
    let old = wire::write([(first, SEALS_MAX.saturating_sub(LEAD))]);
    one.on_message([2; 16], &old, end).unwrap();
    one.on_message([3; 16], &old, end).unwrap();
    assert!(one.turn(end).must_make);
    let second = one.make([8; 16], end);
    let both = wire::write([(second, Duration::ZERO), (first, SEALS_MAX)]);
    for seconds in (1..60).step_by(5) {
        let now = end + Duration::from_secs(seconds);
        one.on_message([2; 16], &old, now).unwrap();
        one.on_message([3; 16], &both, now).unwrap();
        one.turn(now);
        assert_eq!(one.seals(), Some(first));
    }
    one.turn(end + WAIT_MAX);
    assert_eq!(one.seals(), Some(second));
}

#[test]
fn a_key_that_no_other_member_has_is_not_preferred() {
    let (mut one, _, end, first) = two_with_a_key();
    let old = wire::write([(first, SEALS_MAX.saturating_sub(LEAD))]);
    one.on_message([2; 16], &old, end).unwrap();
    assert!(one.turn(end).must_make);
    let second = one.make([8; 16], end);
    for minutes in 1..35 {
        let now = end + Duration::from_mins(minutes);
        one.on_message([2; 16], &old, now).unwrap();
        one.turn(now);
        assert_eq!(one.seals(), Some(first), "{minutes} min");
    }
    // Without the first one there is nothing better.
    let now = end + LEAD + GRACE;
    one.on_message([2; 16], &old, now).unwrap();
    one.turn(now);
    assert_eq!(one.seals(), Some(second));
}

#[test]
fn another_member_makes_a_key_that_is_overdue() {
    // The first one takes part, and never makes one.
    let mut two = ring(2, &[1]);
    let nothing = wire::write([]);
    for seconds in 3..300 {
        two.on_message([1; 16], &nothing, at(seconds * 1_000)).unwrap();
        assert!(!two.turn(at(seconds * 1_000)).must_make, "{seconds} s");
    }
    two.on_message([1; 16], &nothing, at(302_000)).unwrap();
    assert!(two.turn(at(302_000)).must_make);
    // The last one waits for four minutes more.
    let mut last = ring(255, &[1]);
    last.on_message([1; 16], &nothing, at(500_000)).unwrap();
    assert!(!last.turn(at(539_000)).must_make);
    assert!(last.turn(at(540_000)).must_make);
}

#[test]
fn a_key_that_was_dropped_for_its_age_does_not_come_back() {
    let (mut one, _, _, first) = two_with_a_key();
    let end = at(3_000) + OPENS_MAX;
    let second = one.make([8; 16], at(20_000_000));
    one.turn(end);
    assert_eq!((one.has(&first), one.has(&second)), (false, true));
    let young = Key { name: first, age: (Duration::from_mins(1), end) };
    one.fetched([2; 16], [young], end);
    assert!(!one.has(&first));
    // What others say about ages is not believed.
    let old = wire::write([(second, OPENS_MAX)]);
    one.on_message([2; 16], &old, end).unwrap();
    one.turn(end);
    assert!(one.has(&second));
}

#[test]
fn a_new_member_changes_nothing_for_the_others_and_seals_when_it_has_the_key() {
    let mut one = ring(1, &[]);
    one.turn(at(3_000));
    let name = one.make([9; 16], at(3_000));
    let mut new = Keyring::new([2; 16], at(100_000));
    new.set_live([peer(1)], at(100_000));
    one.set_live([peer(2)], at(100_000));
    let message = one.turn(at(100_000)).message.unwrap();
    assert_eq!(one.seals(), Some(name));
    assert_eq!(new.seals(), None);
    new.on_message([1; 16], &message, at(100_000)).unwrap();
    assert!(!new.turn(at(104_000)).must_make, "it can have the other's");
    fetch(&one, &mut new, at(104_000));
    assert_eq!(new.seals(), Some(name));
    assert_eq!(new.iter().next().unwrap().age(at(104_000)), Duration::from_secs(101));
}

#[test]
fn a_member_that_cannot_be_asked_is_asked_less_and_less_often() {
    let mut one = ring(3, &[1]);
    let name = KeyName { generation: 5, id: [9; 16] };
    one.on_message([1; 16], &wire::write([(name, Duration::ZERO)]), at(0)).unwrap();
    let mut asked = Vec::new();
    for second in 0..120 {
        one.on_message([1; 16], &wire::write([(name, Duration::ZERO)]), at(second * 1_000))
            .unwrap();
        if one.fetch(at(second * 1_000)).is_some() {
            asked.push(second);
            // It answers once without having it.
            if second == 0 {
                one.fetched([1; 16], [], at(0));
            } else {
                one.not_fetched([1; 16], at(second * 1_000));
            }
        }
    }
    assert_eq!(asked, [0, 1, 3, 7, 15, 31, 61, 91]);
}

#[test]
fn what_others_say_is_bounded() {
    let mut one = ring(1, &[2]);
    let keys = |from: u8| {
        (0..KEYS_MAX as u8).map(move |n| {
            let name = KeyName { generation: u64::from(from + n), id: [n; 16] };
            Key { name, age: (Duration::ZERO, at(0)) }
        })
    };
    one.fetched([2; 16], keys(1), at(0));
    one.fetched([2; 16], keys(101), at(0));
    assert_eq!(one.iter().count(), KEYS_MAX);
    assert!(one.iter().all(|key| key.name.generation > 100));
    for generation in [2_000, GENERATION_MAX, GENERATION_MAX + 1] {
        let far = KeyName { generation, id: [9; 16] };
        one.fetched([2; 16], [Key { name: far, age: (Duration::ZERO, at(0)) }], at(0));
        assert!(!one.has(&far), "{generation}");
    }
    let old = KeyName { generation: 200, id: [9; 16] };
    one.fetched([2; 16], [Key { name: old, age: (OPENS_MAX, at(0)) }], at(0));
    assert!(!one.has(&old));
}
