//! What is known of a host, and of the balancer on it, at two or more moments.
//!
//! What hardly changes stands once; what moves stands in samples, oldest first, each with its time.
//! Counters are as the kernel keeps them, since its start: rules take differences. Every figure has
//! its unit in its name or its comment. The structures are also the form of saved facts (JSON), so
//! a test's facts name only what they are about: a field left out is [`Known::Unknown`], or empty.

mod balancer;
mod capture;
mod host;
mod known;
mod namespace;
mod settings;
mod socket;
mod traffic;

use serde::{Deserialize, Serialize};

pub use balancer::{Balancer, BalancerListener, BalancerSample, Certificate, ServerCounts};
pub use capture::{Capture, CaptureConnection, CaptureSide, CaptureUndecoded};
pub use host::{
    Cgroup, CgroupVersion, Cpu, Host, HostSample, LogLine, NetworkInterrupt, ProcessLimit, Softnet,
    SysctlFile, SystemMemory,
};
pub use known::Known;
pub use namespace::{
    Conntrack, EthtoolRings, Interface, Namespace, NamespaceSample, Neighbours, SockStat,
};
pub use settings::{Setting, Settings};
pub use socket::{Direction, Listener, PeerSockets, PortUse, SocketState, Sockets, TcpSummary};
pub use traffic::{
    ClientsSpan, Durations, FleetProblem, ServerSpan, ServiceSpan, Traffic, TrafficChange,
    TrafficFleet, TrafficKubernetes, TrafficServer, TrafficService, TrafficSource,
};

/// The form of saved facts that this program writes, and the newest it reads.
pub const FORMAT: u32 = 1;

/// All facts of one look at a host.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Facts {
    /// [`FORMAT`] when written.
    pub format: u32,
    /// Wall-clock time of the first sample, in milliseconds since 1970 (UTC); 0: not known.
    pub taken_at_unix_ms: u64,
    /// What belongs to the machine as a whole.
    pub host: Host,
    /// Each network namespace that could be read; the program's own first.
    pub namespaces: Vec<Namespace>,
    /// Why not all of the host's namespaces are among them; `None`: all are.
    pub namespaces_left_out: Option<String>,
    /// What the balancer knows of its own traffic; unknown outside `weir serve`.
    pub balancer: Known<Balancer>,
    /// The balancer's traffic of the last seconds; unknown outside `weir serve`.
    pub traffic: Known<Traffic>,
    /// Captures of packets that were read; none, and nothing is said of them.
    pub captures: Vec<Capture>,
}
