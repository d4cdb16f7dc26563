//! Turns the command line into a plan: reads files, creates bodies, resolves servers.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use load::engine::Refusal;
use load::engine::plan::{Plan, Protocol, Shape, Site, Target};
use load::engine::prepare::{self, Asked, Ways};
use load::schedule::{Profile, Spacing};

use crate::flags::bench::http::{HttpArgs, RequestArgs, ShapeArgs, WaysArgs};
use crate::verbs::bench::authorities;

/// Default duration of a run.
const TIME: Duration = Duration::from_secs(10);
/// Default number of connections of a closed loop.
const CONNECTIONS_CLOSED: u32 = 10;
/// Default maximum number of connections of a scheduled (open) loop.
const CONNECTIONS_OPEN: u32 = 1_000;
/// Above so many starts a second another thread is worth its while.
const STARTS_PER_THREAD: f64 = 15_000.0;
/// A body's bytes, at most: it is kept in memory.
const BODY_MAX_BYTES: u64 = 1 << 30;

/// What is asked for, of whom, and how; everything but when.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    targets: Vec<Target>,
    sites: Vec<Site>,
    ways: Ways,
    streams: u16,
    timeout: Duration,
}

fn mistake(text: String) -> Refusal {
    Refusal::Mistake(text)
}

impl Wanted {
    /// Reads files, looks names up and greets the servers.
    pub(crate) fn read(args: &HttpArgs) -> Result<Wanted, Refusal> {
        let ways = ways(&args.ways, protocol(args))?;
        let asked = requests(args)?;
        let (targets, sites) = prepare::targets(&asked, &ways)?;
        Ok(Wanted { targets, sites, ways, streams: args.ways.streams, timeout: args.ways.timeout })
    }

    /// When requests begin.
    pub(crate) fn shape(args: &ShapeArgs) -> Result<Shape, Refusal> {
        let ramp = args.ramp.unwrap_or_default();
        let time = args.time.unwrap_or(TIME);
        let seed = fastrand_seed();
        let spacing = if args.random { Spacing::Random { seed } } else { Spacing::Even };
        let profile = match (&args.steps, args.rate) {
            (Some(steps), _) => Profile::new(steps.0.clone()),
            (None, Some(rate)) => Profile::steady(rate, time, ramp),
            (None, None) => {
                // With a count alone, the count ends it.
                let time = args.time.or((args.requests.is_none()).then_some(TIME));
                return Ok(Shape::Closed { time, requests: args.requests, ramp });
            }
        };
        let profile = profile.map_err(|error| mistake(error.to_string()))?;
        Ok(Shape::Open { profile: Arc::new(profile), spacing })
    }

    /// The whole plan.
    pub(crate) fn plan(&self, shape: Shape, args: &ShapeArgs) -> Result<Plan, Refusal> {
        let default = if shape.is_open() { CONNECTIONS_OPEN } else { CONNECTIONS_CLOSED };
        let connections_max = args.connections.unwrap_or(default) as usize;
        let wanted = match &shape {
            Shape::Closed { .. } => connections_max,
            Shape::Open { profile, .. } => {
                (profile.rate_max_per_s() / STARTS_PER_THREAD).ceil() as usize
            }
        };
        let threads = args.threads.map_or(wanted.min(os::cpu::cores()), usize::from);
        let plan = Plan {
            targets: self.targets.clone(),
            sites: self.sites.clone(),
            protocol: self.ways.protocol,
            shape,
            connections_max,
            streams_max: usize::from(self.streams),
            keep_alive: self.ways.keep_alive,
            threads: threads.clamp(1, connections_max),
            sources: self.ways.sources.clone(),
            connect_timeout: self.ways.connect_timeout,
            timeout: self.timeout,
            reset: false,
        };
        raise_descriptors(&plan)?;
        Ok(plan)
    }
}

/// So that every connection finds a descriptor.
pub(crate) fn raise_descriptors(plan: &Plan) -> Result<(), Refusal> {
    let wanted = plan.connections_max as u64 + 100;
    let (soft, _) = os::limits::raise_nofile(wanted).unwrap_or_else(|_| os::limits::nofile());
    if soft < wanted {
        return Err(mistake(format!(
            "{} connections need {wanted} descriptors, and this process may have {soft}: raise it \
             (ulimit -n {wanted}) or ask for fewer (-c)",
            plan.connections_max
        )));
    }
    Ok(())
}

/// Another one each time.
fn fastrand_seed() -> u64 {
    os::clock::wall().as_nanos() as u64
}

/// The requests, by the words.
fn requests(args: &HttpArgs) -> Result<Vec<Asked>, Refusal> {
    let RequestArgs { method, fields, body, body_size, content_type } = &args.request;
    let body = match (body, body_size) {
        (Some(path), _) => read(path)?,
        (None, Some(size)) => generated(*size)?,
        (None, None) => Vec::new(),
    };
    let default = if body.is_empty() { "GET" } else { "POST" };
    let method = method.as_deref().unwrap_or(default).to_ascii_uppercase();
    let mut fields = fields.clone();
    if let Some(kind) = content_type {
        fields.push(("Content-Type".to_owned(), kind.clone()));
    }
    let body: bytes::Bytes = body.into();
    let asked = |url: &crate::flags::bench::units::Url| Asked {
        url: url.url.clone(),
        method: method.clone(),
        fields: fields.clone(),
        body: body.clone(),
        weight: url.weight,
    };
    Ok(args.urls.iter().map(asked).collect())
}

fn read(path: &std::path::Path) -> Result<Vec<u8>, Refusal> {
    std::fs::read(path).map_err(|error| mistake(format!("{}: {error}", path.display())))
}

/// Text that does not compress to nothing, the same each time.
fn generated(size: u64) -> Result<Vec<u8>, Refusal> {
    if size > BODY_MAX_BYTES {
        return Err(mistake("a body of more than 1 GiB does not fit here".to_owned()));
    }
    let mut state = 0x9e37_79b9_u32;
    let letter = |_| {
        // A linear congruential generator (Numerical Recipes); its high bits are the better ones.
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        b'a' + ((state >> 24) % 26) as u8
    };
    Ok((0..size).map(letter).collect())
}

/// How servers are reached, by the words.
pub(crate) fn ways(args: &WaysArgs, protocol: Protocol) -> Result<Ways, Refusal> {
    let alpn: &[&[u8]] = match protocol {
        Protocol::Http2 => &[b"h2"],
        _ => &[b"http/1.1"],
    };
    let tls = authorities::client(args.cacert.as_deref(), args.insecure, alpn).map_err(mistake)?;
    let sources: Vec<IpAddr> = args.sources.iter().flat_map(|some| some.iter().copied()).collect();
    Ok(Ways {
        protocol,
        keep_alive: !args.no_keepalive,
        tls,
        sources,
        connect_timeout: args.connect_timeout,
    })
}

/// What is spoken.
fn protocol(args: &HttpArgs) -> Protocol {
    if args.ways.http2 { Protocol::Http2 } else { Protocol::Http1 }
}
