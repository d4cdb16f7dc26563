//! SETTINGS (RFC 9113 section 6.5).

use crate::error::{Code, Violation};
use crate::frame::{MAX_31, PAYLOAD_MAX_BYTES};

const HEADER_TABLE_SIZE: u16 = 0x1;
const ENABLE_PUSH: u16 = 0x2;
const MAX_CONCURRENT_STREAMS: u16 = 0x3;
const INITIAL_WINDOW_SIZE: u16 = 0x4;
const MAX_FRAME_SIZE: u16 = 0x5;
const MAX_HEADER_LIST_SIZE: u16 = 0x6;
/// RFC 8441 section 3.
const ENABLE_CONNECT_PROTOCOL: u16 = 0x8;
/// RFC 9218 section 2.1.
const NO_RFC7540_PRIORITIES: u16 = 0x9;

/// The initial window of streams and connections (section 6.9.2).
pub(crate) const WINDOW_AT_FIRST: u32 = 65_535;

/// The peer's settings.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PeerSettings {
    pub(crate) header_table_bytes: usize,
    pub(crate) streams_max: u32,
    pub(crate) window: u32,
    pub(crate) frame_max_bytes: usize,
    pub(crate) extended_connect: bool,
    /// SETTINGS have arrived.
    pub(crate) arrived: bool,
}

impl Default for PeerSettings {
    fn default() -> PeerSettings {
        PeerSettings {
            header_table_bytes: crate::hpack::TABLE_MAX_BYTES,
            // No limit by default (section 6.5.2).
            streams_max: u32::MAX,
            window: WINDOW_AT_FIRST,
            frame_max_bytes: PAYLOAD_MAX_BYTES,
            extended_connect: false,
            arrived: false,
        }
    }
}

impl PeerSettings {
    /// Applies the payload of a SETTINGS frame.
    pub(crate) fn apply(&mut self, payload: &[u8], from_client: bool) -> Result<(), Violation> {
        let (settings, rest) = payload.as_chunks::<6>();
        if !rest.is_empty() {
            return Err(Violation::size("SETTINGS not a multiple of 6 bytes"));
        }
        for &[i1, i0, v3, v2, v1, v0] in settings {
            let value = u32::from_be_bytes([v3, v2, v1, v0]);
            match u16::from_be_bytes([i1, i0]) {
                HEADER_TABLE_SIZE => self.header_table_bytes = value as usize,
                ENABLE_PUSH if value > 1 || (value == 1 && !from_client) => {
                    return Err(Violation::protocol("ENABLE_PUSH is invalid"));
                }
                MAX_CONCURRENT_STREAMS => self.streams_max = value,
                INITIAL_WINDOW_SIZE if value > MAX_31 => {
                    let rule = "INITIAL_WINDOW_SIZE above 2^31-1";
                    return Err(Violation::new(Code::FLOW_CONTROL_ERROR, rule));
                }
                INITIAL_WINDOW_SIZE => self.window = value,
                MAX_FRAME_SIZE if !(1 << 14..1 << 24).contains(&value) => {
                    return Err(Violation::protocol("MAX_FRAME_SIZE is invalid"));
                }
                MAX_FRAME_SIZE => self.frame_max_bytes = value as usize,
                ENABLE_CONNECT_PROTOCOL if value > 1 || (value == 0 && self.extended_connect) => {
                    return Err(Violation::protocol("ENABLE_CONNECT_PROTOCOL is invalid"));
                }
                ENABLE_CONNECT_PROTOCOL => self.extended_connect = value == 1,
                NO_RFC7540_PRIORITIES if value > 1 => {
                    return Err(Violation::protocol("NO_RFC7540_PRIORITIES is invalid"));
                }
                // Unknown settings are ignored (section 6.5.2); MAX_HEADER_LIST_SIZE is advisory.
                _ => {}
            }
        }
        self.arrived = true;
        Ok(())
    }
}

/// The settings that this side announces.
pub(crate) struct Announced {
    pub(crate) is_client: bool,
    pub(crate) streams_max: u32,
    pub(crate) window: u32,
    pub(crate) head_max_bytes: u32,
}

impl Announced {
    pub(crate) fn payload(&self) -> Vec<u8> {
        let role: &[(u16, u32)] = if self.is_client {
            &[(ENABLE_PUSH, 0)]
        } else {
            &[(MAX_CONCURRENT_STREAMS, self.streams_max), (ENABLE_CONNECT_PROTOCOL, 1)]
        };
        let common = [
            (INITIAL_WINDOW_SIZE, self.window),
            (MAX_HEADER_LIST_SIZE, self.head_max_bytes),
            (NO_RFC7540_PRIORITIES, 1),
        ];
        let all = role.iter().chain(&common);
        all.flat_map(|(id, value)| [&id.to_be_bytes()[..], &value.to_be_bytes()].concat()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(id: u16, value: u32) -> Vec<u8> {
        [&id.to_be_bytes()[..], &value.to_be_bytes()].concat()
    }

    #[test]
    fn values_out_of_range_are_refused() {
        for (id, value, code) in [
            (ENABLE_PUSH, 2, Code::PROTOCOL_ERROR),
            (INITIAL_WINDOW_SIZE, 1 << 31, Code::FLOW_CONTROL_ERROR),
            (MAX_FRAME_SIZE, 16_383, Code::PROTOCOL_ERROR),
            (MAX_FRAME_SIZE, 1 << 24, Code::PROTOCOL_ERROR),
            (ENABLE_CONNECT_PROTOCOL, 2, Code::PROTOCOL_ERROR),
            (NO_RFC7540_PRIORITIES, 2, Code::PROTOCOL_ERROR),
        ] {
            let refused = PeerSettings::default().apply(&one(id, value), true).unwrap_err();
            assert_eq!(refused.code, code, "{id} = {value}");
        }
        let cut = PeerSettings::default().apply(&[0; 5], true).unwrap_err();
        assert_eq!(cut.code, Code::FRAME_SIZE_ERROR);
        // A server must not offer push.
        assert!(PeerSettings::default().apply(&one(ENABLE_PUSH, 1), false).is_err());
        assert!(PeerSettings::default().apply(&one(ENABLE_PUSH, 1), true).is_ok());
    }

    #[test]
    fn the_last_value_counts_and_unknown_ones_do_not() {
        let mut peer = PeerSettings::default();
        let all = [one(MAX_CONCURRENT_STREAMS, 1), one(0x99, 7), one(MAX_CONCURRENT_STREAMS, 5)];
        peer.apply(&all.concat(), true).unwrap();
        assert_eq!((peer.streams_max, peer.arrived), (5, true));
        peer.apply(&one(ENABLE_CONNECT_PROTOCOL, 1), false).unwrap();
        // RFC 8441 section 3.
        assert!(peer.apply(&one(ENABLE_CONNECT_PROTOCOL, 0), false).is_err());
    }
}
