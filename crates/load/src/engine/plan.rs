//! A run's plan, ready to execute: requests as bytes, resolved addresses.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;

use crate::schedule::{Profile, Spacing};

/// A run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What is asked for, at least one.
    pub targets: Vec<Target>,
    /// Where, at least one.
    pub sites: Vec<Site>,
    /// What is spoken.
    pub protocol: Protocol,
    /// When requests begin.
    pub shape: Shape,
    /// Connections at once, at most; at least 1.
    pub connections_max: usize,
    /// Requests at once on each connection of HTTP/2, at most; at least 1.
    pub streams_max: usize,
    /// Whether a connection is used for further requests.
    pub keep_alive: bool,
    /// Threads; at least 1.
    pub threads: usize,
    /// Addresses to connect from, in turn; none: the kernel chooses.
    pub sources: Vec<IpAddr>,
    /// How long connecting may take, TLS included.
    pub connect_timeout: Duration,
    /// How long a request may take once its connection is there.
    pub timeout: Duration,
    /// Whether connections are closed with a reset, which leaves no `TIME_WAIT` on this machine.
    pub reset: bool,
}

/// What is spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.1.
    Http1,
    /// HTTP/2: by ALPN over TLS, with prior knowledge otherwise.
    Http2,
    /// Nothing: a connection is a request, and closed as soon as it is there.
    Connect,
}

/// When requests begin.
#[derive(Clone, Debug)]
pub enum Shape {
    /// Each of `connections_max` begins its next request when the last one has ended.
    Closed {
        /// Begins no more after so long.
        time: Option<Duration>,
        /// Begins so many.
        requests: Option<u64>,
        /// Connections come one by one over this time.
        ramp: Duration,
    },
    /// By the clock.
    Open {
        /// The rate over time.
        profile: Arc<Profile>,
        /// How arrivals lie in it.
        spacing: Spacing,
    },
}

impl Shape {
    /// Whether requests begin by the clock.
    pub fn is_open(&self) -> bool {
        matches!(self, Shape::Open { .. })
    }

    /// How long requests begin; `None`: until so many have.
    pub fn time(&self) -> Option<Duration> {
        match self {
            Shape::Closed { time, .. } => *time,
            Shape::Open { profile, .. } => Some(profile.time()),
        }
    }
}

/// A request.
#[derive(Clone, Debug)]
pub struct Target {
    /// As it was given.
    pub url: String,
    /// Upper case.
    pub method: String,
    /// Relative to the other targets'.
    pub weight: u32,
    /// Which of the plan's sites.
    pub site: usize,
    /// The whole of it, as HTTP/1.1 sends it.
    pub http1: Bytes,
    /// Its head, as HTTP/2 sends it.
    pub http2: http::Request<()>,
    /// Its body.
    pub body: Bytes,
    /// Whether its response has no body whatever the head says.
    pub is_head: bool,
}

/// A server that requests go to.
#[derive(Clone, Debug)]
pub struct Site {
    /// Host and port, as in the URL.
    pub name: String,
    /// Where it was found to answer.
    pub address: SocketAddr,
    /// All addresses of its name.
    pub addresses: Vec<SocketAddr>,
    /// How long the look-up took.
    pub lookup: Duration,
    /// How TLS is spoken, and with whom; `None`: it is not.
    pub tls: Option<(Arc<ClientConfig>, ServerName<'static>)>,
}

impl Plan {
    /// Whether a connection carries further requests.
    pub(crate) fn keeps_connections(&self) -> bool {
        self.keep_alive && self.protocol != Protocol::Connect
    }
}

#[cfg(test)]
impl Plan {
    /// For tests: a target on each of `servers`, over one connection of one thread.
    pub(crate) fn sample(protocol: Protocol, servers: &[SocketAddr], shape: Shape) -> Plan {
        let site = |address: &SocketAddr| Site {
            name: address.to_string(),
            address: *address,
            addresses: vec![*address],
            lookup: Duration::ZERO,
            tls: None,
        };
        let target = |(site, address): (usize, &SocketAddr)| Target {
            url: format!("http://{address}/"),
            method: "GET".to_owned(),
            weight: 1,
            site,
            http1: format!("GET / HTTP/1.1\r\nHost: {address}\r\n\r\n").into(),
            http2: http::Request::get(format!("http://{address}/")).body(()).unwrap(),
            body: Bytes::new(),
            is_head: false,
        };
        Plan {
            targets: servers.iter().enumerate().map(target).collect(),
            sites: servers.iter().map(site).collect(),
            protocol,
            shape,
            connections_max: 1,
            streams_max: 1,
            keep_alive: true,
            threads: 1,
            sources: Vec::new(),
            connect_timeout: Duration::from_secs(5),
            timeout: Duration::from_secs(5),
            reset: false,
        }
    }
}
