//! Changes inputs frame by frame, so that they stay connections.

use http2::PREFACE;

use crate::frames::{self, FIELDS, Frame, kind};

/// A small generator: a mutation must depend on its seed only.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let mixed = (self.0 ^ (self.0 >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (mixed >> 32) as u32
    }

    fn below(&mut self, limit: usize) -> usize {
        self.next() as usize % limit.max(1)
    }

    fn pick<T: Copy>(&mut self, values: &[T]) -> T {
        values[self.below(values.len())]
    }
}

const KINDS: [u8; 24] = [
    kind::FIELDS,
    kind::FIELDS,
    kind::FIELDS,
    kind::CONTENT,
    kind::CONTENT,
    kind::DATA,
    kind::PRIORITY,
    kind::RST_STREAM,
    kind::SETTINGS,
    kind::PING,
    kind::GOAWAY,
    kind::WINDOW_UPDATE,
    kind::PRIORITY_UPDATE,
    kind::SENT,
    kind::SENT,
    kind::COMMIT,
    kind::SEND_HEAD,
    kind::SEND_DATA,
    kind::SEND_TRAILERS,
    kind::CONSUMED,
    kind::RELEASE,
    kind::WRITABLE,
    0,
    1,
];

const LENGTHS: [u16; 14] = [0, 1, 5, 9, 50, 63, 64, 499, 500, 1000, 1001, 8192, 16_384, u16::MAX];

/// Changes the input in `data[..size]`; returns its new length.
pub fn mutate(data: &mut [u8], size: usize, max_size: usize, seed: u32) -> usize {
    let mut random = Random(u64::from(seed));
    let (has_preface, mut all) = frames::parse(&data[..size]);
    for _ in 0..=random.below(3) {
        change(&mut all, has_preface, &mut random);
    }
    let mut out = Vec::with_capacity(size + 64);
    if has_preface != (random.below(200) == 0) {
        out.extend_from_slice(PREFACE);
    }
    for frame in &all {
        frame.put(&mut out);
    }
    let length = out.len().min(max_size);
    data[..length].copy_from_slice(&out[..length]);
    length
}

fn change(all: &mut Vec<Frame>, to_server: bool, random: &mut Random) {
    let count = all.len();
    if count == 0 || random.below(3) == 0 {
        let frame = any(all, to_server, random);
        return all.insert(random.below(count + 1), frame);
    }
    let at = random.below(count);
    match random.below(9) {
        0 => drop(all.remove(at)),
        1 => {
            let copy = all[at].clone();
            all.insert(random.below(count + 1), copy);
        }
        2 => all.swap(at, random.below(count)),
        3 => all[at].flags ^= 1 << random.below(6),
        4 => all[at].stream = stream(all, random),
        5 => all.truncate(at + 1),
        6 => split(all, at, random),
        _ => {
            let payload = &mut all[at].payload;
            let length = payload.len();
            payload.resize(length + 16, 0);
            let max = payload.len();
            let length = libfuzzer_sys::fuzzer_mutate(payload, length, max);
            payload.truncate(length);
        }
    }
}

/// Continues a header block in another frame.
fn split(all: &mut Vec<Frame>, at: usize, random: &mut Random) {
    let frame = &mut all[at];
    if !matches!(frame.kind, kind::HEADERS | kind::CONTINUATION) {
        return;
    }
    let payload = frame.payload.split_off(random.below(frame.payload.len() + 1));
    let flags = frame.flags & frames::END_HEADERS;
    frame.flags &= !frames::END_HEADERS;
    let next = Frame { kind: kind::CONTINUATION, flags, stream: frame.stream, payload };
    all.insert(at + 1, next);
}

/// Returns a stream of the input, or the next one.
fn stream(all: &[Frame], random: &mut Random) -> u32 {
    let last = all.iter().map(|frame| frame.stream).max().unwrap_or(0);
    match random.below(12) {
        0 => 0,
        1 => last.wrapping_add(1) & 0x7fff_ffff,
        2..5 => (last.wrapping_add(2) | 1) & 0x7fff_ffff,
        _ => all.get(random.below(all.len())).map_or(1, |frame| frame.stream),
    }
}

fn any(all: &[Frame], to_server: bool, random: &mut Random) -> Frame {
    let kind = random.pick(&KINDS);
    let mut frame = Frame { kind, flags: 0, stream: stream(all, random), payload: Vec::new() };
    let length = random.pick(&LENGTHS);
    match kind {
        kind::FIELDS => {
            let first = random.pick(&[0x40, 0x80, 0x40, 0x80, 0x80, 0, 0x41, 0x82, 3]);
            frame.payload.push(first);
            for _ in 0..random.below(6) {
                let index = random.below(FIELDS.len()) as u8;
                frame.payload.push(index | random.pick(&[0, 0, 0x40, 0x40, 0x80, 0xc0]));
            }
            frame.flags = random.pick(&[0, 0, 1, 1, 1, 8, 9, 0x20, 0x21, 0x29]);
            let last = all.iter().map(|frame| frame.stream).max().unwrap_or(0);
            if to_server && random.below(3) > 0 && last < 1000 {
                frame.stream = (last + 1) | 1;
            }
        }
        kind::CONTENT | kind::DATA => {
            frame.payload.extend_from_slice(&length.to_be_bytes());
            frame.payload.push(random.below(20) as u8);
            frame.flags = random.pick(&[0, 0, 0, 1, 1, 8, 9]);
        }
        kind::PRIORITY => frame.payload = vec![0, 0, 0, random.below(8) as u8, 3],
        kind::RST_STREAM => frame.payload = vec![0, 0, 0, random.below(15) as u8],
        kind::SETTINGS => {
            frame.stream = 0;
            frame.flags = u8::from(random.below(4) == 0);
            for _ in 0..random.below(3) * usize::from(frame.flags == 0) {
                let value = random.pick(&[0, 1, 100, 1000, 16_384, 65_535, 0x7fff_ffff]);
                let id = random.pick(&[1, 3, 4, 4, 4, 5, 6, 8, 9, 99]);
                frame.payload.extend_from_slice(&[0, id]);
                frame.payload.extend_from_slice(&u32::to_be_bytes(value));
            }
        }
        kind::PING => {
            frame.stream = 0;
            frame.flags = random.below(2) as u8;
            frame.payload = random.pick(&[b"weir-bye", b"weir-bdp", b"whatever"]).to_vec();
        }
        kind::GOAWAY => {
            frame.stream = 0;
            frame.payload = vec![0, 0, 0, random.below(8) as u8, 0, 0, 0, random.below(3) as u8];
        }
        kind::WINDOW_UPDATE => {
            let more = random.pick(&[0, 1, 1, 50, 1000, 100_000, 0x7fff_ffff]);
            frame.payload = u32::to_be_bytes(more).to_vec();
        }
        kind::PRIORITY_UPDATE => {
            frame.stream = 0;
            frame.payload = [&[0, 0, 0, random.below(16) as u8][..], b"u=1,i"].concat();
        }
        _ => {
            frame.flags = random.below(2) as u8;
            if random.below(4) > 0 {
                frame.payload = length.to_be_bytes().to_vec();
            }
        }
    }
    frame
}
