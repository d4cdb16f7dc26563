//! `weir trace`: analyses a packet capture.

mod growing;
mod input;
mod live;
mod progress;

use std::io::{self, BufWriter, Read, Write};
use std::path::Path;

use trace::reader::{Broken, Reader, Step};
use trace::{Frame, Limits, Trace};
use trace_report::{Events, Reading, Selection, csv, json, page, picture, text};

use super::check::{print, print_json};
use crate::flags::{Common, Exit, TraceArgs, TraceHow, TraceLook};
use input::Input;
use progress::Progress;

pub(crate) fn run(args: &TraceArgs, common: Common) -> Exit {
    match (&args.how, &args.file) {
        (Some(TraceHow::Live(live)), _) => live::run(live, common),
        (None, Some(file)) => run_file(file, &args.look, common),
        (None, None) => Exit::Mistake,
    }
}

fn run_file(file: &Path, args: &TraceLook, common: Common) -> Exit {
    let name = file.display().to_string();
    let input = match Input::open(file) {
        Ok(input) => input,
        Err(error) => {
            eprintln!("weir: cannot read {name}: {error}");
            return Exit::Failed;
        }
    };
    let mut events = Events::new(args.stream);
    let out = &mut BufWriter::new(io::stdout().lock());
    let each = |frame: &Frame, time_ns: i64, _: &Trace| {
        if args.frames {
            return write_frame(out, frame);
        }
        events.take(frame, time_ns);
        Ok(())
    };
    let reading = match read(args, name, input, each) {
        Ok(reading) => reading,
        // The reader has closed the pipe.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Exit::Done,
        Err(error) => {
            eprintln!("weir: {error}");
            return Exit::Failed;
        }
    };
    let flushed = out.flush();
    let printed = match flushed {
        // A report about nothing would look as if nothing were wrong.
        Ok(()) if reading.broken.is_some() && reading.trace.frames() == 0 && !args.json => {
            Exit::Failed
        }
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            eprintln!("weir: cannot write to standard output: {error}");
            Exit::Failed
        }
        _ => tell(args, common, &reading, &events),
    };
    match &reading.broken {
        Some(broken) => {
            let frames = reading.trace.frames();
            eprintln!("weir: {}: stopped after {frames} frames, {broken}", reading.name);
            Exit::Failed
        }
        None => printed,
    }
}

fn tell(args: &TraceLook, common: Common, reading: &Reading, events: &Events) -> Exit {
    if let Some(stream) = args.stream
        && reading.trace.story(stream).is_none()
    {
        let count = reading.trace.stories().len();
        eprintln!("weir: {} has no stream {stream}; it has {count}, numbered from 0", reading.name);
        return Exit::Mistake;
    }
    let selected = Selection { stream: args.stream, connections: args.connections };
    let picture = || match args.stream {
        Some(stream) => picture::sequence(reading, stream, events),
        None => picture::over_time(reading),
    };
    let files = [
        args.svg.as_ref().map(|path| (path, picture())),
        args.html.as_ref().map(|path| (path, page::page(reading, selected, events))),
    ];
    for (path, drawn) in files.into_iter().flatten() {
        if let Err(error) = std::fs::write(path, drawn) {
            eprintln!("weir: cannot write {}: {error}", path.display());
            return Exit::Failed;
        }
    }
    if args.frames {
        Exit::Done
    } else if args.json {
        print_json(&json::report(reading, selected, events))
    } else if args.csv {
        // Live, they have been printed as they came.
        if reading.is_live { Exit::Done } else { print(&csv::intervals(&reading.trace)) }
    } else if let Some(stream) = args.stream {
        print(&text::stream(reading, stream, events))
    } else {
        print(&text::report(reading, args.connections, common.colours_stdout()))
    }
}

fn limits(args: &TraceLook) -> Limits {
    let interval_ns = u64::try_from(args.interval.as_nanos()).unwrap_or(u64::MAX);
    Limits { connections_max: args.connections_max, interval_ns }
}

/// Reads everything, and hands each TCP frame to `each`.
fn read(
    args: &TraceLook,
    name: String,
    mut input: Input,
    mut each: impl FnMut(&Frame, i64, &Trace) -> io::Result<()>,
) -> io::Result<Reading> {
    let mut trace = Trace::new(limits(args));
    let mut reader = Reader::new();
    let mut progress = Progress::new(&name);
    let broken = loop {
        match reader.step() {
            Ok(Step::Record(record)) => {
                let frame = trace.record(&record);
                if frame.stream.is_some() {
                    each(&frame, record.time_ns, &trace)?;
                }
            }
            Ok(Step::NoPacket) => trace.no_packet(),
            Ok(Step::More) => {
                progress.tell(input.share(), trace.frames());
                match input.read(reader.space()) {
                    Ok(count) => reader.filled(count),
                    Err(error) => {
                        let what = format!("it cannot be read further: {error}");
                        break Some(Broken { offset: reader.offset(), what });
                    }
                }
            }
            Ok(Step::End) => break None,
            Err(broken) => break Some(broken),
        }
    };
    progress.end();
    Ok(Reading { name, is_live: false, trace, dropped: reader.dropped(), broken })
}

/// `17<TAB>0<TAB>retransmission spurious_retransmission`.
fn write_frame(out: &mut impl Write, frame: &Frame) -> io::Result<()> {
    let stream = frame.stream.unwrap_or_default();
    writeln!(out, "{}\t{stream}\t{}", frame.number, frame.flags)
}
