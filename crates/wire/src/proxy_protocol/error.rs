//! Why a PROXY header was refused: one variant per rule, each with a stable name and the sentence
//! for the log.

use super::{UNIQUE_ID_MAX_BYTES, V1_MAX_BYTES, V2_MAX_BYTES};

/// Why a PROXY header was refused. Sections are those of `HAProxy`'s `doc/proxy-protocol.txt`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ProxyError {
    /// Section 2.2: starts like neither version.
    NotProxy,
    /// Section 2.1.
    LineTooLong,
    /// Section 2.1: a single CR or LF does not end the line.
    BareLineEnd,
    /// Section 2.1.
    BadProtocol,
    /// Section 2.1: source, destination and two ports, one space before each.
    BadLine,
    /// Section 2.1.
    BadAddress,
    /// Section 2.1: decimal, up to 65535, without leading zeros.
    BadPort,
    /// Section 2.2.
    BadVersion,
    /// Section 2.2.
    BadCommand,
    /// Section 2.2.
    BadFamily,
    /// A bound of Weir's own.
    HeaderTooLong,
    /// Section 2.2: shorter than its family's addresses.
    AddressesCutOff,
    /// Section 2.2: a field's length exceeds what is left.
    FieldCutOff,
    /// Two fields of one type are ambiguous.
    RepeatedField,
    /// Sections 2.2.2 and 2.2.6.
    BadText,
    /// Section 2.2.5.
    UniqueIdTooLong,
    /// Section 2.2.3.
    BadChecksum,
}

impl ProxyError {
    /// Returns the stable name used in logs and metric labels.
    pub fn name(self) -> &'static str {
        self.parts().0
    }

    /// Returns the violated rule, as a sentence without its full stop.
    pub fn detail(self) -> &'static str {
        self.parts().1
    }

    fn parts(self) -> (&'static str, &'static str) {
        // The texts below contain these bounds.
        const { assert!(V1_MAX_BYTES == 107 && V2_MAX_BYTES == 4096 && UNIQUE_ID_MAX_BYTES == 128) };
        match self {
            ProxyError::NotProxy => (
                "not_proxy",
                "the connection does not begin with a PROXY protocol header (is the peer set to send one?)",
            ),
            ProxyError::LineTooLong => {
                ("line_too_long", "the PROXY line does not end within 107 bytes")
            }
            ProxyError::BareLineEnd => {
                ("bare_line_end", "the PROXY line has a CR or LF that is not part of CRLF")
            }
            ProxyError::BadProtocol => {
                ("bad_protocol", "the PROXY line names neither TCP4, TCP6 nor UNKNOWN")
            }
            ProxyError::BadLine => (
                "bad_line",
                "the PROXY line is not two addresses and two ports with one space before each",
            ),
            ProxyError::BadAddress => {
                ("bad_address", "the PROXY line has an address that is none of its family")
            }
            ProxyError::BadPort => {
                ("bad_port", "the PROXY line has a port that is not a number from 0 to 65535")
            }
            ProxyError::BadVersion => ("bad_version", "the binary PROXY header's version is not 2"),
            ProxyError::BadCommand => {
                ("bad_command", "the PROXY header's command is neither LOCAL nor PROXY")
            }
            ProxyError::BadFamily => {
                ("bad_family", "the PROXY header's address family or transport is not assigned")
            }
            ProxyError::HeaderTooLong => {
                ("header_too_long", "the PROXY header is longer than 4096 bytes")
            }
            ProxyError::AddressesCutOff => {
                ("addresses_cut_off", "the PROXY header is shorter than its family's addresses")
            }
            ProxyError::FieldCutOff => {
                ("field_cut_off", "a field of the PROXY header is longer than what is left for it")
            }
            ProxyError::RepeatedField => {
                ("repeated_field", "a field of the PROXY header is there twice")
            }
            ProxyError::BadText => {
                ("bad_text", "a name in the PROXY header is not UTF-8 or has control characters")
            }
            ProxyError::UniqueIdTooLong => {
                ("unique_id_too_long", "the PROXY header's unique id is longer than 128 bytes")
            }
            ProxyError::BadChecksum => {
                ("bad_checksum", "the PROXY header's CRC32C is not that of its bytes")
            }
        }
    }
}

impl std::fmt::Display for ProxyError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.detail())
    }
}

impl std::error::Error for ProxyError {}
