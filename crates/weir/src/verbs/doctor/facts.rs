//! Collects facts from this host over a period, or reads them from a file.

use std::fmt;
use std::io::{IsTerminal, Read};
use std::path::Path;
use std::time::Duration;

use collect::{Collector, Wanted, Which};
use diagnose::facts::{FORMAT, Facts};

use crate::flags::{Exit, FactsArgs, ListArgs};

/// Samples taken in one look: a queue that is full in three of them is no accident.
const SAMPLES: u32 = 4;

/// Less between two samples says nothing about rates.
const APART_MIN: Duration = Duration::from_millis(50);

/// Larger than the facts of a host with hundreds of containers.
const FILE_MAX_BYTES: u64 = 256 * 1024 * 1024;

/// Why there are no facts.
#[derive(Debug)]
pub(crate) enum Missing {
    /// A file, or a name, that was given is no use.
    Mistake(String),
}

impl Missing {
    /// Says it, and yields the exit code.
    pub(super) fn tell(&self) -> Exit {
        eprintln!("weir: {self}");
        Exit::Mistake
    }
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Missing::Mistake(why) = self;
        f.write_str(why)
    }
}

/// Which kernel settings are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Settings {
    /// All of them, to show or save them.
    All,
    /// Those that rules ask for.
    OfRules,
}

/// Looks at this host for as long as asked, or reads a file.
pub(crate) fn get(args: &FactsArgs, settings: Settings) -> Result<Facts, Missing> {
    if let Some(path) = &args.from {
        return load(path);
    }
    let mut collector = begin(&args.netns, settings)?;
    let apart = (args.time / (SAMPLES - 1)).max(APART_MIN);
    let shown = std::io::stderr().is_terminal();
    if shown {
        eprint!("looking for {}…", model::units::show_duration(apart * (SAMPLES - 1)));
    }
    collector.sample();
    for _ in 2..SAMPLES {
        wait(apart);
        collector.glance();
    }
    wait(apart);
    collector.sample();
    if shown {
        // Carriage return, and erase to the end of the line.
        eprint!("\r\u{1b}[K");
    }
    Ok(collector.into_facts())
}

#[allow(clippy::disallowed_methods, reason = "nothing else runs on this thread")]
fn wait(time: Duration) {
    std::thread::sleep(time);
}

/// One sample of this host, or a file.
pub(super) fn at_once(args: &ListArgs, settings: Settings) -> Result<Facts, Missing> {
    if let Some(path) = &args.from {
        return load(path);
    }
    let mut collector = begin(&args.netns, settings)?;
    collector.sample();
    Ok(collector.into_facts())
}

/// Begins to look at the namespaces that `netns` names.
pub(super) fn begin(netns: &str, settings: Settings) -> Result<Collector, Missing> {
    let namespaces = match netns {
        "all" => Which::All,
        "own" => Which::Own,
        name => Which::Named(name.to_owned()),
    };
    let all_settings = settings == Settings::All;
    let wanted = Wanted { namespaces, samples_max: SAMPLES as usize, all_settings };
    Collector::begin(&wanted).map_err(Missing::Mistake)
}

/// Reads a file named by the user, up to a maximum length.
pub(super) fn text_of(path: &Path, bytes_max: u64) -> Result<String, Missing> {
    let wrong = |why: String| Missing::Mistake(format!("{}: {why}", path.display()));
    let file = std::fs::File::open(path).map_err(|error| wrong(error.to_string()))?;
    let mut text = String::new();
    let mut bounded = file.take(bytes_max + 1);
    bounded.read_to_string(&mut text).map_err(|error| wrong(error.to_string()))?;
    if text.len() as u64 > bytes_max {
        return Err(wrong(format!("larger than {bytes_max} bytes")));
    }
    Ok(text)
}

fn load(path: &Path) -> Result<Facts, Missing> {
    let wrong = |why: String| Missing::Mistake(format!("{}: {why}", path.display()));
    let text = text_of(path, FILE_MAX_BYTES)?;
    let facts: Facts = serde_json::from_str(&text)
        .map_err(|error| wrong(format!("no facts that `weir doctor --save` wrote: {error}")))?;
    if facts.format > FORMAT {
        let why = format!(
            "written by a later version of weir (format {}, this one reads up to {FORMAT})",
            facts.format
        );
        return Err(wrong(why));
    }
    Ok(facts)
}

/// Writes facts into a file.
pub(super) fn save(facts: &Facts, path: &Path) -> Result<(), String> {
    let mut text = serde_json::to_string_pretty(facts).map_err(|error| error.to_string())?;
    text.push('\n');
    std::fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}

/// How long was looked: from the first sample to the last.
pub(super) fn looked_for_ms(facts: &Facts) -> u64 {
    match facts.host.samples.as_slice() {
        [first, .., last] => last.at_ms.saturating_sub(first.at_ms),
        _ => 0,
    }
}
