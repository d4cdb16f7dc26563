//! Test data that makes missing or reordered bytes visible: lines of 64 bytes, each with its
//! offset.

const LINE_BYTES: u64 = 64;

/// Returns `size_bytes` of it from `offset` on: concatenated pieces of any size give the same text.
pub fn pattern(offset: u64, size_bytes: usize) -> Vec<u8> {
    let mut line_begins = offset / LINE_BYTES * LINE_BYTES;
    let skipped = (offset - line_begins) as usize;
    let mut text = Vec::with_capacity(skipped + size_bytes + LINE_BYTES as usize);
    let mut line = format!("{:014} {}\n", 0, "weir".repeat(12)).into_bytes();
    while text.len() < skipped + size_bytes {
        let mut rest = line_begins;
        for digit in line[..14].iter_mut().rev() {
            *digit = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
        text.extend_from_slice(&line);
        line_begins += LINE_BYTES;
    }
    text.truncate(skipped + size_bytes);
    text.drain(..skipped);
    text
}

#[cfg(test)]
mod tests {
    use super::pattern;

    #[test]
    fn it_has_the_size_asked_for_and_tells_offsets() {
        assert_eq!(pattern(0, 0), b"");
        let text = pattern(0, 50_000);
        assert_eq!(text.len(), 50_000);
        assert_eq!(&text[640..655], b"00000000000640 ");
        assert_eq!(text[63], b'\n');
    }

    #[test]
    fn pieces_make_the_whole() {
        let whole = pattern(0, 1_000);
        for size in [1, 63, 64, 65, 333] {
            let pieces = (0..1_000).step_by(size).map(|at| pattern(at as u64, size));
            let joined: Vec<u8> = pieces.flatten().collect();
            assert_eq!(&joined[..1_000], &whole, "pieces of {size}");
        }
    }
}
