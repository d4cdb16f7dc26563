//! The Huffman code of RFC 7541 appendix B. Peers may use it; Weir sends plain literals.
//!
//! The code is canonical: the lengths of its 257 codes determine it, so only those are stored here.

/// The length of each symbol's code in bits; the last symbol is EOS.
#[rustfmt::skip]
const LENGTHS: [u8; SYMBOLS] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28,
    28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28,
    6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6,
    5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10,
    13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
    7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
    15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5,
    6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28,
    20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23,
    24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24,
    22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23,
    21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25,
    19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27,
    20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,
    26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
    30,
];

const SYMBOLS: usize = 257;
const EOS: u16 = 256;
const SHORTEST: usize = 5;
const LONGEST: usize = 30;
/// Codes up to this length are found by one look-up: those of all letters, digits and most signs.
const FAST_BITS: usize = 9;

/// The codes of one length: they are consecutive numbers, and so are their positions in `sorted`.
#[derive(Clone, Copy)]
struct Row {
    /// The first code, in its low bits.
    first: u32,
    /// The position of its symbol in `sorted`.
    at: u16,
    /// The code after the last, aligned to the left of 32 bits; codes are shorter than that.
    end: u64,
}

struct Tables {
    sorted: [u16; SYMBOLS],
    rows: [Row; LONGEST + 1],
    /// By the next [`FAST_BITS`] bits: the symbol, and in the upper byte the code's length. 0: the
    /// code is longer.
    fast: [u16; 1 << FAST_BITS],
}

static TABLES: Tables = tables();

const fn tables() -> Tables {
    let mut tables = Tables {
        sorted: [0; SYMBOLS],
        rows: [Row { first: 0, at: 0, end: 0 }; LONGEST + 1],
        fast: [0; 1 << FAST_BITS],
    };
    let (mut next, mut at, mut length) = (0_u32, 0, SHORTEST);
    while length <= LONGEST {
        next <<= 1;
        tables.rows[length].first = next;
        tables.rows[length].at = at as u16;
        let mut symbol = 0;
        while symbol < SYMBOLS {
            if LENGTHS[symbol] as usize == length {
                tables.sorted[at] = symbol as u16;
                if length <= FAST_BITS {
                    let low = (next as usize) << (FAST_BITS - length);
                    let mut filler = 0;
                    while filler < 1 << (FAST_BITS - length) {
                        tables.fast[low + filler] = symbol as u16 | (length as u16) << 8;
                        filler += 1;
                    }
                }
                next += 1;
                at += 1;
            }
            symbol += 1;
        }
        tables.rows[length].end = (next as u64) << (32 - length);
        length += 1;
    }
    tables
}

/// Not a Huffman code: EOS within the text, or padding that is too long or has zeros (RFC 7541
/// section 5.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NotHuffman;

/// Appends the text that `coded` stands for: at most 8/5 of its length.
pub(crate) fn decode(coded: &[u8], out: &mut Vec<u8>) -> Result<(), NotHuffman> {
    out.reserve(coded.len() * 8 / SHORTEST + 1);
    // The bits not decoded yet are the upper ones of `window`, `count` of them.
    let (mut window, mut count, mut rest) = (0_u64, 0_usize, coded.iter());
    loop {
        while count <= 56 {
            let Some(&byte) = rest.next() else { break };
            window |= u64::from(byte) << (56 - count);
            count += 8;
        }
        let fast = TABLES.fast[(window >> (64 - FAST_BITS)) as usize];
        let (symbol, length) = match fast {
            0 => long_symbol((window >> 32) as u32),
            _ => (fast & 0xff, usize::from(fast >> 8)),
        };
        if length > count {
            // The rest is padding: the most significant bits of EOS, all ones.
            let is_padding = count < 8 && window >> (64 - count.max(1)) == (1 << count) - 1;
            return if count == 0 || is_padding { Ok(()) } else { Err(NotHuffman) };
        }
        if symbol == EOS {
            return Err(NotHuffman);
        }
        out.push(symbol as u8);
        window <<= length;
        count -= length;
    }
}

/// Returns the symbol whose code starts at the most significant bit of `bits` and has more than
/// [`FAST_BITS`] bits, and the code's length. The code is complete, so there always is one.
fn long_symbol(bits: u32) -> (u16, usize) {
    let mut length = FAST_BITS + 1;
    while length < LONGEST && u64::from(bits) >= TABLES.rows[length].end {
        length += 1;
    }
    let row = TABLES.rows[length];
    let offset = (bits >> (32 - length)) - row.first;
    (TABLES.sorted[usize::from(row.at) + offset as usize], length)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn coded(text: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        let (mut window, mut count) = (0_u64, 0_u32);
        for &byte in text {
            let length = usize::from(LENGTHS[usize::from(byte)]);
            let row = TABLES.rows[length];
            let after = TABLES.sorted[usize::from(row.at)..].iter();
            let offset = after.take_while(|&&symbol| symbol != u16::from(byte)).count();
            window = window << length | (u64::from(row.first) + offset as u64);
            count += length as u32;
            while count >= 8 {
                count -= 8;
                out.push((window >> count) as u8);
            }
        }
        if count > 0 {
            // Padded with ones.
            out.push((window << (8 - count)) as u8 | (0xff >> count) as u8);
        }
        out
    }

    fn decoded(bytes: &[u8]) -> Result<Vec<u8>, NotHuffman> {
        let mut out = Vec::new();
        decode(bytes, &mut out).map(|()| out)
    }

    /// The examples of RFC 7541 appendix C.4 and C.6.
    #[test]
    fn the_examples_of_the_rfc() {
        for (text, bytes) in [
            ("www.example.com", "f1e3c2e5f23a6ba0ab90f4ff"),
            ("no-cache", "a8eb10649cbf"),
            ("custom-key", "25a849e95ba97d7f"),
            ("custom-value", "25a849e95bb8e8b4bf"),
            ("302", "6402"),
            ("private", "aec3771a4b"),
            ("Mon, 21 Oct 2013 20:13:21 GMT", "d07abe941054d444a8200595040b8166e082a62d1bff"),
            ("https://www.example.com", "9d29ad171863c78f0b97c8e9ae82ae43d3"),
        ] {
            let hex: Vec<String> =
                coded(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(hex.concat(), bytes);
            assert_eq!(decoded(&coded(text.as_bytes())).unwrap(), text.as_bytes());
        }
    }

    #[test]
    fn every_byte_goes_both_ways_in_any_company() {
        let seed = fastrand::u64(..);
        let mut random = fastrand::Rng::with_seed(seed);
        let all: Vec<u8> = (0..=255).collect();
        assert_eq!(decoded(&coded(&all)).unwrap(), all);
        for _ in 0..2_000 {
            let text: Vec<u8> = (0..random.usize(..40)).map(|_| random.u8(..)).collect();
            assert_eq!(decoded(&coded(&text)).as_deref(), Ok(&*text), "seed {seed}");
        }
    }

    #[test]
    fn padding_is_less_than_a_byte_of_ones() {
        let good = coded(b"aaaaaaaa");
        assert_eq!(good.len(), 5, "no padding");
        let wrong = [
            [&good[..], &[0xff]].concat(),
            // `a` with zeros behind it.
            vec![0b0001_1000],
            // EOS, and EOS in the middle.
            vec![0xff, 0xff, 0xff, 0xff],
            [&[0xff, 0xff, 0xff, 0xff][..], &good].concat(),
        ];
        for bytes in wrong {
            assert_eq!(decoded(&bytes), Err(NotHuffman), "{bytes:x?}");
        }
        assert_eq!(decoded(&[]).unwrap(), b"");
    }

    #[test]
    fn any_bytes_are_decoded_or_refused() {
        let mut random = fastrand::Rng::with_seed(7);
        for _ in 0..20_000 {
            let bytes: Vec<u8> = (0..random.usize(..12)).map(|_| random.u8(..)).collect();
            if let Ok(text) = decoded(&bytes) {
                assert_eq!(coded(&text), bytes);
            }
        }
    }
}
