//! The rules as data: which room stands on which floor, what may be used where.
//!
//! ARCHITECTURE.md draws the same house; [`crate::arrows::check_map`] keeps the two together.

/// The floors, from the bottom. A room may import rooms of lower floors only, never one of its
/// own floor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Floor {
    /// What things are; bytes to types and back.
    Nouns,
    /// Counting and recording; certificates. No I/O.
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
    /// Words in, words out.
    Verbs,
}

impl Floor {
    /// No clock, no socket, no file, no tokio.
    pub(crate) fn is_pure(self) -> bool {
        self <= Floor::Reports
    }
}

/// Every room that may exist, and its floor.
const ROOMS: &[(&str, Floor)] = &[
    ("model", Floor::Nouns),
    ("wire", Floor::Nouns),
    ("page", Floor::Nouns),
    ("observe", Floor::Records),
    ("tls", Floor::Records),
    ("trace", Floor::Records),
    ("decide", Floor::Decisions),
    ("health", Floor::Decisions),
    ("config", Floor::Decisions),
    ("diagnose", Floor::Decisions),
    ("admin-api", Floor::Reports),
    ("trace-report", Floor::Reports),
    ("load-report", Floor::Reports),
    ("os", Floor::Os),
    ("transport", Floor::Transport),
    ("proxy", Floor::Shells),
    ("control", Floor::Shells),
    ("admin", Floor::Shells),
    ("collect", Floor::Shells),
    ("load", Floor::Shells),
    ("sample", Floor::Shells),
    ("upload", Floor::Shells),
    ("lab", Floor::Shells),
    ("balancer", Floor::Program),
    ("weir", Floor::Verbs),
];

/// The floor of the room in `crates/<name>`.
pub(crate) fn floor(name: &str) -> Option<Floor> {
    ROOMS.iter().find(|(room, _)| *room == name).map(|&(_, floor)| floor)
}

/// The only room where `unsafe` may stand.
pub(crate) const UNSAFE_ROOM: &str = "os";

/// What a pure room may use from crates.io. None of these opens, waits or reads a clock; one
/// that does has no place below the shells. (rustls reads the clock, but only within a handshake
/// that a shell carries.)
pub(crate) const PURE_EXTERNALS: &[&str] = &[
    "annotate-snippets",
    "arc-swap",
    "base64",
    "crc32c",
    "fastrand",
    "foldhash",
    "hdrhistogram",
    "http",
    "httparse",
    "httpdate",
    "ipnet",
    "memchr",
    "rustls",
    "serde",
    "schemars",
    "serde_json",
    "strsim",
    "toml",
    "x509-parser",
];

/// A path that a pure room must not name, and why.
pub(crate) struct Fence {
    /// As after `use`: the path itself and everything below it.
    pub path: &'static str,
    /// What to do.
    pub instead: &'static str,
}

/// What pure rooms must not name outside their tests.
pub(crate) const FENCES: &[Fence] = &[
    Fence { path: "std::time::Instant", instead: "take `now: Moment` as an argument" },
    Fence { path: "std::time::SystemTime", instead: "take the time as an argument" },
    Fence { path: "std::fs", instead: "take the file's bytes as an argument" },
    Fence { path: "std::net::TcpStream", instead: "sockets belong to os and transport" },
    Fence { path: "std::net::TcpListener", instead: "sockets belong to os and transport" },
    Fence { path: "std::net::UdpSocket", instead: "sockets belong to os and transport" },
    Fence { path: "std::net::ToSocketAddrs", instead: "names are resolved by control" },
    Fence { path: "std::os", instead: "what is Linux's belongs to os" },
    Fence { path: "std::process", instead: "processes belong to the shells" },
    Fence { path: "std::env", instead: "take the value as an argument" },
    Fence { path: "std::thread", instead: "threads belong to the shells" },
    Fence { path: "std::io::stdin", instead: "take the bytes as an argument" },
    Fence { path: "std::io::stdout", instead: "write into the caller's buffer" },
    Fence { path: "std::io::stderr", instead: "return it; the shells log" },
    Fence { path: "tokio", instead: "tasks belong to the shells" },
];

/// Files of more lines than this before their tests are named, so that somebody asks whether
/// each is one room.
pub(crate) const LINES_BEFORE_TESTS_MAX: usize = 450;
