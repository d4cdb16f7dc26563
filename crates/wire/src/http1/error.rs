//! Why a message was refused: one variant per rule, each with a stable name, the sentence for log
//! and response, and (for requests) the status of the response.

macro_rules! rules {
    ($(#[$top:meta])* $error:ident, $($(#[$doc:meta])+ $variant:ident = $status:literal, $name:literal, $detail:literal;)+) => {
        $(#[$top])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $error { $($(#[$doc])+ $variant,)+ }

        impl $error {
            /// Every rule, in order of the enum.
            pub const ALL: &'static [$error] = &[$($error::$variant,)+];

            /// Returns the status of the response.
            pub fn status(self) -> u16 {
                match self { $($error::$variant => $status,)+ }
            }

            /// Returns the stable name used in logs and metric labels.
            pub fn name(self) -> &'static str {
                match self { $($error::$variant => $name,)+ }
            }

            /// Returns the violated rule, as a sentence without its full stop.
            pub fn detail(self) -> &'static str {
                match self { $($error::$variant => $detail,)+ }
            }
        }

        impl std::fmt::Display for $error {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.detail())
            }
        }

        impl std::error::Error for $error {}
    };
}

rules! {
    /// Why a request head was refused. The connection cannot be used further: it is unknown where
    /// the next request begins.
    RequestError,
    /// RFC 9112 section 2.2: empty lines before a request are skipped, but only a limited number.
    TooManyEmptyLines = 400, "too_many_empty_lines", "too many empty lines before the request";
    /// RFC 9112 section 2.2.
    BareLineFeed = 400, "bare_line_feed", "a line ends in LF without CR";
    /// RFC 9112 section 2.2.
    BareCarriageReturn = 400, "bare_carriage_return", "a CR is not followed by LF";
    /// RFC 9112 section 3; most often TLS sent to a plain-text port.
    NotHttp = 400, "not_http", "the first byte cannot begin an HTTP request (TLS on a plain-text port?)";
    /// RFC 9112 section 3.
    MissingVersion = 400, "missing_version", "the request line does not end in an HTTP version";
    /// RFC 9110 section 2.5.
    VersionNotSupported = 505, "version_not_supported", "the HTTP version is neither 1.0 nor 1.1";
    /// RFC 9110 section 9.1: a method is a token.
    BadMethod = 400, "bad_method", "the method is not a token";
    /// RFC 9112 section 3: longer than any known method.
    MethodTooLong = 501, "method_too_long", "the method is longer than 32 bytes";
    /// RFC 9110 section 9.3.6: Weir is not a tunnel to arbitrary hosts.
    ConnectNotSupported = 501, "connect_not_supported", "CONNECT is not served here";
    /// RFC 9112 section 3.
    TargetTooLong = 414, "target_too_long", "the request target is longer than is accepted";
    /// RFC 9112 section 3.2: no space, control character, non-ASCII byte or fragment.
    BadTarget = 400, "bad_target", "the request target has a character that must not stand there";
    /// RFC 9112 section 3.2: none of the four forms.
    BadTargetForm = 400, "bad_target_form", "the request target is neither a path nor an http URI";
    /// RFC 9112 section 3.2.4.
    AsteriskWithoutOptions = 400, "asterisk_without_options", "the target * belongs to OPTIONS only";
    /// RFC 9112 section 3.2.2; RFC 9110 section 4.2.4 for user information.
    BadTargetAuthority = 400, "bad_target_authority", "the absolute target's authority is not a host with an optional port";
    /// RFC 9112 section 3.2.
    MissingHost = 400, "missing_host", "an HTTP/1.1 request without Host";
    /// RFC 9112 section 3.2.
    RepeatedHost = 400, "repeated_host", "more than one Host field";
    /// RFC 9112 section 3.2.
    BadHost = 400, "bad_host", "the Host field is not a host with an optional port";
    /// RFC 9112 section 5.
    HeadTooLarge = 431, "head_too_large", "the request head is larger than is accepted";
    /// RFC 6585 section 5.
    TooManyFields = 431, "too_many_fields", "the request has more fields than are accepted";
    /// RFC 9112 section 5.
    MissingColon = 400, "missing_colon", "a field line has no colon";
    /// RFC 9110 section 5.1.
    BadFieldName = 400, "bad_field_name", "a field name is empty or not a token";
    /// RFC 9112 section 5.1.
    SpaceBeforeColon = 400, "space_before_colon", "whitespace between field name and colon";
    /// RFC 9112 sections 2.2 and 5.2.
    LineFolding = 400, "line_folding", "a field line begins with whitespace (obsolete line folding)";
    /// RFC 9110 section 5.5.
    BadFieldValue = 400, "bad_field_value", "a control character in a field value";
    /// RFC 9110 section 8.6.
    BadContentLength = 400, "bad_content_length", "Content-Length is not a decimal number that fits";
    /// RFC 9110 section 8.6 lets a recipient merge equal lengths; Weir refuses them, as no correct
    /// client sends them and the next hop may use another one.
    RepeatedContentLength = 400, "repeated_content_length", "more than one Content-Length";
    /// RFC 9112 section 6.1.
    LengthAndTransferEncoding = 400, "length_and_transfer_encoding", "both Content-Length and Transfer-Encoding";
    /// RFC 9112 section 6.1.
    TransferEncodingIn10 = 400, "transfer_encoding_in_1_0", "Transfer-Encoding in an HTTP/1.0 request";
    /// RFC 9112 section 6.3: chunked must be last, occur once and have no parameter.
    BadTransferEncoding = 400, "bad_transfer_encoding", "Transfer-Encoding does not end in chunked, or names it more than once";
    /// RFC 9112 section 6.1.
    UnknownTransferCoding = 501, "unknown_transfer_coding", "a transfer coding other than chunked";
    /// RFC 9110 section 7.6.1; the bound is Weir's.
    TooManyConnectionOptions = 400, "too_many_connection_options", "Connection lists more than 32 options";
    /// RFC 9110 section 10.1.1.
    UnknownExpectation = 417, "unknown_expectation", "an expectation other than 100-continue";
}

rules! {
    /// Why a server's response head was refused. The status is the one sent to the client: always
    /// 502.
    ResponseError,
    /// RFC 9112 section 2.2.
    BareLineFeed = 502, "bare_line_feed", "a line ends in LF without CR";
    /// RFC 9112 section 2.2.
    BareCarriageReturn = 502, "bare_carriage_return", "a CR is not followed by LF";
    /// RFC 9112 section 4.
    NotHttp = 502, "not_http", "the response does not begin with HTTP/";
    /// RFC 9110 section 2.5.
    VersionNotSupported = 502, "version_not_supported", "the HTTP version is neither 1.0 nor 1.1";
    /// RFC 9112 section 4; RFC 9110 section 15.
    BadStatusLine = 502, "bad_status_line", "the status line is not a version, three digits from 100 on and a reason";
    /// RFC 9112 section 5.
    HeadTooLarge = 502, "head_too_large", "the response head is larger than is accepted";
    /// RFC 9112 section 5.
    TooManyFields = 502, "too_many_fields", "the response has more fields than are accepted";
    /// RFC 9112 section 5.
    MissingColon = 502, "missing_colon", "a field line has no colon";
    /// RFC 9110 section 5.1.
    BadFieldName = 502, "bad_field_name", "a field name is empty or not a token";
    /// RFC 9112 section 5.2: a gateway may refuse it.
    LineFolding = 502, "line_folding", "a field line begins with whitespace (obsolete line folding)";
    /// RFC 9110 section 5.5.
    BadFieldValue = 502, "bad_field_value", "a control character in a field value";
    /// RFC 9110 section 8.6.
    BadContentLength = 502, "bad_content_length", "Content-Length is not a decimal number that fits";
    /// RFC 9112 section 6.3. Equal ones are merged into one.
    DifferingContentLengths = 502, "differing_content_lengths", "Content-Length fields that differ";
    /// RFC 9112 section 6.3: may be response splitting.
    LengthAndTransferEncoding = 502, "length_and_transfer_encoding", "both Content-Length and Transfer-Encoding";
    /// RFC 9112 section 6.1.
    TransferEncodingIn10 = 502, "transfer_encoding_in_1_0", "Transfer-Encoding in an HTTP/1.0 response";
    /// RFC 9112 section 6.3. Weir cannot decode an unknown coding.
    BadTransferEncoding = 502, "bad_transfer_encoding", "a Transfer-Encoding other than chunked";
    /// RFC 9110 section 7.6.1; the bound is Weir's.
    TooManyConnectionOptions = 502, "too_many_connection_options", "Connection lists more than 32 options";
}

rules! {
    /// Why a chunked body was refused. The status is for a request body; for a response the error
    /// means that the body ended prematurely. The connection cannot be used further.
    ChunkError,
    /// RFC 9112 section 7.1: `1*HEXDIG`, nothing before it.
    BadSize = 400, "bad_chunk_size", "a chunk size is not a hexadecimal number";
    /// RFC 9112 section 7.1: recipients must guard against overflow.
    SizeTooLarge = 400, "chunk_size_too_large", "a chunk size does not fit in 63 bits";
    /// RFC 9112 section 7.1.1.
    BadExtension = 400, "bad_chunk_extension", "a character that must not stand in a chunk extension";
    /// RFC 9112 section 7.1.1: recipients ought to limit their length.
    ExtensionTooLong = 400, "chunk_extension_too_long", "chunk extensions out of proportion to the data";
    /// RFC 9112 section 7.1.
    MissingLineEnd = 400, "missing_line_end", "no CRLF after a chunk's size or data";
    /// RFC 9112 section 7.1.2.
    BadTrailer = 400, "bad_trailer", "a trailer field is malformed";
    /// RFC 9112 section 7.1.2; the bound is the caller's.
    TrailersTooLarge = 400, "trailers_too_large", "the trailer section is larger than is accepted";
}

/// Errors of heads in either direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HeadFault {
    BareLineFeed,
    BareCarriageReturn,
    StartLineTooLong,
    HeadTooLarge,
    TooManyFields,
    MissingColon,
    BadFieldName,
    SpaceBeforeColon,
    LineFolding,
    BadFieldValue,
    TooManyConnectionOptions,
}

impl From<HeadFault> for RequestError {
    fn from(fault: HeadFault) -> RequestError {
        match fault {
            HeadFault::BareLineFeed => RequestError::BareLineFeed,
            HeadFault::BareCarriageReturn => RequestError::BareCarriageReturn,
            HeadFault::StartLineTooLong => RequestError::TargetTooLong,
            HeadFault::HeadTooLarge => RequestError::HeadTooLarge,
            HeadFault::TooManyFields => RequestError::TooManyFields,
            HeadFault::MissingColon => RequestError::MissingColon,
            HeadFault::BadFieldName => RequestError::BadFieldName,
            HeadFault::SpaceBeforeColon => RequestError::SpaceBeforeColon,
            HeadFault::LineFolding => RequestError::LineFolding,
            HeadFault::BadFieldValue => RequestError::BadFieldValue,
            HeadFault::TooManyConnectionOptions => RequestError::TooManyConnectionOptions,
        }
    }
}

impl From<HeadFault> for ResponseError {
    fn from(fault: HeadFault) -> ResponseError {
        match fault {
            HeadFault::BareLineFeed => ResponseError::BareLineFeed,
            HeadFault::BareCarriageReturn => ResponseError::BareCarriageReturn,
            HeadFault::StartLineTooLong | HeadFault::HeadTooLarge => ResponseError::HeadTooLarge,
            HeadFault::TooManyFields => ResponseError::TooManyFields,
            HeadFault::MissingColon => ResponseError::MissingColon,
            HeadFault::BadFieldName | HeadFault::SpaceBeforeColon => ResponseError::BadFieldName,
            HeadFault::LineFolding => ResponseError::LineFolding,
            HeadFault::BadFieldValue => ResponseError::BadFieldValue,
            HeadFault::TooManyConnectionOptions => ResponseError::TooManyConnectionOptions,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_labels() {
        let mut names: Vec<_> = RequestError::ALL.iter().map(|rule| rule.name()).collect();
        assert!(
            names
                .iter()
                .all(|n| { n.bytes().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'_')) })
        );
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), RequestError::ALL.len());
        assert!(ResponseError::ALL.iter().all(|rule| rule.status() == 502));
    }
}
