//! Loads of services as bytes, for exchange between instances.
//!
//! ```text
//! message  version (1)   row × 0..
//! row      length of the name (1)  name, UTF-8 (1..=255)
//!          arrivals, refusals, completions, worked, in flight, waiting (4 each)
//! ```
//!
//! Numbers are IEEE 754 single precision, little-endian: finite and from 0 to [`LOAD_MAX`]. A message fits into a
//! datagram. Loads of more services than fit take several messages.

use crate::load::{LOAD_MAX, Load};

/// The version of this format.
pub const VERSION: u8 = 1;
/// Maximum length of a message, in bytes.
pub const MESSAGE_MAX_BYTES: usize = 1_100;
/// Maximum length of the name of a service, in bytes. A service with a longer name is not sent.
pub const NAME_MAX_BYTES: usize = 255;

const NUMBERS_BYTES: usize = 6 * 4;

/// Why bytes are no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// Too short, too long, or its last row is incomplete.
    Length,
    /// Another version of the format.
    Version(u8),
    /// The name of a service is empty, too long, no UTF-8, has a control character, or occurs twice.
    Name,
    /// A number is not finite, negative, or too large.
    Number,
}

/// Returns messages with these loads, each at most [`MESSAGE_MAX_BYTES`] long. Services whose names do not fit are
/// left out, and numbers are brought within their bounds.
pub fn write<'a>(loads: impl IntoIterator<Item = (&'a str, Load)>) -> Vec<Vec<u8>> {
    let mut messages: Vec<Vec<u8>> = Vec::new();
    for (name, load) in loads {
        let Some(length) = u8::try_from(name.len()).ok().filter(|_| fits(name)) else { continue };
        let row = 1 + name.len() + NUMBERS_BYTES;
        let full = |message: &Vec<u8>| message.len() + row > MESSAGE_MAX_BYTES;
        if messages.last().is_none_or(full) {
            let mut message = Vec::with_capacity(MESSAGE_MAX_BYTES);
            message.push(VERSION);
            messages.push(message);
        }
        if let Some(message) = messages.last_mut() {
            message.push(length);
            message.extend(name.as_bytes());
            // The sum brings each number within its bounds.
            for number in numbers(&(load + Load::default())) {
                message.extend((number as f32).to_le_bytes());
            }
        }
    }
    messages
}

/// Returns the loads of a message, by the name of the service.
///
/// # Errors
///
/// If the bytes are no message, or if a row has a name or a number that [`write`] does not write. Then nothing of
/// the message counts.
pub fn read(bytes: &[u8]) -> Result<Vec<(String, Load)>, Malformed> {
    let (&version, mut rest) = bytes.split_first().ok_or(Malformed::Length)?;
    if version != VERSION {
        return Err(Malformed::Version(version));
    }
    if bytes.len() > MESSAGE_MAX_BYTES {
        return Err(Malformed::Length);
    }
    let mut loads: Vec<(String, Load)> = Vec::new();
    while let Some((&length, after)) = rest.split_first() {
        let (name, after) = after.split_at_checked(length.into()).ok_or(Malformed::Length)?;
        let (row, after) = after.split_at_checked(NUMBERS_BYTES).ok_or(Malformed::Length)?;
        let name = std::str::from_utf8(name).map_err(|_| Malformed::Name)?;
        if !fits(name) || loads.iter().any(|(other, _)| other == name) {
            return Err(Malformed::Name);
        }
        loads.push((name.to_owned(), load(row)?));
        rest = after;
    }
    Ok(loads)
}

fn fits(name: &str) -> bool {
    (1..=NAME_MAX_BYTES).contains(&name.len()) && !name.chars().any(char::is_control)
}

fn numbers(load: &Load) -> [f64; 6] {
    [load.arrivals, load.refusals, load.completions, load.worked, load.in_flight, load.waiting]
}

/// Reads the six numbers of a row.
fn load(row: &[u8]) -> Result<Load, Malformed> {
    let (numbers, _) = row.as_chunks::<4>();
    let mut checked = [0.0; 6];
    for (to, bytes) in checked.iter_mut().zip(numbers) {
        let number = f64::from(f32::from_le_bytes(*bytes));
        if !(0.0..=LOAD_MAX).contains(&number) {
            return Err(Malformed::Number);
        }
        *to = number;
    }
    let [arrivals, refusals, completions, worked, in_flight, waiting] = checked;
    Ok(Load { arrivals, refusals, completions, worked, in_flight, waiting })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOAD: Load = Load {
        arrivals: 840.5,
        refusals: 0.0,
        completions: 830.0,
        worked: 79.25,
        in_flight: 80.0,
        waiting: 3.0,
    };

    #[test]
    fn a_message_is_read_as_it_was_written() {
        let messages = write([("web", LOAD), ("größe", Load::default())]);
        assert_eq!(messages.len(), 1);
        let expected = vec![("web".to_owned(), LOAD), ("größe".to_owned(), Load::default())];
        assert_eq!(read(&messages[0]), Ok(expected));
        assert!(write([]).is_empty());
        assert_eq!(read(&[VERSION]), Ok(Vec::new()));
    }

    #[test]
    fn many_services_take_several_messages() {
        let names: Vec<String> = (0..500).map(|n| format!("service-{n}")).collect();
        let messages = write(names.iter().map(|name| (name.as_str(), LOAD)));
        let read: Vec<_> = messages.iter().flat_map(|message| read(message).unwrap()).collect();
        assert!(messages.iter().all(|message| message.len() <= MESSAGE_MAX_BYTES));
        assert!(read.len() == 500 && read.iter().zip(&names).all(|(row, name)| row.0 == *name));
    }

    #[test]
    fn what_is_out_of_bounds_is_not_sent() {
        let long = "n".repeat(NAME_MAX_BYTES + 1);
        assert!(write([(long.as_str(), LOAD), ("", LOAD), ("a\nb", LOAD)]).is_empty());
        let odd = Load { arrivals: f64::NAN, refusals: -1.0, in_flight: f64::MAX, ..LOAD };
        let read = read(&write([("web", odd)])[0]).unwrap();
        let expected = Load { arrivals: 0.0, in_flight: LOAD_MAX, ..LOAD };
        assert_eq!(read, vec![("web".to_owned(), expected)]);
    }

    #[test]
    fn other_bytes_are_refused() {
        let bytes = write([("web", LOAD)]).remove(0);
        for length in 2..bytes.len() {
            assert_eq!(read(&bytes[..length]), Err(Malformed::Length), "{length}");
        }
        assert_eq!(read(&[]), Err(Malformed::Length));
        assert_eq!(read(&[9, 0]), Err(Malformed::Version(9)));
        assert_eq!(read(&[&bytes[..], &bytes[1..]].concat()), Err(Malformed::Name));
        let with = |at: usize, new: &[u8]| {
            let mut bytes = bytes.clone();
            bytes[at..at + new.len()].copy_from_slice(new);
            read(&bytes)
        };
        assert_eq!(with(2, &[0xff]), Err(Malformed::Name));
        assert_eq!(with(2, b"\n"), Err(Malformed::Name));
        for number in [f32::NAN, f32::INFINITY, -1.0, 2e9] {
            assert_eq!(with(5, &number.to_le_bytes()), Err(Malformed::Number), "{number}");
        }
        let rows_max = (MESSAGE_MAX_BYTES - 1) / (2 + NUMBERS_BYTES);
        let many = write((0..rows_max).map(|_| ("w", LOAD))).remove(0);
        assert_eq!(read(&many), Err(Malformed::Name));
        let long = [&many[..], &[0; MESSAGE_MAX_BYTES]].concat();
        assert_eq!(read(&long), Err(Malformed::Length));
    }

    #[test]
    fn random_bytes_do_no_harm() {
        let seed = std::env::var("SEED").map_or(1, |text| text.parse().expect("SEED is a number"));
        println!("SEED={seed}");
        let mut rng = fastrand::Rng::with_seed(seed);
        let good = write([("web", LOAD), ("api", LOAD), ("images", LOAD)]).remove(0);
        for _ in 0..20_000 {
            let mut bytes = good.clone();
            for _ in 0..rng.usize(0..6) {
                let at = rng.usize(..bytes.len());
                bytes[at] = rng.u8(..);
            }
            bytes.truncate(rng.usize(..=bytes.len()));
            if let Ok(rows) = read(&bytes) {
                assert!(rows.iter().all(|(_, load)| numbers(load).iter().all(|n| *n >= 0.0)));
            }
        }
    }
}
