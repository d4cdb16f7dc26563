//! `weir lab run`: runs incidents, one after the other.

use std::io;

use ::lab::incident::Incident;
use ::lab::page::page;
use ::lab::run::{Progress, Record, Request, run as run_incident};
use ::lab::stop::Stop;

use balancer::signals::Signals;

use crate::flags::{Common, Exit, LabRunArgs};

use super::{failed, incident, mistaken, text, watched};

pub(crate) fn run(args: &LabRunArgs, common: Common) -> Exit {
    let names = if args.names.is_empty() {
        ::lab::incident::entries().iter().map(|entry| entry.name.to_owned()).collect()
    } else {
        args.names.clone()
    };
    let read: Result<Vec<_>, String> = names.iter().map(|name| incident(name)).collect();
    let incidents = match read {
        Ok(incidents) => incidents,
        Err(why) => return mistaken(&why),
    };
    if let Some(only) = &args.only
        && let Some((name, _)) = incidents
            .iter()
            .find(|(_, incident)| !incident.variants.iter().any(|variant| variant.name == *only))
    {
        return mistaken(&format!("{name} has no variant `{only}`"));
    }
    let mut records = Vec::new();
    for (name, incident) in &incidents {
        match run_one(args, name, incident) {
            Ok(record) => {
                if args.json {
                    let json = serde_json::to_string(&record).unwrap_or_default();
                    println!("{json}");
                } else {
                    print!("{}", text::record(&record, common.colours_stdout()));
                }
                records.push((incident, record));
            }
            Err(why) => return failed(&why),
        }
    }
    if let Some(path) = &args.report
        && let Err(error) = std::fs::write(path, page(&records))
    {
        return failed(&format!("{}: {error}", path.display()));
    }
    if records.iter().all(|(_, record)| record.holds()) { Exit::Done } else { Exit::Failed }
}

/// Runs one, and ends it in order when a signal comes.
fn run_one(args: &LabRunArgs, name: &str, incident: &Incident) -> Result<Record, String> {
    let weir = std::env::current_exe().map_err(|error| format!("this program: {error}"))?;
    let request = Request {
        name,
        incident,
        seed: args.seed,
        is_short: args.short,
        only: args.only.as_deref(),
        weir: &weir,
        keeps_files: args.keep,
    };
    let begun = os::clock::now();
    let tell = |progress: Progress<'_>| {
        // Standard output is for the figures.
        let at_s = (os::clock::now() - begun).as_secs_f64();
        match progress {
            Progress::Variant(variant) => {
                let variants = &incident.variants;
                let number =
                    variants.iter().position(|one| one.name == variant.name).map_or(0, |at| at + 1);
                let (name_of, title, count) = (&variant.name, &variant.title, variants.len());
                eprintln!("{name}, {name_of} (variant {number} of {count}): {title}");
            }
            Progress::Event(what) => eprintln!("{at_s:7.1} s  {what}"),
        }
    };
    let stop = Stop::default();
    let mut signals = Signals::catch().map_err(|error: io::Error| error.to_string())?;
    let stopping = |_| {
        eprintln!("weir lab: stopping; what was made is removed");
        stop.pull();
    };
    watched(&mut signals, stopping, || run_incident(&request, &stop, &tell))
}
