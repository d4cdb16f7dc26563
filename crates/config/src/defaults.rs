//! Default values: every default, once, with its reason. The reader, the schema and the reference
//! take them from here.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

const fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}

/// Two descriptors each; a hard limit of 65,536 descriptors still holds half of it.
pub(crate) const CONNECTIONS_MAX: u64 = 32_768;
/// A thousand of the largest bodies that `retries.body_kept_max` allows by default.
pub(crate) const REQUEST_BUFFERS_MAX_BYTES: u64 = 64_000_000;
/// Forty-two concurrent responses with zstd, or a hundred and twenty-eight with gzip.
pub(crate) const COMPRESSION_MEMORY_MAX_BYTES: u64 = 64_000_000;
/// A thousand of the longest bodies that `mirror` copies by default.
pub(crate) const MIRROR_MEMORY_MAX_BYTES: u64 = 64_000_000;
/// A day of about a thousand servers.
pub(crate) const HISTORY_MEMORY_MAX_BYTES: u64 = 64_000_000;
/// On four megabytes of source code, gzip yields 27 % at 77 MB/s, zstd 28 % at 178 MB/s, and br the
/// same at 53 MB/s; br is for those who want its 25 % at 27 MB/s.
pub(crate) const COMPRESS_CODINGS: &[&str] = &["zstd", "gzip"];
/// The text formats of the web.
pub(crate) const COMPRESS_TYPES: &[&str] = &[
    "text/*",
    "application/json",
    "application/javascript",
    "application/xml",
    "application/wasm",
    "image/svg+xml",
    "*/*+json",
    "*/*+xml",
];
/// Below this, the response fits in one packet either way.
pub(crate) const COMPRESS_LENGTH_MIN: u64 = 1_000;
/// Less than the 30 s after which orchestrators commonly kill would cut off requests that the
/// response timeout still allows.
pub(crate) const DRAIN_MAX: Duration = secs(30);
/// Without a health check in front of Weir that sees it, a delay only makes restarts longer.
pub(crate) const DRAIN_DELAY: Duration = Duration::ZERO;
/// The running configuration matches the file: otherwise a forgotten edit would take effect at some
/// restart, long after it was made.
pub(crate) const WATCH: bool = true;
/// Weir's user and its group may connect to a listener's Unix socket; wider access is a decision.
pub(crate) const SOCKET_MODE: &str = "660";
/// Loopback: without TLS, the admin API must not be reachable from other machines.
pub(crate) const ADMIN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 9900);

/// Measured (`scripts/bench-log-cost`): reading the statistics of both connections takes 1.1 µs of
/// CPU, where a small request takes 13. One in a hundred costs less than a thousandth, and a server
/// with ten requests a second still has its six samples a minute.
pub(crate) const TCP_INFO: f64 = 0.01;
/// For debugging only.
pub(crate) const DECISIONS: f64 = 0.0;

/// When one fails, the results of the other remain.
pub(crate) const FLEET_PROBERS: u64 = 2;

pub(crate) const DOCTOR: bool = true;
/// A few milliseconds of CPU time each; shorter events still show in the counters.
pub(crate) const DOCTOR_INTERVAL: Duration = secs(10);
/// Each server would have about 80 series.
pub(crate) const SERVER_HISTOGRAMS: bool = false;
/// The same as statsd's own flush interval.
pub(crate) const METRICS_INTERVAL: Duration = secs(10);
pub(crate) const METRICS_PREFIX: &str = "weir";
pub(crate) const SYSLOG_APP_NAME: &str = "weir";
/// The interval of OpenTelemetry's own SDKs (`OTEL_METRIC_EXPORT_INTERVAL`).
pub(crate) const OTLP_INTERVAL: Duration = secs(60);
/// The program's name, as other balancers have it.
pub(crate) const OTLP_SERVICE_NAME: &str = "weir";
/// Failures are rare, and all of them are sent; this is enough of the rest to compare them with.
pub(crate) const OTLP_SAMPLE_OK: f64 = 0.01;
/// A trace with one attempt takes about 1.25 kB: 125 kB a second for each cause.
pub(crate) const OTLP_TRACES_PER_CAUSE_MAX: u64 = 100;

/// Long enough for a phone on a bad link, short enough that slow heads do not pile up.
pub(crate) const CLIENT_HEAD: Duration = secs(10);
pub(crate) const CLIENT_IDLE: Duration = secs(60);
pub(crate) const CLIENT_BODY: Duration = secs(30);
pub(crate) const HEAD_MAX_BYTES: u64 = 16_000;
/// The minimum that RFC 9113 section 6.5.2 recommends.
pub(crate) const STREAMS_MAX: u64 = 100;
pub(crate) const FORWARD_FIELDS: &[&str] =
    &["x-forwarded", "forwarded", "x-request-id", "traceparent"];
/// All supported ones. `x-real-ip` is not among the defaults, as X-Forwarded-For says more; nor is `via`: nginx does not
/// compress for a request that has one (`gzip_proxied`).
pub(crate) const FORWARD_FIELDS_KNOWN: &[&str] =
    &["x-forwarded", "forwarded", "x-request-id", "traceparent", "x-real-ip", "via"];

pub(crate) const UPGRADE_PROTOCOLS: &[&str] = &["websocket"];

/// Keeps method and body, and clients may cache it.
pub(crate) const REDIRECT_STATUS: u64 = 308;
pub(crate) const RESPOND_STATUS: u64 = 200;
/// What `respond.body` is read as.
pub(crate) const RESPOND_TEXT: &str = "text/plain; charset=utf-8";
/// Limited requests are refused at once.
pub(crate) const RATE_WAIT_MAX: Duration = Duration::ZERO;
pub(crate) const RATE_PER: Duration = secs(1);
pub(crate) const WEIGHT: u64 = 1;

/// The smallest that the paper on bounded loads found to move few keys.
pub(crate) const HASH_LOAD_FACTOR: f64 = 1.25;
pub(crate) const QUEUE_LENGTH_MAX: u64 = 200;
/// Few people wait longer for a page; a client that gave up still costs a slot.
pub(crate) const QUEUE_WAIT_MAX: Duration = secs(5);
pub(crate) const WHEN_FULL: u64 = 429;

pub(crate) const CHECK_METHOD: &str = "GET";
pub(crate) const CHECK_PATH: &str = "/";
/// As `HAProxy`, nginx and Kubernetes interpret a response: a redirect to a login page means alive.
pub(crate) const CHECK_EXPECT: &str = "200-399";
pub(crate) const CHECK_INTERVAL: Duration = secs(2);
/// Let's Encrypt, which needs no account elsewhere.
pub(crate) const ACME_DIRECTORY: &str = "https://acme-v02.api.letsencrypt.org/directory";
/// Let's Encrypt's own advice; lego and certbot do the same.
pub(crate) const ACME_RENEW_AFTER: f64 = 0.667;

pub(crate) const CHECK_TIMEOUT: Duration = secs(1);
pub(crate) const CHECK_RISE: u64 = 2;
pub(crate) const CHECK_FALL: u64 = 3;

pub(crate) const PASSIVE_FAILURES: u64 = 5;
pub(crate) const PASSIVE_EJECT: Duration = secs(10);
pub(crate) const PASSIVE_EJECT_MAX: Duration = secs(300);
pub(crate) const PASSIVE_SHARE_MAX: f64 = 0.5;

/// With half of a zone left, each server there carries twice its usual share: what a zone sized to
/// survive the loss of another has room for. Below that, distance costs less than overload.
pub(crate) const ZONES_READY_MIN: f64 = 0.5;
/// Far enough above `ready_min` that, in a zone of three or more equal servers, a single flapping
/// one does not move the traffic back and forth.
pub(crate) const ZONES_READY_RECOVERED: f64 = 0.75;

/// Linux retransmits a SYN after exactly 1 s (RFC 6298 section 2). A longer timeout gives the
/// second one a chance, and distinguishes a server that leaves SYNs unanswered
/// (`connect_syn_unanswered`) from one that is far away.
pub(crate) const CONNECT: Duration = Duration::from_millis(1_500);
pub(crate) const RESPONSE: Duration = secs(30);
pub(crate) const IDLE: Duration = secs(60);
/// The same as nginx. Many servers close sooner; the learner finds out when each does, and keeps
/// the pool below it.
pub(crate) const KEEP_ALIVE: Duration = secs(60);
pub(crate) const ATTEMPTS_MAX: u64 = 1;
pub(crate) const BODY_KEPT_MAX_BYTES: u64 = 64_000;
pub(crate) const SCALING_SERVERS_MIN: u64 = 1;
/// This and the two below are the defaults of the function (`scaling::terms`), which says why.
pub(crate) const SCALING_UTILIZATION: f64 = 0.7;
pub(crate) const SCALING_SCALE_IN_AFTER: Duration = secs(300);
pub(crate) const SCALING_IDLE_AFTER: Duration = secs(600);
/// The sync period of the Kubernetes autoscaler, with which the function was simulated: its number rises over the 15 s
/// that a load covers.
pub(crate) const SCALING_OUT_COOLDOWN: Duration = secs(15);
/// Machines are billed by the minute or more, and a restart costs cold caches.
pub(crate) const SCALING_IN_COOLDOWN: Duration = secs(300);
pub(crate) const SCALING_DRAIN_MAX: Duration = secs(300);
pub(crate) const SCALING_TIMEOUT: Duration = secs(30);
pub(crate) const MIRROR_SHARE: f64 = 1.0;
pub(crate) const MIRROR_BODY_MAX_BYTES: u64 = 64_000;
/// So many that a worker with thousands of clients does not close and reopen them, like `HAProxy`,
/// which sets no limit by default; a burst's surplus ages, since the newest are used first.
pub(crate) const IDLE_CONNECTIONS_MAX: u64 = 1024;

/// As HAProxy, nginx, Traefik and Caddy do.
pub(crate) const FORWARD_CREDENTIALS: bool = true;
/// Long enough for a session store that is slow for once; a user waits for it with every request.
pub(crate) const FORWARD_AUTH_TIMEOUT: Duration = secs(5);
pub(crate) const SYMMETRIC_KEYS: bool = false;
pub(crate) const EXPIRY_REQUIRED: bool = true;
/// Clocks that are kept by NTP differ by far less.
pub(crate) const TOKEN_LEEWAY: Duration = secs(60);

/// The agent of Consul on this machine.
pub(crate) const CONSUL: &str = "http://127.0.0.1:8500";
/// Half of what Consul allows a client address (`http_max_conns_per_client`), so that two balancers on one
/// address fit.
pub(crate) const CONSUL_CONNECTIONS_MAX: u64 = 100;
/// The agent of Nomad on this machine.
pub(crate) const NOMAD: &str = "http://127.0.0.1:4646";
/// Half of what Nomad allows a client address.
pub(crate) const NOMAD_CONNECTIONS_MAX: u64 = 50;
/// Ports of Weir's Pods for Gateways: above those that need a privilege, below those of outgoing connections
/// (`ip_local_port_range` begins at 32768).
pub(crate) const GATEWAY_PORT_FIRST: u16 = 10_000;
pub(crate) const GATEWAY_PORT_LAST: u16 = 10_999;
/// A member of etcd on this machine.
pub(crate) const ETCD: &str = "http://127.0.0.1:2379";
/// Of blocking queries.
pub(crate) const STALE: bool = true;
/// Shorter than the five minutes of Consul and Nomad: when a restored catalogue has a smaller index, an agent may
/// hold a query for as long as this.
pub(crate) const QUERY_WAIT: Duration = secs(60);
/// Servers are kept when fewer than half of them are listed all at once.
pub(crate) const HOLD_SHARE: f64 = 0.5;
/// Long enough for a person to look.
pub(crate) const HOLD_MAX: Duration = Duration::from_mins(10);
/// Shorter than Prometheus's minute: requests wait for servers, not a scrape.
pub(crate) const HTTP_SD_INTERVAL: Duration = Duration::from_secs(15);
pub(crate) const SAVED_SERVERS: bool = true;
