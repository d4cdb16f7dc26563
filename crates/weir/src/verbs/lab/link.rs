//! `weir lab link`: runs one link as a separate process.

use std::io::{self, Write};
use std::path::Path;

use balancer::signals::Signals;
use lab::link::{Forwarder, Way, Ways, open};
use os::tun::Packets;
use serde_json::json;
use tokio::signal::unix::SignalKind;

use crate::flags::{Exit, LinkArgs};

use super::failed;

pub(crate) fn run(args: &LinkArgs) -> Exit {
    let ways = match ways(args.file.as_deref()) {
        Ok(ways) => ways,
        Err(why) => {
            eprintln!("weir lab: {why}");
            return Exit::Mistake;
        }
    };
    match carry(args, ways) {
        Ok(()) => Exit::Done,
        Err(error) => failed(&error.to_string()),
    }
}

fn carry(args: &LinkArgs, ways: [Way; 2]) -> io::Result<()> {
    let mut signals = Signals::catch()?;
    let mut hangup = signals.also(SignalKind::hangup())?;
    let packets = if args.large { Packets::Large } else { Packets::Wire };
    let device = |end| {
        open(end, packets, args.mtu).map_err(|error| match error.kind() {
            io::ErrorKind::PermissionDenied => {
                let why = format!("{error}; making devices takes root");
                io::Error::new(error.kind(), why)
            }
            _ => error,
        })
    };
    let devices = [device(&args.first)?, device(&args.second)?];
    let forwarder = Forwarder::start(devices, packets, ways, args.seed)?;
    // The reader may have gone.
    let _ = said(&format!("ready: {} and {}", args.first.device, args.second.device));
    while signals.run(hangup.recv()).is_ok() {
        match self::ways(args.file.as_deref()) {
            Ok(ways) => forwarder.set(ways)?,
            Err(why) => eprintln!("weir lab: {why}; the link goes on as it was"),
        }
    }
    let [there, back] = forwarder.counts();
    let told = json!({ "there": there, "back": back, "late": forwarder.stop() });
    let _ = said(&told.to_string());
    Ok(())
}

/// What the file says.
fn ways(file: Option<&Path>) -> Result<[Way; 2], String> {
    let Some(path) = file else { return Ok(<[Way; 2]>::default()) };
    let told = |why: String| format!("{}: {why}", path.display());
    let text = std::fs::read_to_string(path).map_err(|error| told(error.to_string()))?;
    let ways: Ways = toml::from_str(&text).map_err(|error| told(error.to_string()))?;
    ways.each().map_err(told)
}

fn said(line: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}
