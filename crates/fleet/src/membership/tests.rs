//! One member's view, and hostile or outdated messages. Whole fleets are in `tests/sim`.

use std::sync::Arc;

use super::*;

fn member(name: &str, start: u8) -> Member {
    let port = 7_000 + u16::from(name.as_bytes()[0]);
    Member {
        name: Arc::from(name),
        address: SocketAddr::from(([127, 0, 0, 1], port)),
        zone: Some(Arc::from("zone-1")),
        host: Arc::from("host"),
        start: StartId([start; StartId::BYTES]),
        version: 1,
    }
}

fn membership(name: &str, start: u8) -> Membership {
    Membership::new(member(name, start), 1_000 + u64::from(start), u64::from(start), Moment::ZERO)
        .unwrap()
}

/// Returns what was sent, without the byte of the kind.
fn sent(from: &mut Membership) -> Vec<(SocketAddr, Vec<u8>)> {
    std::iter::from_fn(|| from.next_output())
        .filter_map(|output| match output {
            Output::Send { to, payload } => Some((to, payload[1..].to_vec())),
            Output::Joined(_) | Output::Left(_) => None,
        })
        .collect()
}

/// Delivers between members until nothing is sent, and returns all messages.
fn exchange(members: &mut [&mut Membership], now: Moment) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    loop {
        let messages: Vec<_> = members.iter_mut().flat_map(|one| sent(one)).collect();
        if messages.is_empty() {
            return all;
        }
        for (to, bytes) in messages {
            for one in members.iter_mut().filter(|one| one.own().address == to) {
                one.on_datagram(&bytes, now);
            }
            all.push(bytes);
        }
    }
}

fn names(of: &Membership) -> Vec<&str> {
    of.members().map(|member| &*member.name).collect()
}

/// Runs the timers of members and delivers what they send.
fn run(members: &mut [&mut Membership], from: Moment, time: Duration) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    let mut now = from;
    while now < from + time {
        now = now + Duration::from_millis(50);
        for one in members.iter_mut() {
            one.on_timer(now);
        }
        all.extend(exchange(members, now));
    }
    all
}

#[test]
fn members_find_each_other_by_an_address() {
    let (mut a, mut b) = (membership("a", 1), membership("b", 2));
    a.join(&[b.own().address], Moment::ZERO);
    let mut outputs: Vec<Output> = std::iter::from_fn(|| a.next_output()).collect();
    let Some(Output::Send { to, payload }) = outputs.pop() else { panic!("no announcement") };
    assert_eq!((to, outputs.len()), (b.own().address, 0));
    b.on_datagram(&payload[1..], Moment::ZERO);
    assert_eq!(b.next_output(), Some(Output::Joined(member("a", 1))));
    exchange(&mut [&mut a, &mut b], Moment::ZERO);
    assert_eq!((names(&a), names(&b)), (vec!["b"], vec!["a"]));
    assert_eq!(a.members().next(), Some(&member("b", 2)), "all of a member arrives");
}

#[test]
fn a_restart_replaces_the_start_before_and_its_old_messages_change_nothing() {
    let (mut a, mut b) = (membership("a", 1), membership("b", 2));
    a.join(&[b.own().address], Moment::ZERO);
    let mut old = exchange(&mut [&mut a, &mut b], Moment::ZERO);
    old.extend(run(&mut [&mut a, &mut b], Moment::ZERO, Duration::from_secs(5)));
    let now = Moment::from_millis(6_000);
    let mut restarted = membership("a", 3);
    restarted.join(&[b.own().address], now);
    exchange(&mut [&mut restarted], now);
    restarted.join(&[b.own().address], now);
    for (_, bytes) in sent(&mut restarted) {
        b.on_datagram(&bytes, now);
    }
    let changes: Vec<Output> = std::iter::from_fn(|| b.next_output())
        .filter(|output| !matches!(output, Output::Send { .. }))
        .collect();
    assert_eq!(changes, [Output::Left(member("a", 1)), Output::Joined(member("a", 3))]);
    for bytes in &old {
        b.on_datagram(bytes, now);
    }
    assert_eq!(b.members().next().map(|member| member.start), Some(StartId([3; 16])));
    let changes =
        std::iter::from_fn(|| b.next_output()).any(|output| !matches!(output, Output::Send { .. }));
    assert!(!changes, "an old message changed the list");
}

#[test]
fn old_messages_to_a_member_that_knows_nothing_yet_are_corrected_by_the_sender() {
    let (mut a, mut b) = (membership("a", 1), membership("b", 2));
    a.join(&[b.own().address], Moment::ZERO);
    let mut old = exchange(&mut [&mut a, &mut b], Moment::ZERO);
    old.extend(run(&mut [&mut a, &mut b], Moment::ZERO, Duration::from_secs(5)));
    // Both restart, and all that was ever sent arrives again at b before a is heard.
    let now = Moment::from_millis(6_000);
    let (mut a, mut b) = (membership("a", 3), membership("b", 4));
    for bytes in &old {
        b.on_datagram(bytes, now);
    }
    sent(&mut b);
    assert!(b.members().len() <= 1);
    a.join(&[b.own().address], now);
    exchange(&mut [&mut a, &mut b], now);
    assert_eq!(b.members().next().map(|member| member.start), Some(StartId([3; 16])));
}

#[test]
fn two_members_that_hold_each_other_down_do_not_tell_each_other_without_end() {
    let (mut a, mut b) = (membership("a", 1), membership("b", 2));
    a.join(&[b.own().address], Moment::ZERO);
    run(&mut [&mut a, &mut b], Moment::ZERO, Duration::from_secs(5));
    // What they send each other is lost for a while.
    let (from, time) = (Moment::from_millis(5_000), Duration::from_secs(20));
    run(&mut [&mut a], from, time);
    run(&mut [&mut b], from, time);
    assert!(names(&a).is_empty() && names(&b).is_empty());
    let now = from + time;
    let told = turn_undead(&a.own, &b.own);
    b.on_datagram(&told, now);
    let mut rounds = 0;
    loop {
        let messages = [sent(&mut a), sent(&mut b)].concat();
        if messages.is_empty() {
            break;
        }
        for (to, bytes) in messages {
            if to == a.own().address {
                a.on_datagram(&bytes, now);
            } else {
                b.on_datagram(&bytes, now);
            }
        }
        rounds += 1;
        assert!(rounds < 10, "no end");
    }
    run(&mut [&mut a, &mut b], now, Duration::from_secs(5));
    assert_eq!((names(&a), names(&b)), (vec!["b"], vec!["a"]));
}

#[test]
fn a_member_that_leaves_is_gone_and_silent() {
    let (mut a, mut b) = (membership("a", 1), membership("b", 2));
    a.join(&[b.own().address], Moment::ZERO);
    exchange(&mut [&mut a, &mut b], Moment::ZERO);
    a.leave(Moment::ZERO);
    for (_, bytes) in sent(&mut a) {
        b.on_datagram(&bytes, Moment::ZERO);
    }
    assert_eq!((b.members().len(), a.next_due()), (0, None));
    let late = run(&mut [&mut a, &mut b], Moment::ZERO, Duration::from_secs(20));
    assert_eq!((b.members().len(), a.next_output()), (0, None));
    assert!(late.len() < 100, "{} messages", late.len());
}

#[test]
fn hostile_bytes_are_counted_and_never_panic() {
    let (mut a, mut b, mut c) = (membership("a", 1), membership("b", 2), membership("c", 3));
    let addresses = [a.own().address, b.own().address];
    c.join(&addresses, Moment::ZERO);
    b.join(&addresses, Moment::ZERO);
    let mut real = exchange(&mut [&mut a, &mut b, &mut c], Moment::ZERO);
    real.extend(run(&mut [&mut a, &mut b, &mut c], Moment::ZERO, Duration::from_secs(10)));
    let mut rng = fastrand::Rng::with_seed(5);
    let mut now = Moment::from_millis(10_000);
    for round in 0..60_000_u32 {
        let mut bytes = real[rng.usize(..real.len())].clone();
        for _ in 0..rng.usize(1..6) {
            let at = rng.usize(..bytes.len());
            bytes[at] = rng.u8(..);
        }
        match rng.u8(..4) {
            0 => bytes.truncate(rng.usize(..bytes.len())),
            1 => rng.fill(&mut bytes),
            _ => {}
        }
        now = now + Duration::from_millis(u64::from(rng.u8(..8)));
        a.on_datagram(&bytes, now);
        if round % 64 == 0 {
            a.on_timer(now);
        }
        while let Some(output) = a.next_output() {
            let Output::Send { payload, .. } = output else { continue };
            assert!(payload.len() <= crate::seal::PAYLOAD_MAX);
        }
    }
    assert!(a.counts().malformed > 1_000);
    assert!(a.members().len() <= crate::wire::MEMBERS_MAX);
}

#[test]
fn texts_and_generations_out_of_bounds_are_refused() {
    let refused = |change: fn(&mut Member), generation| {
        let mut own = member("a", 1);
        change(&mut own);
        Membership::new(own, generation, 1, Moment::ZERO).err()
    };
    assert_eq!(refused(|_| {}, 1), None);
    assert_eq!(refused(|own| own.name = Arc::from(""), 1), Some(MemberRefused::Text));
    assert_eq!(refused(|own| own.host = Arc::from("x".repeat(65)), 1), Some(MemberRefused::Text));
    assert_eq!(refused(|own| own.name = Arc::from("a\nb"), 1), Some(MemberRefused::Text));
    assert_eq!(refused(|own| own.zone = Some(Arc::from("")), 1), Some(MemberRefused::Text));
    assert_eq!(refused(|_| {}, 1 << 62), Some(MemberRefused::Generation));
}

#[test]
fn the_longest_texts_fit_every_message() {
    let long = |letter: &str, start| {
        let mut own = member(letter, start);
        own.name = Arc::from(letter.repeat(TEXT_BYTES_MAX));
        own.host = Arc::from("h".repeat(TEXT_BYTES_MAX));
        own.zone = Some(Arc::from("z".repeat(TEXT_BYTES_MAX)));
        Membership::new(own, 1, u64::from(start), Moment::ZERO).unwrap()
    };
    let mut all: Vec<Membership> = (0..12).map(|n| long(&"abcdefghijkl"[n..=n], n as u8)).collect();
    let first = all[0].own().address;
    for one in &mut all {
        one.join(&[first], Moment::ZERO);
    }
    let mut all: Vec<&mut Membership> = all.iter_mut().collect();
    let messages = run(&mut all, Moment::ZERO, Duration::from_secs(15));
    assert!(messages.iter().all(|bytes| bytes.len() < crate::seal::PAYLOAD_MAX));
    assert!(all.iter().all(|one| one.members().len() == 11), "{:?}", all[5]);
}
