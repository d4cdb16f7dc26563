//! The rules as data: each package's layer, and what may be used where.
//!
//! ARCHITECTURE.md shows the same layers; [`crate::arrows::check_map`] compares the two.

/// The layers, from the bottom. A package may depend only on packages of lower layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Layer {
    /// What things are; bytes to types and back.
    DataTypes,
    /// Counting and recording; certificates; identities. No I/O.
    Records,
    /// Events and now become decisions. No I/O.
    Decisions,
    /// Figures become text, charts and pages. No I/O.
    Reports,
    /// Safe wrappers over Linux.
    Os,
    /// Connections.
    Transport,
    /// Tasks, clocks, files. Shells never import each other.
    Shells,
    /// The shells put together as one program that serves.
    Program,
    /// Parses flags and prints results.
    CommandLine,
}

impl Layer {
    /// No clock, no socket, no file, no tokio.
    pub(crate) fn is_pure(self) -> bool {
        self <= Layer::Reports
    }
}

/// Every package and its layer.
const PACKAGES: &[(&str, Layer)] = &[
    ("model", Layer::DataTypes),
    ("wire", Layer::DataTypes),
    ("page", Layer::DataTypes),
    ("dashboard", Layer::DataTypes),
    ("http2", Layer::Records),
    ("observe", Layer::Records),
    ("history", Layer::Records),
    ("tls", Layer::Records),
    ("identity", Layer::Records),
    ("trace", Layer::Records),
    ("decide", Layer::Decisions),
    ("health", Layer::Decisions),
    ("fleet", Layer::Decisions),
    ("lend", Layer::Decisions),
    ("quota", Layer::Decisions),
    ("orders", Layer::Decisions),
    ("keyring", Layer::Decisions),
    ("scaling", Layer::Decisions),
    ("config", Layer::Decisions),
    ("diagnose", Layer::Decisions),
    ("admin-api", Layer::Reports),
    ("trace-report", Layer::Reports),
    ("load-report", Layer::Reports),
    ("otlp", Layer::Reports),
    ("discovery", Layer::Reports),
    ("gateway", Layer::Reports),
    ("autoscaler", Layer::Reports),
    ("os", Layer::Os),
    ("transport", Layer::Transport),
    ("proxy", Layer::Shells),
    ("control", Layer::Shells),
    ("admin", Layer::Shells),
    ("collect", Layer::Shells),
    ("acme", Layer::Shells),
    ("kubernetes", Layer::Shells),
    ("telemetry", Layer::Shells),
    ("load", Layer::Shells),
    ("sample", Layer::Shells),
    ("upload", Layer::Shells),
    ("lab", Layer::Shells),
    ("balancer", Layer::Program),
    ("weir", Layer::CommandLine),
];

/// Returns the layer of the package in `crates/<name>`.
pub(crate) fn layer(name: &str) -> Option<Layer> {
    PACKAGES.iter().find(|(package, _)| *package == name).map(|&(_, layer)| layer)
}

/// The only package that may use `unsafe`.
pub(crate) const UNSAFE_PACKAGE: &str = "os";

/// What a pure package may use from crates.io. None of these opens, waits or reads a clock; one
/// that does has no place below the shells. (rustls reads the clock, but only within a handshake
/// that a shell carries. Of opentelemetry-proto, only the messages are used, not the SDK beside them.)
pub(crate) const PURE_EXTERNALS: &[&str] = &[
    "annotate-snippets",
    "arc-swap",
    "argon2",
    "aws-lc-rs",
    "base64",
    "bcrypt",
    "bytes",
    "crc32c",
    "fastrand",
    "foca",
    "foldhash",
    "hdrhistogram",
    "http",
    "httparse",
    "httpdate",
    "imbl",
    "ipnet",
    "memchr",
    "opentelemetry-proto",
    "postcard",
    "prost",
    "rand_core",
    "rcgen",
    "regex",
    "rustls",
    "serde",
    "serde-saphyr",
    "schemars",
    "serde_json",
    "sha-crypt",
    "strsim",
    "toml",
    "x509-parser",
    "zeroize",
];

/// A path that a pure package must not name, and why.
pub(crate) struct Fence {
    /// As after `use`: the path itself and everything below it.
    pub path: &'static str,
    /// What to do.
    pub instead: &'static str,
}

/// What pure packages must not name outside their tests.
pub(crate) const FENCES: &[Fence] = &[
    Fence { path: "std::time::Instant", instead: "take `now: Moment` as an argument" },
    Fence { path: "std::time::SystemTime", instead: "take the time as an argument" },
    Fence { path: "std::fs", instead: "take the file's bytes as an argument" },
    Fence { path: "std::net::TcpStream", instead: "sockets belong to os and transport" },
    Fence { path: "std::net::TcpListener", instead: "sockets belong to os and transport" },
    Fence { path: "std::net::UdpSocket", instead: "sockets belong to os and transport" },
    Fence { path: "std::net::ToSocketAddrs", instead: "names are resolved by transport::names" },
    Fence { path: "std::os", instead: "what is Linux's belongs to os" },
    Fence { path: "std::process", instead: "processes belong to the shells" },
    Fence { path: "std::env", instead: "take the value as an argument" },
    Fence { path: "std::thread", instead: "threads belong to the shells" },
    Fence { path: "std::io::stdin", instead: "take the bytes as an argument" },
    Fence { path: "std::io::stdout", instead: "write into the caller's buffer" },
    Fence { path: "std::io::stderr", instead: "return it; the shells log" },
    Fence { path: "tokio", instead: "tasks belong to the shells" },
];

/// Files of more lines than this before their tests are named, so that a reviewer asks whether
/// each has one purpose.
pub(crate) const LINES_BEFORE_TESTS_MAX: usize = 450;
