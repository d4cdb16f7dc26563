//! `weir bench upload`: uploads data in parts to S3-compatible endpoints, and measures the time of
//! each part.

mod stores;

use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::sync::Arc;

use balancer::signals::Signals;
use model::Moment;
use observe::TimestampCache;
use tokio::task::LocalSet;
use upload::{Endpoint, Event, Figures, PARTS_MAX, Plan, Store, figures, upload};

use crate::flags::{Common, Exit, bench::UploadArgs};
use crate::render::columns::Columns;

use super::output::failed;

pub(crate) fn run(args: &UploadArgs, _common: Common) -> Exit {
    let plan = plan(args);
    if plan.parts() > PARTS_MAX {
        let least = args.size.div_ceil(PARTS_MAX);
        return mistake(&format!(
            "{} parts are more than the {PARTS_MAX} that S3 takes: --part-size {least} at least",
            plan.parts()
        ));
    }
    let stores = match stores::stores(args) {
        Ok(stores) => stores,
        Err(why) => return mistake(&why),
    };
    // Before the upload, which would be in vain if its figures had no place.
    for file in [&args.json, &args.csv].into_iter().flatten() {
        if let Err(error) = std::fs::write(file, "") {
            return failed(&format!("cannot write {}: {error}", file.display()));
        }
    }
    let mut signals = match Signals::catch() {
        Ok(signals) => signals,
        Err(error) => return failed(&format!("cannot catch signals: {error}")),
    };
    let mut all = Figures {
        format: figures::FORMAT,
        kind: "upload".to_owned(),
        weir: env!("CARGO_PKG_VERSION").to_owned(),
        started_at: TimestampCache::default().at(os::clock::wall()).to_string(),
        host: load::host::this_host(String::new()),
        size_bytes: plan.size_bytes,
        part_bytes: plan.part_bytes,
        parallel: plan.parallel as u64,
        endpoints: Vec::new(),
    };
    signals.run_with_stop(async |mut stop| {
        for store in stores {
            let endpoint = one(store, &plan, stop.as_mut()).await;
            let stopped = endpoint.error.as_deref().is_some_and(|why| why.starts_with("stopped"));
            all.endpoints.push(endpoint);
            if stopped {
                return;
            }
        }
    });
    finish(args, &all)
}

/// Writes and prints what there is.
fn finish(args: &UploadArgs, all: &Figures) -> Exit {
    // The reader may have gone; the files are written anyway.
    let _ = io::stdout().lock().write_all(table(all).as_bytes());
    let write = |file: &Option<std::path::PathBuf>, text: String| match file {
        None => Ok(()),
        Some(file) => store_text(file, &text),
    };
    if let Err(why) =
        write(&args.json, all.to_json()).and_then(|()| write(&args.csv, all.parts_csv()))
    {
        return failed(&why);
    }
    let mut exit = Exit::Done;
    for endpoint in &all.endpoints {
        if let Some(why) = &endpoint.error {
            exit = failed(&format!("{}: {why}", endpoint.name));
        }
        if let Some(why) = &endpoint.left_behind {
            let place = format!("{}{}", endpoint.url, endpoint.key);
            exit = failed(&format!("{}: {why} ({place})", endpoint.name));
        }
    }
    exit
}

fn store_text(file: &Path, text: &str) -> Result<(), String> {
    std::fs::write(file, text).map_err(|error| format!("cannot write {}: {error}", file.display()))
}

fn mistake(why: &str) -> Exit {
    super::output::show(&format!("weir: {why}\n"));
    Exit::Mistake
}

fn plan(args: &UploadArgs) -> Plan {
    let fresh =
        || format!("weir-bench-upload-{}-{}", os::clock::wall().as_secs(), std::process::id());
    Plan {
        key: args.key.clone().unwrap_or_else(fresh),
        size_bytes: args.size,
        part_bytes: args.part_size,
        // At most 256, by the flag.
        parallel: usize::try_from(args.parallel).unwrap_or(1),
        retries_max: args.retries,
        timeout: args.timeout,
        connect_timeout: args.connect_timeout,
        keep: args.key.is_some(),
    }
}

/// One endpoint, with its progress on standard error.
async fn one(store: Store, plan: &Plan, stop: upload::Stop<'_>) -> Endpoint {
    let mut progress = Progress::new(&store.name, plan);
    let mut watch = |event: Event<'_>| progress.see(event);
    let endpoint = LocalSet::new().run_until(upload(Arc::new(store), plan, stop, &mut watch)).await;
    progress.end();
    endpoint
}

/// Time between two lines of progress, in microseconds: often on a terminal, where a line replaces
/// the last one.
const TERMINAL_EVERY_US: u64 = 100_000;
const PIPE_EVERY_US: u64 = 2_000_000;

/// What is said while it runs.
struct Progress<'a> {
    name: String,
    plan: &'a Plan,
    terminal: bool,
    begun: Moment,
    said: Moment,
    parts: u64,
    bytes: u64,
    slowest_s: f64,
}

impl<'a> Progress<'a> {
    fn new(name: &str, plan: &'a Plan) -> Progress<'a> {
        let now = os::clock::now();
        let terminal = io::stderr().is_terminal();
        let name = name.to_owned();
        Progress { name, plan, terminal, begun: now, said: now, parts: 0, bytes: 0, slowest_s: 0.0 }
    }

    fn see(&mut self, event: Event<'_>) {
        let name = &self.name;
        match event {
            Event::Retry { part, error } => {
                let clear = if self.terminal { "\r\x1b[K" } else { "" };
                super::output::show(&format!("{clear}{name}: part {part} is retried: {error}\n"));
            }
            Event::Part(part) => {
                self.parts += 1;
                self.bytes += part.bytes;
                self.slowest_s = self.slowest_s.max(part.took_s);
                let every = if self.terminal { TERMINAL_EVERY_US } else { PIPE_EVERY_US };
                let now = os::clock::now();
                if (now - self.said).as_micros() >= u128::from(every) {
                    self.said = now;
                    self.say(now);
                }
            }
        }
    }

    fn say(&self, now: Moment) {
        let elapsed = (now - self.begun).as_secs_f64().max(1e-6);
        let rate = self.bytes as f64 / elapsed;
        let left = (self.plan.size_bytes - self.bytes) as f64 / rate.max(1.0);
        let line = format!(
            "{}: {} of {} parts, {:.1} MB/s, slowest part {:.3} s, {left:.0} s left",
            self.name,
            self.parts,
            self.plan.parts(),
            rate / 1e6,
            self.slowest_s
        );
        if self.terminal {
            super::output::show(&format!("\r\x1b[K{line}"));
        } else {
            super::output::show(&format!("{line}\n"));
        }
    }

    fn end(&self) {
        if self.terminal {
            super::output::show("\r\x1b[K");
        }
    }
}

/// The table: a line each endpoint.
fn table(all: &Figures) -> String {
    let heading = [
        "endpoint",
        "user s",
        "system s",
        "total s",
        "real s",
        "MB/s",
        "parts",
        "median s",
        "slowest s",
        "retries",
        "resent",
    ];
    let mut columns = Columns::headed(heading.map(|text| text));
    for endpoint in &all.endpoints {
        let times = endpoint.part_times();
        let time = |at: Option<&f64>| at.map_or_else(|| "-".to_owned(), |s| format!("{s:.3}"));
        let resent: Option<u64> =
            endpoint.parts.iter().map(|part| part.retransmissions.map(u64::from)).sum();
        columns.row([
            endpoint.name.clone(),
            format!("{:.3}", endpoint.user_s),
            format!("{:.3}", endpoint.system_s),
            format!("{:.3}", endpoint.total_s),
            format!("{:.3}", endpoint.real_s),
            format!("{:.1}", endpoint.bytes_per_s / 1e6),
            format!("{}", times.len()),
            time(times.get(times.len().saturating_sub(1) / 2)),
            time(times.last()),
            endpoint.retries.to_string(),
            resent.map_or_else(|| "-".to_owned(), |count| count.to_string()),
        ]);
    }
    columns.text()
}

#[cfg(test)]
mod tests {
    use upload::Part;

    use super::*;

    #[test]
    fn the_table_has_a_line_for_each_endpoint() {
        let part = |took_s| Part { took_s, retransmissions: Some(2), ..Part::default() };
        let west = Endpoint {
            name: "us-west-2".to_owned(),
            user_s: 1.849_375,
            system_s: 0.258_619,
            total_s: 2.107_994,
            real_s: 130.012_703,
            bytes_per_s: 1_538_311.0,
            parts: vec![part(0.327), part(61.355), part(1.184)],
            ..Endpoint::default()
        };
        let none = Endpoint { name: "down".to_owned(), ..Endpoint::default() };
        let all = Figures { endpoints: vec![west, none], ..Figures::default() };
        assert_eq!(
            table(&all),
            "endpoint   user s  system s  total s  real s   MB/s  parts  median s  slowest s  \
             retries  resent\n\
             us-west-2  1.849   0.259     2.108    130.013  1.5   3      1.184     61.355     \
             0        6\n\
             down       0.000   0.000     0.000    0.000    0.0   0      -         -          \
             0        0\n"
        );
    }
}
