//! `weir trace live`: captures and analyses the packets of an interface.

use std::io;
use std::time::Duration;

use balancer::signals::Signals;
use os::capture::{LATE_MS, Packet, Ring};
use trace::decode::{Decoded, Decoder};
use trace::reader::Record;
use trace::{Frame, Trace};
use trace_report::{Events, Reading};

use super::growing::Growing;
use super::progress::Progress;
use super::{limits, tell, write_frame};
use crate::flags::{Common, Exit, LiveArgs};

/// How long one wait for packets lasts at most, in milliseconds.
const WAIT_MS: u32 = 100;
/// How long a signal is listened for between two looks at the ring, which holds far more than
/// passes in that time.
const LISTEN: Duration = Duration::from_millis(1);
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
    let (mut ring, mut signals) = match Ring::open(&args.interface) {
        Ok(ring) => match Signals::catch() {
            Ok(signals) => (ring, signals),
            Err(error) => {
                eprintln!("weir: no signals: {error}");
                return Exit::Failed;
            }
        },
        Err(error) => {
            eprintln!("weir: cannot capture on {}: {}", args.interface, why(&error));
            return Exit::Failed;
        }
    };
    // From here on nothing that passes is missed.
    let seconds = args.time.as_secs_f64();
    eprintln!("weir: capturing on {} for {seconds} s; Ctrl-C ends it sooner", args.interface);
    let name = args.interface.clone();
    let trace = Trace::new(limits(&args.look));
    let mut capture = Capture {
        args,
        link: LINKS[usize::from(!ring.is_ethernet())],
        filter: Filter { wanted: args, decoder: Decoder::new() },
        reading: Reading { name, is_live: true, trace, dropped: Some(0), broken: None },
        events: Events::new(args.look.stream),
        growing: Growing::new(&args.look),
        progress: Progress::new(&args.interface),
    };
    let ended = capture.run(&mut ring, &mut signals);
    let Capture { reading, events, .. } = capture;
    match ended {
        Ok(()) => tell(&args.look, common, &reading, &events),
        Err(Ended::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => Exit::Done,
        Err(Ended::Output(error)) => {
            eprintln!("weir: cannot write to standard output: {error}");
            Exit::Failed
        }
        Err(Ended::Ring(error)) => {
            tell(&args.look, common, &reading, &events);
            eprintln!("weir: capturing on {} ended before its time: {error}", args.interface);
            Exit::Failed
        }
    }
}

/// What people can do about it.
fn why(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::PermissionDenied => {
            let program = std::env::current_exe();
            let program = program.map_or("weir".into(), |path| path.display().to_string());
            format!(
                "this needs the capability CAP_NET_RAW: run it as root, or once \
                 `sudo setcap cap_net_raw+ep {program}`"
            )
        }
        _ if error.raw_os_error() == Some(ENODEV) => {
            "there is no such interface; `ip link` lists those that are there".to_owned()
        }
        _ => error.to_string(),
    }
}

/// Why a capture ended before its time.
enum Ended {
    /// The reader has closed the pipe, or the output cannot be written.
    Output(io::Error),
    /// The interface has gone.
    Ring(io::Error),
}

struct Capture<'a> {
    args: &'a LiveArgs,
    link: u32,
    filter: Filter<'a>,
    reading: Reading,
    events: Events,
    growing: Growing,
    progress: Progress<'a>,
}

impl Capture<'_> {
    /// Reads packets for as long as was asked for, or until a signal comes.
    fn run(&mut self, ring: &mut Ring, signals: &mut Signals) -> Result<(), Ended> {
        let mut out = io::stdout().lock();
        self.growing.begin(&mut out).map_err(Ended::Output)?;
        let end = os::clock::now() + self.args.time;
        loop {
            let left = end.since(os::clock::now());
            let wait_ms = u32::try_from(left.as_millis()).map_or(WAIT_MS, |ms| ms.min(WAIT_MS));
            self.take(ring, wait_ms, i64::MAX, &mut out)?;
            let seen_ns = wall_ns() - i64::from(LATE_MS) * 1_000_000;
            self.growing.tell(&self.reading, seen_ns, left, &mut out).map_err(Ended::Output)?;
            if matches!(self.growing, Growing::Silent) {
                self.progress.tell(None, self.reading.trace.frames());
            }
            if left.is_zero() || signals.wait_at_most(LISTEN).is_some() {
                break;
            }
        }
        // What has passed by now is still on its way through the ring.
        let until_ns = wall_ns();
        let last = os::clock::now() + Duration::from_millis(LATE_MS.into());
        loop {
            let left = last.since(os::clock::now());
            if left.is_zero() {
                break;
            }
            self.take(ring, left.as_millis() as u32 + 1, until_ns, &mut out)?;
        }
        self.progress.end();
        self.growing.end(&self.reading, &mut out).map_err(Ended::Output)
    }

    /// Takes the packets that are there, but for those after `until_ns`.
    fn take(
        &mut self,
        ring: &mut Ring,
        wait_ms: u32,
        until_ns: i64,
        out: &mut impl io::Write,
    ) -> Result<(), Ended> {
        let mut written = Ok(());
        let taken = ring.take(wait_ms, |packet| {
            if packet.time_ns <= until_ns
                && let Some(frame) = self.packet(packet)
                && self.args.look.frames
                && written.is_ok()
            {
                written = write_frame(out, &frame);
            }
        });
        written.map_err(Ended::Output)?;
        taken.map_err(Ended::Ring)?;
        let dropped = self.reading.dropped.unwrap_or(0) + ring.dropped().map_err(Ended::Ring)?;
        self.reading.dropped = Some(dropped);
        Ok(())
    }

    /// Yields it if it is a segment of a connection that is wanted and followed.
    fn packet(&mut self, packet: Packet<'_>) -> Option<Frame> {
        let Packet { time_ns, wire_bytes, data } = packet;
        let record = Record { time_ns, link: self.link, wire_bytes, data };
        if !self.filter.takes(&record) {
            return None;
        }
        let frame = self.reading.trace.record(&record);
        self.events.take(&frame, time_ns);
        frame.stream.map(|_| frame)
    }
}

/// Nanoseconds since 1970, the clock that packets are stamped with.
fn wall_ns() -> i64 {
    i64::try_from(os::clock::wall().as_nanos()).unwrap_or(i64::MAX)
}
