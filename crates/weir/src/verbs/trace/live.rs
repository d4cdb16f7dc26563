//! `weir trace live`: the packets of an interface, as they pass.

use std::io;
use std::io::Write as _;

use os::capture::{Packet, Ring};
use trace::Trace;
use trace::decode::{Decoded, Decoder};
use trace::reader::Record;

use super::progress::Progress;
use super::{Reading, events, limits, tell, write_frame};
use crate::flags::{Common, Exit, LiveArgs};

/// How long one wait for packets lasts at most, in milliseconds.
const WAIT_MS: u32 = 100;
/// LINKTYPE numbers of Ethernet and of raw IP.
const LINKS: [u32; 2] = [1, 101];
/// No such device (`errno.h` of Linux).
const ENODEV: i32 = 19;

/// Which connections are wanted.
struct Filter<'a> {
    wanted: &'a LiveArgs,
    /// Its own, so that fragments are put together for it and again for the trace.
    decoder: Decoder,
}

impl Filter<'_> {
    fn takes(&mut self, record: &Record<'_>) -> bool {
        let LiveArgs { ports, hosts, .. } = self.wanted;
        if ports.is_empty() && hosts.is_empty() {
            return true;
        }
        let (Decoded::Segment(segment) | Decoded::Mention(segment)) = self.decoder.decode(record)
        else {
            return false;
        };
        let by_port = [segment.source_port, segment.destination_port];
        let by_host = [segment.source.ip(), segment.destination.ip()];
        (ports.is_empty() || by_port.iter().any(|port| ports.contains(port)))
            && (hosts.is_empty() || by_host.iter().any(|host| hosts.contains(host)))
    }
}

pub(super) fn run(args: &LiveArgs, common: Common) -> Exit {
    let mut ring = match Ring::open(&args.interface) {
        Ok(ring) => ring,
        Err(error) => {
            eprintln!("weir: cannot capture on {}: {}", args.interface, why(&error));
            return Exit::Failed;
        }
    };
    let mut events = events::Events::new(args.look.stream);
    match capture(args, &mut ring, &mut events) {
        Ok(reading) => tell(&args.look, common, &reading, &events),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Exit::Done,
        Err(error) => {
            eprintln!("weir: capturing on {} ended: {error}", args.interface);
            Exit::Failed
        }
    }
}

/// What people can do about it.
fn why(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::PermissionDenied => {
            "this needs the capability CAP_NET_RAW: run it as root, \
             or give it to the program by `setcap cap_net_raw+ep`"
                .to_owned()
        }
        _ if error.raw_os_error() == Some(ENODEV) => {
            "there is no such interface; `ip link` lists those that are there".to_owned()
        }
        _ => error.to_string(),
    }
}

fn capture(args: &LiveArgs, ring: &mut Ring, events: &mut events::Events) -> io::Result<Reading> {
    let mut trace = Trace::new(limits(&args.look));
    let mut filter = Filter { wanted: args, decoder: Decoder::new() };
    let mut progress = Progress::new(&args.interface);
    let link = LINKS[usize::from(!ring.is_ethernet())];
    let begun = os::clock::now();
    let end = begun + args.time;
    let mut dropped = 0;
    let mut written = Ok(());
    let mut out = io::stdout().lock();
    while os::clock::now() < end && written.is_ok() {
        ring.take(WAIT_MS, |packet: Packet<'_>| {
            let Packet { time_ns, wire_bytes, data } = packet;
            let record = Record { time_ns, link, wire_bytes, data };
            if !filter.takes(&record) {
                return;
            }
            let frame = trace.record(&record);
            if frame.stream.is_some() && args.look.frames && written.is_ok() {
                written = write_frame(&mut out, &frame);
            }
            events.take(&frame, time_ns, &trace);
        })?;
        dropped += ring.dropped()?;
        progress.tell(None, trace.frames());
    }
    written?;
    out.flush()?;
    progress.end();
    Ok(Reading { name: args.interface.clone(), trace, dropped: Some(dropped), broken: None })
}
