//! Sealed datagrams: what is accepted, and that everything else is refused for the stated reason.

use super::*;
use crate::start::StartId;

fn key(text: &str) -> Key {
    Key::from_secret(format!("{text:-<40}").as_bytes()).unwrap()
}

fn start(number: u16) -> StartId {
    let mut bytes = [7; StartId::BYTES];
    bytes[..2].copy_from_slice(&number.to_be_bytes());
    StartId(bytes)
}

fn sealed(sealer: &mut Sealer, payload: &[u8]) -> Vec<u8> {
    let mut datagram = Vec::new();
    sealer.seal(payload, &mut datagram).unwrap();
    datagram
}

fn opened(opener: &mut Opener, datagram: &[u8]) -> Result<(StartId, Vec<u8>), Refusal> {
    let mut payload = vec![1, 2, 3];
    let result = opener.open(datagram, &mut payload);
    assert!(result.is_ok() || payload.is_empty(), "bytes of a refused datagram");
    result.map(|start| (start, payload))
}

#[test]
fn what_is_sealed_is_opened_with_its_sender() {
    let key = key("one");
    let (mut sealer, mut opener) =
        (Sealer::new(&key, start(1)).unwrap(), Opener::new(std::slice::from_ref(&key)).unwrap());
    for payload in [Vec::new(), b"x".to_vec(), vec![9; PAYLOAD_MAX]] {
        let datagram = sealed(&mut sealer, &payload);
        assert!(datagram.len() <= DATAGRAM_MAX);
        assert_eq!(opened(&mut opener, &datagram), Ok((start(1), payload)));
    }
    let mut datagram = Vec::new();
    let refused = sealer.seal(&[0; PAYLOAD_MAX + 1], &mut datagram);
    assert_eq!((refused, datagram.len()), (Err(SealRefused::TooLong(PAYLOAD_MAX + 1)), 0));
}

#[test]
fn every_flipped_bit_and_every_truncation_is_refused() {
    let key = key("one");
    let mut sealer = Sealer::new(&key, start(1)).unwrap();
    let mut opener = Opener::new(&[key]).unwrap();
    let datagram = sealed(&mut sealer, b"forty bytes of text, or some more of them");
    for at in 0..datagram.len() * 8 {
        let mut changed = datagram.clone();
        changed[at / 8] ^= 1 << (at % 8);
        let expected = match at / 8 {
            0 => Refusal::UnknownVersion,
            1..=4 => Refusal::UnknownKey,
            _ => Refusal::Forged,
        };
        assert_eq!(opened(&mut opener, &changed), Err(expected), "bit {at}");
    }
    for len in 0..datagram.len() {
        let expected =
            if len < DATAGRAM_MAX - PAYLOAD_MAX { Refusal::TooShort } else { Refusal::Forged };
        assert_eq!(opened(&mut opener, &datagram[..len]), Err(expected), "{len} bytes");
    }
    let long = [datagram.as_slice(), &[0; DATAGRAM_MAX]].concat();
    assert_eq!(opened(&mut opener, &long), Err(Refusal::TooLong));
    assert_eq!(opener.senders(), 0, "forged datagrams must leave nothing behind");
    assert!(opened(&mut opener, &datagram).is_ok());
}

#[test]
fn each_datagram_is_accepted_once_and_in_any_order_within_the_window() {
    let key = key("one");
    let mut sealer = Sealer::new(&key, start(1)).unwrap();
    let mut opener = Opener::new(&[key]).unwrap();
    let mut all: Vec<_> =
        (0..1_024_u16).map(|number| sealed(&mut sealer, &number.to_be_bytes())).collect();
    fastrand::Rng::with_seed(2).shuffle(&mut all);
    for datagram in &all {
        assert!(opened(&mut opener, datagram).is_ok());
        assert_eq!(opened(&mut opener, datagram), Err(Refusal::Replayed));
    }
    let late = sealed(&mut sealer, b"late");
    for _ in 0..1_024 {
        let newer = sealed(&mut sealer, b"newer");
        assert!(opened(&mut opener, &newer).is_ok());
    }
    assert_eq!(opened(&mut opener, &late), Err(Refusal::TooOld));
}

#[test]
fn keys_are_changed_without_refusing_a_datagram() {
    let (old, new) = (key("old"), key("new"));
    let mut sealer = Sealer::new(&old, start(1)).unwrap();
    let mut opener = Opener::new(std::slice::from_ref(&old)).unwrap();
    assert!(opened(&mut opener, &sealed(&mut sealer, b"1")).is_ok());
    opener.set_keys(&[new.clone(), old.clone()]).unwrap();
    let before = sealed(&mut sealer, b"2");
    sealer.set_key(&new).unwrap();
    let after = sealed(&mut sealer, b"3");
    assert!(opened(&mut opener, &after).is_ok());
    assert!(opened(&mut opener, &before).is_ok());
    assert_eq!(opened(&mut opener, &before), Err(Refusal::Replayed));
    opener.set_keys(std::slice::from_ref(&new)).unwrap();
    assert_eq!(opened(&mut opener, &before), Err(Refusal::UnknownKey));
    assert_eq!(opened(&mut opener, &after), Err(Refusal::Replayed));
    assert_eq!(opener.set_keys(&[]), Err(KeysRefused::None));
    assert_eq!(opener.set_keys(&[new.clone(), new.clone()]), Err(KeysRefused::Same(new.id())));
    let many: Vec<_> = (0..5).map(|n| key(&n.to_string())).collect();
    assert_eq!(opener.set_keys(&many), Err(KeysRefused::Many(5)));
}

#[test]
fn another_key_with_the_same_id_is_a_forgery() {
    let (one, other) = (key("one"), key("other"));
    let mut sealer = Sealer::new(&other, start(1)).unwrap();
    let mut datagram = sealed(&mut sealer, b"hello");
    datagram[1..5].copy_from_slice(&one.id().0);
    assert_eq!(opened(&mut Opener::new(&[one]).unwrap(), &datagram), Err(Refusal::Forged));
}

#[test]
fn two_starts_never_share_a_keystream() {
    let key = key("one");
    let of = |number| sealed(&mut Sealer::new(&key, start(number)).unwrap(), &[0; 64]);
    assert_ne!(of(1)[29..], of(2)[29..]);
}

#[test]
fn senders_are_bounded_and_the_least_recently_heard_leaves() {
    let key = key("one");
    let mut opener = Opener::new(std::slice::from_ref(&key)).unwrap();
    let datagram = |number| sealed(&mut Sealer::new(&key, start(number)).unwrap(), b"x");
    let first = datagram(0);
    let mut kept = Sealer::new(&key, start(1)).unwrap();
    let second = sealed(&mut kept, b"x");
    assert!(opened(&mut opener, &first).is_ok() && opened(&mut opener, &second).is_ok());
    for number in 2..SENDERS_MAX as u16 {
        assert!(opened(&mut opener, &datagram(number)).is_ok());
    }
    assert!(opened(&mut opener, &sealed(&mut kept, b"y")).is_ok());
    assert_eq!(opened(&mut opener, &first), Err(Refusal::Replayed));
    assert!(opened(&mut opener, &datagram(SENDERS_MAX as u16)).is_ok());
    assert_eq!(opener.senders(), SENDERS_MAX);
    assert_eq!(opened(&mut opener, &second), Err(Refusal::Replayed), "was heard recently");
    // Its window is forgotten with it: what the membership must be ready for.
    assert!(opened(&mut opener, &first).is_ok());
}

#[test]
fn the_last_counter_is_used_and_none_after_it() {
    let key = key("one");
    let mut sealer = Sealer::new(&key, start(1)).unwrap();
    let mut opener = Opener::new(&[key]).unwrap();
    sealer.skip_to((1 << 63) - 2);
    let last = sealed(&mut sealer, b"last");
    assert!(opened(&mut opener, &last).is_ok());
    let mut datagram = Vec::new();
    assert_eq!(sealer.seal(b"x", &mut datagram), Err(SealRefused::Exhausted));
    assert_eq!(sealer.seal(b"x", &mut datagram), Err(SealRefused::Exhausted));
    assert!(datagram.is_empty());
}

#[test]
fn random_bytes_are_refused() {
    let key = key("one");
    let mut opener = Opener::new(std::slice::from_ref(&key)).unwrap();
    let mut sealer = Sealer::new(&key, start(1)).unwrap();
    let mut rng = fastrand::Rng::with_seed(3);
    for _ in 0..100_000 {
        let mut bytes = vec![0; rng.usize(0..120)];
        rng.fill(&mut bytes);
        if rng.bool() {
            // As far as the key's id, so that most are tried.
            let real = sealed(&mut sealer, b"x");
            let kept = bytes.len().min(rng.usize(5..real.len()));
            bytes[..kept].copy_from_slice(&real[..kept]);
        }
        assert!(opened(&mut opener, &bytes).is_err());
    }
    assert_eq!(opener.senders(), 0);
}

#[test]
fn a_secret_is_bounded_trimmed_and_never_shown() {
    let text = "0123456789abcdef0123456789abcdef";
    let key = Key::from_secret(text.as_bytes()).unwrap();
    assert_eq!(Key::from_secret(format!("\n {text}\r\n").as_bytes()).unwrap().id(), key.id());
    assert_eq!(Key::from_secret(&text.as_bytes()[1..]).unwrap_err(), KeyRefused::Short(31));
    assert_eq!(Key::from_secret(&[b'x'; 4_097]).unwrap_err(), KeyRefused::Long(4_097));
    assert!(Key::from_secret(b"short").unwrap_err().to_string().contains("at least 32"));
    assert_eq!(format!("{key:?}"), format!("Key({})", key.id()));
    assert!(!format!("{:?}", Sealer::new(&key, start(1)).unwrap()).contains(text));
}
