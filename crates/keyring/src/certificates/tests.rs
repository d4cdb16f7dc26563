//! What a member decides, message by message.

use super::*;

const ID: CertificateId = CertificateId([7; 16]);
const OTHER_ID: CertificateId = CertificateId([8; 16]);

fn at(s: u64) -> Moment {
    Moment::from_millis(1_000_000 + s * 1_000)
}

fn peer(n: u8) -> Peer {
    Peer { name: format!("b{n}").into(), address: ([10, 0, 0, n], 7946).into(), start: [n; 16] }
}

fn version(n: u8) -> CertificateVersion {
    CertificateVersion { not_before_s: n.into(), not_after_s: 1_000, digest: [n; 16] }
}

fn catalogue(digest: u8, entries: &[(CertificateId, Option<CertificateVersion>)]) -> Catalogue {
    Catalogue { digest: [digest; 16], entries: entries.iter().copied().collect() }
}

/// Member 5, which wants the certificate, among members with these numbers.
fn member(others: &[u8]) -> Certificates {
    let mut one = Certificates::new([5; 16], at(0));
    one.set_catalogue(catalogue(1, &[(ID, None)]), at(0));
    one.set_live(others.iter().map(|n| peer(*n)), at(0));
    one
}

fn said(catalogue: u8) -> Message {
    Message {
        is_unable: false,
        is_ordering: false,
        catalogue: [catalogue; 16],
        challenges: 0,
        answers: Vec::new(),
    }
}

fn hear(one: &mut Certificates, from: u8, message: &Message, s: u64) {
    one.on_message([from; 16], &wire::write(message), at(s)).unwrap();
}

fn other(n: u8) -> CertificateOwner {
    CertificateOwner::Other(peer(n).name)
}

#[test]
fn without_others_a_member_orders_all_it_wants_after_a_moment() {
    let one = member(&[]);
    assert_eq!(one.owner(&ID, at(2)), CertificateOwner::Unknown);
    assert_eq!(one.owner(&ID, at(3)), CertificateOwner::Own);
    assert_eq!(one.owner(&OTHER_ID, at(0)), CertificateOwner::Own, "not shared");
}

#[test]
fn the_member_with_the_lowest_start_orders() {
    let mut one = member(&[3, 9]);
    hear(&mut one, 9, &said(1), 1);
    assert_eq!(one.owner(&ID, at(4)), CertificateOwner::Unknown, "the other one has said nothing");
    hear(&mut one, 3, &said(2), 5);
    assert_eq!(one.owner(&ID, at(5)), CertificateOwner::Unknown, "what it wants is not known");
    assert_eq!(one.fetch(at(5)), Some(peer(3)));
    assert_eq!(one.fetch(at(5)), None, "it is being asked, and the other one's catalogue is known");
    let wants = |id| Fetched { catalogue: catalogue(2, &[(id, None)]), ..Fetched::default() };
    one.fetched([3; 16], wants(OTHER_ID), at(5));
    assert_eq!(one.owner(&ID, at(5)), CertificateOwner::Own);
    hear(&mut one, 3, &said(1), 6);
    assert_eq!(one.owner(&ID, at(6)), other(3), "it has been reconfigured");
    hear(&mut one, 3, &said(2), 6);
    assert_eq!(
        one.owner(&ID, at(6)),
        other(3),
        "it has a new certificate, which is not fetched yet"
    );
    // It is gone, and does not come back as a member without a message.
    one.set_live([peer(9)], at(7));
    assert_eq!(one.owner(&ID, at(7)), CertificateOwner::Own);
}

#[test]
fn members_that_do_not_share_or_cannot_be_asked_are_skipped() {
    let mut one = member(&[3, 4]);
    hear(&mut one, 4, &said(2), 1);
    for s in [1, 2, 4, 8, 16] {
        assert_eq!(one.owner(&ID, at(s)), CertificateOwner::Unknown, "3 may be slow");
        assert_eq!(one.fetch(at(s)), Some(peer(4)), "after {s} s");
        one.not_fetched([4; 16], at(s));
    }
    assert_eq!(one.owner(&ID, at(16)), CertificateOwner::Own);
    hear(&mut one, 4, &said(1), 30);
    assert_eq!(one.owner(&ID, at(30)), CertificateOwner::Own, "its catalogue is known by chance");
    assert_eq!(one.fetch(at(30)), None);
    assert_eq!(one.fetch(at(32)), Some(peer(4)), "it is asked again all the same");
    let own = one.catalogue().clone();
    one.fetched([4; 16], Fetched { catalogue: own, ..Fetched::default() }, at(32));
    assert_eq!(one.owner(&ID, at(32)), other(4));
}

#[test]
fn what_another_member_has_is_fetched_before_anything_is_ordered() {
    let mut one = member(&[9]);
    hear(&mut one, 9, &said(1), 1);
    assert_eq!(one.owner(&ID, at(3)), CertificateOwner::Own);
    // It has obtained the certificate: first its catalogue is unknown, then the certificate has not come.
    hear(&mut one, 9, &said(2), 4);
    assert_eq!(one.owner(&ID, at(4)), CertificateOwner::Unknown);
    assert_eq!(one.fetch(at(4)), Some(peer(9)));
    let has = catalogue(2, &[(ID, Some(version(1)))]);
    let fetched = |received: &[_]| Fetched {
        catalogue: has.clone(),
        received: received.to_vec(),
        ..Fetched::default()
    };
    one.fetched([9; 16], fetched(&[]), at(4));
    assert_eq!(one.owner(&ID, at(4)), CertificateOwner::Unknown);
    one.fetched([9; 16], fetched(&[(ID, version(1))]), at(5));
    assert_eq!(one.owner(&ID, at(5)), CertificateOwner::Own, "it is renewed here");
}

#[test]
fn a_failed_fetch_is_tried_again_until_one_works_and_empty_promises_end_in_skipping() {
    let mut one = member(&[3]);
    hear(&mut one, 3, &Message { challenges: 7, ..said(1) }, 1);
    assert_eq!(one.fetch(at(1)), Some(peer(3)));
    one.not_fetched([3; 16], at(1));
    // Its order has ended, and it has nothing new: the failure would last for weeks.
    hear(&mut one, 3, &said(1), 2);
    assert_eq!(one.fetch(at(2)), Some(peer(3)));
    let own = one.catalogue().clone();
    one.fetched([3; 16], Fetched { catalogue: own, ..Fetched::default() }, at(2));
    assert!(!one.has_failed(&[3; 16], at(2)));
    assert_eq!(one.fetch(at(9)), None);

    // It has a certificate, as it says, and does not give it.
    hear(&mut one, 3, &said(2), 10);
    let has = Fetched { catalogue: catalogue(2, &[(ID, Some(version(1)))]), ..Fetched::default() };
    for s in 10..15 {
        assert_eq!(one.owner(&ID, at(s)), other(3));
        assert_eq!(one.fetch(at(s)), Some(peer(3)), "after {s} s");
        one.fetched([3; 16], has.clone(), at(s));
    }
    assert!(one.has_failed(&[3; 16], at(14)));
    assert_eq!(one.owner(&ID, at(14)), CertificateOwner::Own);
}

#[test]
fn a_member_that_has_found_no_other_waits_for_those_in_its_configuration() {
    let mut one = member(&[]);
    one.expect_others(true);
    assert_eq!(one.owner(&ID, at(15)), CertificateOwner::Unknown);
    assert_eq!(one.owner(&ID, at(16)), CertificateOwner::Own);
}

#[test]
fn a_member_alone_sends_nothing_and_has_no_more_turns_than_others() {
    let mut one = member(&[]);
    assert_eq!(one.turn(at(1)), None);
    assert!(one.next_due() > at(1));
}

#[test]
fn an_order_under_way_is_kept_and_a_member_that_has_failed_is_skipped() {
    let mut one = member(&[3, 9]);
    hear(&mut one, 3, &said(1), 3);
    hear(&mut one, 9, &said(1), 3);
    assert_eq!(one.owner(&ID, at(3)), other(3));
    one.set_order(true, 0, at(3));
    assert_eq!(one.owner(&ID, at(3)), CertificateOwner::Own);
    one.set_order(false, 0, at(3));
    hear(&mut one, 9, &Message { is_ordering: true, ..said(1) }, 4);
    assert_eq!(one.owner(&ID, at(4)), other(9));
    hear(&mut one, 9, &said(1), 5);
    hear(&mut one, 3, &Message { is_unable: true, ..said(1) }, 5);
    assert_eq!(one.owner(&ID, at(5)), CertificateOwner::Own);
    one.set_unable(true, at(5));
    assert_eq!(one.owner(&ID, at(5)), other(9));
    hear(&mut one, 9, &Message { is_unable: true, ..said(1) }, 6);
    assert_eq!(one.owner(&ID, at(6)), other(3), "three have failed: the authority is at fault");
}

#[test]
fn newer_certificates_are_fetched_once_and_older_ones_never() {
    let mut one = member(&[3]);
    one.set_catalogue(catalogue(1, &[(ID, Some(version(5)))]), at(0));
    hear(&mut one, 3, &said(2), 1);
    assert_eq!(one.fetch(at(1)), Some(peer(3)));
    let has = |n| catalogue(2, &[(ID, Some(version(n))), (OTHER_ID, Some(version(9)))]);
    one.fetched([3; 16], Fetched { catalogue: has(4), ..Fetched::default() }, at(1));
    assert_eq!(one.fetch(at(1)), None, "it has an older one, and one that is not wanted");
    hear(&mut one, 3, &said(3), 2);
    assert_eq!(one.fetch(at(2)), Some(peer(3)));
    let newer = Catalogue { digest: [3; 16], ..has(6) };
    let fetched = |received: &[_]| Fetched {
        catalogue: newer.clone(),
        challenges: 0,
        received: received.to_vec(),
    };
    one.fetched([3; 16], fetched(&[]), at(2));
    assert_eq!(one.fetch(at(2)), None, "it has not given what it has, and is asked again later");
    assert_eq!(one.fetch(at(3)), Some(peer(3)));
    one.fetched([3; 16], fetched(&[(ID, version(6))]), at(3));
    hear(&mut one, 3, &said(3), 59);
    assert_eq!(one.fetch(at(59)), None);
    // It was not taken into use.
    hear(&mut one, 3, &said(3), 604);
    assert_eq!(one.fetch(at(604)), Some(peer(3)));
}

#[test]
fn challenges_are_fetched_first_and_answered_until_they_are_over() {
    let mut one = member(&[1, 3]);
    hear(&mut one, 1, &said(9), 1);
    hear(&mut one, 3, &Message { challenges: 7, ..said(1) }, 1);
    assert_eq!(one.fetch(at(1)), Some(peer(3)));
    one.turn(at(1));
    let own = one.catalogue().clone();
    one.fetched([3; 16], Fetched { catalogue: own, challenges: 7, ..Fetched::default() }, at(1));
    assert!(one.is_answered(&[3; 16], at(1)));
    let message = wire::read(&one.turn(at(1)).unwrap()).unwrap();
    assert_eq!(message.answers, [([3; 16], 7)], "said at once");
    // Other challenges: the answers so far stay until those are known.
    hear(&mut one, 3, &Message { challenges: 8, ..said(1) }, 2);
    assert!(one.is_answered(&[3; 16], at(2)));
    hear(&mut one, 3, &said(1), 3);
    assert!(!one.is_answered(&[3; 16], at(3)));
    hear(&mut one, 3, &Message { challenges: 8, ..said(1) }, 4);
    assert!(!one.is_answered(&[3; 16], at(4)));
}

#[test]
fn the_one_that_orders_knows_when_all_others_answer() {
    let mut one = member(&[1, 3]);
    assert!(one.all_answer(at(0)));
    one.set_order(true, 2, at(0));
    assert!(!one.all_answer(at(0)));
    let answers = |number| Message { answers: vec![([5; 16], number)], ..said(1) };
    hear(&mut one, 1, &answers(2), 1);
    hear(&mut one, 3, &answers(1), 1);
    assert!(!one.all_answer(at(1)));
    hear(&mut one, 3, &answers(2), 2);
    assert!(one.all_answer(at(2)));
    one.set_live([peer(1), peer(3), peer(9)], at(3));
    assert!(!one.all_answer(at(3)));
    assert!(one.all_answer(at(19)), "9 does not take part");
}

#[test]
fn at_most_four_members_are_asked_at_once() {
    let mut one = member(&[11, 12, 13, 14, 15, 16]);
    for n in 11..=16 {
        hear(&mut one, n, &said(n), 1);
    }
    let asked = std::iter::from_fn(|| one.fetch(at(1))).count();
    assert_eq!(asked, 4);
}
