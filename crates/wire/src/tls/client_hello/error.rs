//! Why a `ClientHello` was refused: one variant per rule, each with a stable name and the sentence
//! for the log.

use super::{EXTENSIONS_MAX, PEEK_MAX_BYTES};

/// Why the start of a stream was refused as TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HelloError {
    /// RFC 8446 section 5.1: the first record is not a handshake; neither is SSL 2.0's (RFC 6176).
    NotTls,
    /// RFC 8446 section 5.1: another record within the handshake message.
    BadRecord,
    /// RFC 8446 section 5.1: empty or longer than 2^14.
    BadRecordLength,
    /// RFC 8446 section 4: the first handshake message is of another type.
    NotClientHello,
    /// A bound of Weir's own.
    TooLong,
    /// RFC 8446 section 4.1.2: a length exceeds what is left, or something is left over.
    BadMessage,
    /// RFC 8446 section 4.2.
    RepeatedExtension,
    /// A bound of Weir's own.
    TooManyExtensions,
    /// RFC 6066 section 3: a list of at least one name, at most one of them a host's.
    BadNameList,
    /// RFC 6066 section 3.
    BadServerName,
    /// RFC 7301 section 3.1.
    BadAlpn,
}

impl HelloError {
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
        const { assert!(PEEK_MAX_BYTES == 16 * 1024 && EXTENSIONS_MAX == 256) };
        match self {
            HelloError::NotTls => (
                "not_tls",
                "the first bytes do not begin a TLS handshake (cleartext HTTP on a TLS port?)",
            ),
            HelloError::BadRecord => {
                ("bad_record", "within the TLS ClientHello stands a record that is no part of it")
            }
            HelloError::BadRecordLength => {
                ("bad_record_length", "a TLS record is empty or longer than 16384 bytes")
            }
            HelloError::NotClientHello => {
                ("not_client_hello", "the first TLS message is not a ClientHello")
            }
            HelloError::TooLong => ("too_long", "the TLS ClientHello is longer than 16 KiB"),
            HelloError::BadMessage => {
                ("bad_message", "lengths within the TLS ClientHello do not fit together")
            }
            HelloError::RepeatedExtension => {
                ("repeated_extension", "the TLS ClientHello has an extension twice")
            }
            HelloError::TooManyExtensions => {
                ("too_many_extensions", "the TLS ClientHello has more than 256 extensions")
            }
            HelloError::BadNameList => (
                "bad_name_list",
                "the list of server names (SNI) is empty, broken or names two hosts",
            ),
            HelloError::BadServerName => {
                ("bad_server_name", "the server name (SNI) is not a host name")
            }
            HelloError::BadAlpn => ("bad_alpn", "the list of protocols (ALPN) is empty or broken"),
        }
    }
}

impl std::fmt::Display for HelloError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.detail())
    }
}

impl std::error::Error for HelloError {}
