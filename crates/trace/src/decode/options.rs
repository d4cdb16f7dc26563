//! Parses TCP options (RFC 9293, 7323, 2018, 7413, 8684), as far as the analysis needs them.

/// Blocks that a SACK option can hold.
pub const SACK_BLOCKS_MAX: usize = 4;

/// What a segment's options say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The largest segment that its sender wants, in bytes.
    pub mss: Option<u16>,
    /// By how many bits windows are shifted.
    pub window_scale: Option<u8>,
    /// Selective acknowledgements are permitted.
    pub sack_permitted: bool,
    /// Timestamps are used.
    pub has_timestamps: bool,
    /// A Fast Open cookie or a request for one.
    pub fast_open: Option<FastOpen>,
    /// How many blocks of `sack` hold something.
    pub sack_count: u8,
    /// The blocks: first byte, and the one behind the last.
    pub sack: [(u32, u32); SACK_BLOCKS_MAX],
}

/// What a Fast Open option holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FastOpen {
    /// No cookie: one is asked for.
    Request,
    /// A cookie.
    Cookie,
}

impl Options {
    /// Reads the bytes behind TCP's fixed header: 40 at most, since the header's length has four
    /// bits.
    pub(super) fn read(bytes: &[u8]) -> Options {
        let mut options = Options::default();
        let mut rest = bytes;
        while let [kind, after @ ..] = rest {
            match kind {
                0 => break,
                1 => rest = after,
                _ => {
                    let length = usize::from(after.first().copied().unwrap_or(0));
                    let Some(value) = rest.get(2..length) else { break };
                    options.take(*kind, value);
                    rest = &rest[length..];
                }
            }
        }
        options
    }

    fn take(&mut self, kind: u8, value: &[u8]) {
        match (kind, value) {
            (2, [high, low]) => self.mss = Some(u16::from_be_bytes([*high, *low])),
            (3, [shift]) => self.window_scale = Some(*shift),
            (4, []) => self.sack_permitted = true,
            (5, blocks) => {
                for block in blocks.chunks_exact(8).take(SACK_BLOCKS_MAX) {
                    let word = |at: usize| crate::pcap::word(block, at, false);
                    self.sack[usize::from(self.sack_count)] = (word(0), word(4));
                    self.sack_count += 1;
                    if usize::from(self.sack_count) == SACK_BLOCKS_MAX {
                        break;
                    }
                }
            }
            (8, value) if value.len() == 8 => self.has_timestamps = true,
            // Kinds 253 and 254: the experiment that became kind 34, by its number (RFC 6994, RFC 7413
            // appendix A).
            (34, []) | (253 | 254, [0xf9, 0x89]) => self.fast_open = Some(FastOpen::Request),
            (34, _) | (253 | 254, [0xf9, 0x89, ..]) => self.fast_open = Some(FastOpen::Cookie),
            _ => {}
        }
    }

    /// The blocks that its receiver holds beyond what it acknowledges.
    pub fn sack_blocks(&self) -> &[(u32, u32)] {
        &self.sack[..usize::from(self.sack_count)]
    }
}
