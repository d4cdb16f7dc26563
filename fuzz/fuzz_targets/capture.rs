//! Any bytes as a capture, whole and in pieces as the first byte says: what is read must be the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use trace::reader::{Reader, Step};
use trace::{Limits, Trace};

fuzz_target!(|data: &[u8]| {
    let [first, input @ ..] = data else {
        return;
    };
    let whole = read(input, usize::MAX);
    assert_eq!(whole, read(input, usize::from(*first) + 1));
});

fn read(input: &[u8], piece: usize) -> (Vec<String>, Option<String>) {
    let limits = Limits { connections_max: 8, ..Limits::default() };
    let mut trace = Trace::new(limits);
    let mut reader = Reader::new();
    let mut rest = input;
    let mut said = Vec::new();
    loop {
        match reader.step() {
            Ok(Step::Record(record)) => {
                let frame = trace.record(&record);
                said.push(format!("{} {:?} {}", frame.number, frame.stream, frame.flags));
            }
            Ok(Step::NoPacket) => trace.no_packet(),
            Ok(Step::End) => break,
            Ok(Step::More) => {
                let space = reader.space();
                let count = rest.len().min(piece).min(space.len());
                space[..count].copy_from_slice(&rest[..count]);
                rest = &rest[count..];
                reader.filled(count);
            }
            Err(broken) => return (said, Some(broken.to_string())),
        }
    }
    for story in trace.stories() {
        let _ = (story.trouble(), story.ending(), story.is_one_sided());
    }
    (said, None)
}
