//! The settings of the access log: where lines go, which are written, and what they contain.

use std::fmt;
use std::path::PathBuf;

use crate::{Address, Cause, Fault, HostPort, UnixPath};

/// What is logged and where.
#[derive(Clone, Debug, PartialEq)]
pub struct Log {
    /// Destination of the access log.
    pub access: AccessLog,
    /// Format of the lines.
    pub format: LogFormat,
    /// The members of a JSON line, in order; `None`: those that every line has by default.
    pub fields: Option<Vec<LogField>>,
    /// The query parameters whose values are not logged.
    pub redact_query: RedactQuery,
    /// Which lines are written.
    pub sample: LogSample,
    /// The share of exchanges, 0.0 to 1.0, for which TCP statistics are read on both sides.
    pub tcp_info: f64,
    /// Whether servers with little traffic are sampled more often, for metrics and findings only:
    /// true if the file does not set `tcp_info`.
    pub tcp_info_raised: bool,
    /// The share of exchanges, 0.0 to 1.0, whose access line contains the balancing decisions.
    pub decisions: f64,
    /// The file with the token by which a request may ask for the same; `None`: the admin API's
    /// token.
    pub explain_token_file: Option<PathBuf>,
}

impl Log {
    /// Returns settings that log nothing.
    pub fn none() -> Log {
        Log {
            access: AccessLog::Off,
            format: LogFormat::Json,
            fields: None,
            redact_query: RedactQuery::Nothing,
            sample: LogSample::default(),
            tcp_info: 0.0,
            tcp_info_raised: false,
            decisions: 0.0,
            explain_token_file: None,
        }
    }
}

/// Destination of access log lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccessLog {
    /// Nowhere.
    Off,
    /// Standard output.
    Stdout,
    /// Appended to a file.
    File(PathBuf),
    /// Sent to a syslog collector.
    Syslog(Syslog),
    /// Sent to the OpenTelemetry collector of the configuration.
    Otlp,
}

crate::word_of! {
    AccessLog {
        Off = "off",
        Stdout = "stdout",
        File(_) = "file",
        Syslog(_) = "syslog",
        Otlp = "otlp",
    }
}

/// Writes the destination as a configuration has it: `off`, `stdout`, `otlp`, the file's path, or the
/// collector.
impl fmt::Display for AccessLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AccessLog::Off | AccessLog::Stdout | AccessLog::Otlp => f.write_str(self.as_str()),
            AccessLog::File(path) => path.display().fmt(f),
            AccessLog::Syslog(syslog) => syslog.fmt(f),
        }
    }
}

/// A syslog collector, and how messages to it are marked (RFC 5424).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Syslog {
    /// Where it is.
    pub to: SyslogTarget,
    /// The messages' facility.
    pub facility: Facility,
    /// The messages' APP-NAME.
    pub app_name: String,
}

impl fmt::Display for Syslog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}, {})", self.to, self.facility.as_str(), self.app_name)
    }
}

/// The address of a syslog collector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SyslogTarget {
    /// One datagram for each message (RFC 5426).
    Udp(HostPort),
    /// A connection on which messages are preceded by their length (RFC 6587).
    Tcp(HostPort),
    /// A Unix datagram socket on this machine.
    Unix(UnixPath),
}

/// Writes it as in a configuration.
impl fmt::Display for SyslogTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SyslogTarget::Udp(target) => write!(f, "udp://{target}"),
            SyslogTarget::Tcp(target) => write!(f, "tcp://{target}"),
            SyslogTarget::Unix(path) => Address::Unix(*path).fmt(f),
        }
    }
}

crate::words! {
    /// The facility of a syslog message (RFC 5424 section 6.2.1).
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Facility {
        /// Number 1.
        User = "user",
        /// Number 3.
        Daemon = "daemon",
        /// Number 16.
        Local0 = "local0",
        /// Number 17.
        Local1 = "local1",
        /// Number 18.
        Local2 = "local2",
        /// Number 19.
        Local3 = "local3",
        /// Number 20.
        Local4 = "local4",
        /// Number 21.
        Local5 = "local5",
        /// Number 22.
        Local6 = "local6",
        /// Number 23.
        Local7 = "local7",
    }
}

impl Facility {
    /// Returns its number.
    pub fn number(self) -> u8 {
        match self {
            Facility::User => 1,
            Facility::Daemon => 3,
            Facility::Local0 => 16,
            Facility::Local1 => 17,
            Facility::Local2 => 18,
            Facility::Local3 => 19,
            Facility::Local4 => 20,
            Facility::Local5 => 21,
            Facility::Local6 => 22,
            Facility::Local7 => 23,
        }
    }
}

crate::words! {
    /// Format of log lines.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum LogFormat {
        /// One JSON object per line.
        Json = "json",
        /// Text for people.
        Text = "text",
        /// Apache's and nginx's combined log format.
        Combined = "combined",
        /// HAProxy's formats `httplog` and `tcplog`.
        Haproxy = "haproxy",
    }
}

/// A member of a JSON line, chosen by the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogField {
    /// One that Weir knows by itself.
    Member(LogMember),
    /// A field of the request as the client sent it; its name in lower case.
    RequestHeader(String),
    /// A field of the response as the server sent it; its name in lower case.
    ResponseHeader(String),
}

impl LogField {
    /// What stands before the name of a request's field.
    pub const REQUEST_HEADER: &'static str = "request_header.";
    /// What stands before the name of a response's field.
    pub const RESPONSE_HEADER: &'static str = "response_header.";
}

/// Writes it as in a configuration, which is also the name of its member.
impl fmt::Display for LogField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LogField::Member(member) => f.write_str(member.as_str()),
            LogField::RequestHeader(name) => write!(f, "{}{name}", LogField::REQUEST_HEADER),
            LogField::ResponseHeader(name) => write!(f, "{}{name}", LogField::RESPONSE_HEADER),
        }
    }
}

crate::words! {
    /// A named member of a JSON line.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum LogMember {
        /// When the exchange ended.
        Time = "time",
        /// The value of X-Request-Id.
        RequestId = "request_id",
        /// The client's address.
        Client = "client",
        /// The proxy before Weir.
        Peer = "peer",
        /// The authenticated user.
        User = "user",
        /// The listener.
        Listener = "listener",
        /// The request's method.
        Method = "method",
        /// The requested host.
        Host = "host",
        /// The path without its query.
        Path = "path",
        /// The client's protocol.
        Protocol = "protocol",
        /// The client's TLS parameters.
        Tls = "tls",
        /// The status sent to the client.
        Status = "status",
        /// The status of a gRPC response.
        GrpcStatus = "grpc_status",
        /// Why it ended.
        Cause = "cause",
        /// Who is responsible.
        Fault = "fault",
        /// Detail about the cause.
        Detail = "detail",
        /// The service.
        Service = "service",
        /// The server of the last attempt.
        Server = "server",
        /// That server's zone.
        Zone = "zone",
        /// How often it was sent to a server.
        Attempts = "attempts",
        /// The earlier attempts, which failed.
        FailedAttempts = "failed_attempts",
        /// Why a failed attempt was not retried.
        NotRetried = "not_retried",
        /// Whether the last attempt used a kept connection.
        Reused = "reused",
        /// The time in a queue.
        QueueMs = "queue_ms",
        /// The time to connect.
        ConnectMs = "connect_ms",
        /// The time until the response began.
        FirstByteMs = "first_byte_ms",
        /// The whole time.
        TotalMs = "total_ms",
        /// The size of the request body.
        RequestBytes = "request_bytes",
        /// The size of the response body.
        ResponseBytes = "response_bytes",
        /// TCP statistics.
        Tcp = "tcp",
        /// The balancing decisions.
        Decision = "decision",
        /// The route that matched. Not in a line by default, nor are those below.
        Route = "route",
        /// The query.
        Query = "query",
        /// The client's User-Agent.
        UserAgent = "user_agent",
        /// The share of such lines that is written.
        SampleRate = "sample_rate",
    }
}

impl LogMember {
    /// How many of [`LogMember::ALL`], the first, a line has by default.
    pub const DEFAULTS: usize = LogMember::Decision as usize + 1;
}

/// The query parameters whose values are replaced in every line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RedactQuery {
    /// None.
    Nothing,
    /// Those with one of these names, in lower case and not percent-encoded; sorted.
    Names(Vec<String>),
    /// All.
    Everything,
}

impl RedactQuery {
    /// The longest name.
    pub const NAME_MAX_BYTES: usize = 128;
}

/// A kind of exchange of which a share is logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SampleClass {
    /// Exchanges without a failure: no one is at fault, and the status is below 400.
    Ok,
    /// Those with a status of this class, 1 to 5. Below 4 only if no one is at fault.
    Status(u8),
    /// Those that ended with this cause.
    Cause(Cause),
}

impl SampleClass {
    /// The word of [`SampleClass::Ok`].
    pub const OK: &'static str = "ok";
}

impl fmt::Display for SampleClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SampleClass::Ok => f.write_str(SampleClass::OK),
            SampleClass::Status(class) => write!(f, "{class}xx"),
            SampleClass::Cause(cause) => f.write_str(cause.name()),
        }
    }
}

/// Which share of the lines is written. Everything that has no entry is written.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LogSample(pub Vec<(SampleClass, f64)>);

impl LogSample {
    /// Returns the share, 0.0 to 1.0, of exchanges with this result that are logged: that of the cause,
    /// else of the class of status, else of successes, else all. A gRPC call that failed is no success
    /// although its status is 200.
    pub fn share(&self, cause: Cause, status: Option<u16>, grpc_status: Option<u8>) -> f64 {
        let find =
            |wanted| self.0.iter().find(|(class, _)| *class == wanted).map(|(_, share)| *share);
        let class = status.map_or(0, |status| status / 100) as u8;
        let is_success = class < 4
            && matches!(cause.fault(), Fault::None)
            && grpc_status.is_none_or(|status| status == 0);
        find(SampleClass::Cause(cause))
            .or_else(|| find(SampleClass::Status(class)).filter(|_| is_success || class >= 4))
            .or_else(|| find(SampleClass::Ok).filter(|_| is_success))
            .unwrap_or(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_logged_unless_they_have_an_entry_of_their_own() {
        let sample = LogSample(vec![
            (SampleClass::Ok, 0.01),
            (SampleClass::Status(2), 0.02),
            (SampleClass::Status(4), 0.1),
            (SampleClass::Cause(Cause::RateLimited), 0.0),
        ]);
        for (cause, status, grpc, expected) in [
            (Cause::Completed, Some(200), None, 0.02),
            (Cause::Completed, Some(200), Some(0), 0.02),
            (Cause::Completed, Some(200), Some(14), 1.0),
            (Cause::Completed, Some(304), None, 0.01),
            (Cause::Redirected, Some(302), None, 0.01),
            // A tunnel in TCP mode.
            (Cause::Completed, None, None, 0.01),
            (Cause::Completed, Some(404), None, 0.1),
            (Cause::Completed, Some(500), None, 1.0),
            (Cause::Maintenance, Some(503), None, 1.0),
            // Cut off after its head.
            (Cause::HttpResponseIncomplete, Some(200), None, 1.0),
            (Cause::ClientClosed, None, None, 1.0),
            (Cause::RateLimited, Some(429), None, 0.0),
            (Cause::HttpRequestError, Some(400), None, 0.1),
        ] {
            let share = sample.share(cause, status, grpc);
            assert!((share - expected).abs() < 1e-9, "{} {status:?}: {share}", cause.name());
        }
        assert!((LogSample::default().share(Cause::Completed, Some(200), None) - 1.0).abs() < 1e-9);
    }
}
