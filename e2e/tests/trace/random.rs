//! Conversations that no one would think of: numbers near those that matter, and times near those
//! that decide.

use e2e::Dice;

use crate::packets::{ACK, FIN, Frame, RST, SYN, Segment};

/// What the dice know of a connection.
struct Talk {
    next: [u32; 2],
    acknowledged: [u32; 2],
    window: [u16; 2],
    seen: [Vec<u32>; 2],
}

impl Talk {
    fn new(dice: &mut Dice) -> Talk {
        let mut first = || {
            let any = dice.number() as u32;
            dice.pick(&[0, 1, 0xffff_ff00, 0xffff_fff0, any])
        };
        Talk {
            next: [first(), first()],
            acknowledged: [0; 2],
            window: [1_000; 2],
            seen: [Vec::new(), Vec::new()],
        }
    }
}

/// Segments with any flags, numbers and windows.
pub fn wild(seed: u64, count: usize) -> Vec<Frame> {
    let dice = &mut Dice::new(seed);
    let mut time_ns: u64 = 1_600_000_000_000_000_000;
    let mut talks: Vec<Talk> = (0..4).map(|_| Talk::new(dice)).collect();
    let mut frames = Vec::new();
    for number in 0..count {
        let which = dice.below(4) as usize;
        let from = dice.below(2) as usize;
        time_ns += dice.pick(&[
            0,
            1_000,
            500_000,
            1_000_000,
            2_999_999,
            3_000_000,
            10_000_000,
            19_999_999,
            20_000_000,
            25_000_000,
            200_000_000,
        ]);
        if dice.permille(10) {
            time_ns -= dice.pick(&[1, 1_000_000, 1_000_000_000]);
        }
        if dice.permille(4) {
            talks[which] = Talk::new(dice);
        }
        let mut segment = wild_segment(dice, &mut talks[which], from);
        segment.ports = [1_000 + which as u16, 80];
        segment.ip_id = number as u16;
        let mut frame = Frame::new(time_ns, 101, segment.ipv4());
        if dice.permille(10) {
            frame.captured = 20 + dice.below(frame.bytes.len() as u64 - 19) as usize;
        }
        frames.push(frame);
    }
    frames
}

fn wild_segment(dice: &mut Dice, talk: &mut Talk, from: usize) -> Segment {
    let any = dice.below(4_096) as u16;
    let flags = match dice.below(1_000) {
        0..30 => SYN,
        30..60 => SYN | ACK,
        60..80 => FIN | ACK,
        80..90 => RST | ACK,
        90..100 => RST,
        100..110 => 0,
        110..115 => FIN,
        115..120 => any,
        _ => ACK,
    };
    let is_syn = flags & SYN != 0;
    let mut length: usize = dice.pick(&[0, 0, 0, 0, 1, 1, 2, 10, 100]);
    if is_syn && !dice.permille(100) {
        length = 0;
    }
    let around = dice
        .pick(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, -1, -1, -1, 1, -2, -10, 10, 100, -100, -110]);
    let mut sequence = talk.next[from].wrapping_add_signed(around);
    if dice.permille(30) {
        sequence = dice.pick(&[0, 1, u32::MAX]);
    } else if is_syn && !talk.seen[from].is_empty() && !dice.permille(200) {
        sequence = talk.seen[from][0];
    } else if !talk.seen[from].is_empty() && dice.permille(100) {
        sequence = dice.pick(&talk.seen[from]);
    }
    let (last, next) = (talk.acknowledged[from], talk.next[1 - from]);
    let near = next.wrapping_add_signed(dice.pick(&[-100, 100]));
    let mut acknowledged = dice.pick(&[
        last,
        last,
        last,
        last,
        last,
        last,
        next,
        next,
        next,
        next,
        next,
        next.wrapping_add(1),
        last.wrapping_add(1),
        last.wrapping_add(10),
        last.wrapping_sub(1),
        near,
        0,
    ]);
    if !talk.seen[1 - from].is_empty() && dice.permille(150) {
        acknowledged = dice.pick(&talk.seen[1 - from]);
    }
    if flags & ACK == 0 && dice.permille(700) {
        acknowledged = 0;
    }
    let same = talk.window[from];
    let window =
        dice.pick(&[same, same, same, same, same, same, same, 0, 0, 1, 10, 100, 1_000, 65_535]);
    let mut options = Vec::new();
    if is_syn {
        if dice.permille(500) {
            options.extend([3, 3, dice.pick(&[0, 1, 7, 14, 15, 255])]);
        }
        match dice.below(10) {
            0 | 1 => options.extend([34, 2]),
            2 | 3 => {
                options.extend([34, 6, 1, 2, 3, 4]);
                length = dice.pick(&[length, 10]);
            }
            _ => {}
        }
    } else if dice.permille(5) {
        options.extend([3, 3, 3]);
    }
    talk.acknowledged[from] = acknowledged;
    talk.window[from] = window;
    let seen = &mut talk.seen[from];
    if is_syn {
        seen.clear();
    }
    seen.push(sequence);
    if seen.len() > 20 {
        seen.remove(0);
    }
    if dice.permille(800) {
        let end = sequence.wrapping_add(length as u32);
        talk.next[from] = end.wrapping_add(u32::from(flags & (SYN | FIN) != 0));
    }
    Segment { from, sequence, acknowledged, flags, window, options, length, ..Segment::default() }
}

/// A transfer as it happens: a sender with a window, a path that loses, doubles and reorders, a
/// receiver that acknowledges every other segment and says what it holds; captured at the sender,
/// `snaplen` bytes of each packet.
pub fn transfer(seed: u64, port: u16, snaplen: usize, frames: &mut Vec<Frame>) {
    let dice = &mut Dice::new(seed);
    let start_ns = 1_600_000_000_000_000_000 + dice.below(1_000_000_000);
    let delay_ns = dice.pick(&[50_000, 2_000_000, 20_000_000]);
    let loss = dice.pick(&[0, 5, 30, 100]);
    let initial = [dice.number() as u32, dice.number() as u32];
    let total: u32 = 200_000;
    let scale = dice.pick(&[None, Some(2_u8), Some(7)]);
    let mut events: Vec<(u64, Segment)> = Vec::new();
    let options = scale.map(|shift| vec![3, 3, shift]).unwrap_or_default();
    let make = |from: usize, offset: u32, acknowledged: u32, flags: u16, length: usize| Segment {
        from,
        ports: [port, 80],
        sequence: initial[from].wrapping_add(offset),
        acknowledged: if flags & ACK == 0 {
            0
        } else {
            initial[1 - from].wrapping_add(acknowledged)
        },
        flags,
        window: 30_000,
        length,
        ..Segment::default()
    };
    let mut now = start_ns;
    events.push((now, Segment { options: options.clone(), ..make(0, 0, 0, SYN, 0) }));
    events.push((now + delay_ns, Segment { options, ..make(1, 0, 1, SYN | ACK, 0) }));
    now += delay_ns + 10_000;
    events.push((now, make(0, 1, 1, ACK, 0)));
    // What the receiver has: up to where, and beyond it.
    let (mut next, mut held) = (1_u32, std::collections::BTreeMap::<u32, u32>::new());
    let mut sent = 1_u32;
    let mut round = 0;
    while next <= total && round < 3_000 {
        round += 1;
        let from = if sent > next + 20_000 || sent > total { next } else { sent };
        let length = dice.pick(&[1_448, 1_448, 1_448, 700, 1]).min(total + 1 - from);
        now += dice.pick(&[1_000, 10_000, 100_000]);
        if from < sent {
            now += dice.pick(&[1_000_000, 30_000_000, 210_000_000]);
        }
        let mut segment = make(0, from, 1, ACK, length as usize);
        segment.ip_id = (round as u16).max(1);
        events.push((now, segment.clone()));
        if dice.permille(20) {
            events.push((now + dice.pick(&[2_000, 900_000]), segment));
        }
        sent = sent.max(from + length);
        if !dice.permille(loss) {
            let late = if dice.permille(30) { dice.pick(&[100_000, 4_000_000]) } else { 0 };
            held.insert(from, from + length);
            while let Some((&first, &last)) = held.first_key_value() {
                if first > next {
                    break;
                }
                next = next.max(last);
                held.pop_first();
            }
            if round % 2 == 0 || !held.is_empty() {
                let mut answer = make(1, 1, next, ACK, 0);
                answer.window = dice.pick(&[30_000, 30_000, 30_000, 20_000, 0]);
                if let Some((first, last)) = held.first_key_value() {
                    answer.options = vec![1, 1, 5, 10];
                    for edge in [first, last] {
                        answer.options.extend(initial[0].wrapping_add(*edge).to_be_bytes());
                    }
                }
                events.push((now + delay_ns + late, answer));
            }
        }
    }
    events.push((now + delay_ns, make(0, sent, 1, FIN | ACK, 0)));
    events.push((now + 2 * delay_ns, make(1, 1, sent + 1, FIN | ACK, 0)));
    events.sort_by_key(|(time_ns, _)| *time_ns);
    for (time_ns, segment) in events {
        let mut frame = Frame::new(time_ns, 101, segment.ipv4());
        frame.captured = frame.captured.min(snaplen);
        frames.push(frame);
    }
}
