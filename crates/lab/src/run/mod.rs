//! Runs an incident: each variant from setup to cleanup, then the comparison with the expectations.

mod command_line;
mod judge;
mod program;
pub mod record;
mod stage;
mod written;

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use crate::incident::{Action, Incident, Variant};
use crate::network::state::{Claim, clean};
use crate::stop::Stop;

pub use program::find;
pub use record::Record;
use record::VariantRecord;
use stage::Stage;

/// What to run, and how.
#[derive(Debug)]
pub struct Request<'a> {
    /// The incident's name.
    pub name: &'a str,
    /// The incident.
    pub incident: &'a Incident,
    /// The seed of the links' decisions, and `{{ seed }}` in templates.
    pub seed: u64,
    /// Shortened, for tests and a first try.
    pub is_short: bool,
    /// Only this variant; expectations about others are left out.
    pub only: Option<&'a str>,
    /// This program, which runs on hosts where `weir` is written.
    pub weir: &'a Path,
    /// Leave the run's files where they are.
    pub keeps_files: bool,
}

/// Progress of a run.
pub enum Progress<'a> {
    /// A variant begins.
    Variant(&'a Variant),
    /// An event.
    Event(&'a str),
}

/// Runs an incident to its end.
///
/// # Errors
/// Why the run could not be completed, in one line. An unexpected figure is not an error.
pub fn run(
    request: &Request<'_>,
    stop: &Stop,
    tell: &dyn Fn(Progress<'_>),
) -> Result<Record, String> {
    check_programs(request)?;
    // A run that was killed may have left what would stand in the way.
    clean()?;
    let begun = os::clock::now();
    let mut claim = Claim::new(request.name)?;
    if request.keeps_files {
        claim.keep_folder();
    }
    let mut variants = Vec::new();
    let mut figures = Map::new();
    for variant in chosen(request) {
        tell(Progress::Variant(variant));
        let (record, outputs) = run_variant(request, variant, claim.folder(), stop, tell)
            .map_err(|why| format!("{}, {}: {why}", request.name, variant.name))?;
        variants.push(record);
        figures.insert(variant.name.clone(), outputs);
        stop.check()?;
    }
    let figures = Value::Object(figures);
    let mut record = Record {
        name: request.name.to_owned(),
        title: request.incident.title.clone(),
        seed: request.seed,
        is_short: request.is_short,
        kernel: os::process::kernel_release(),
        cpus: os::cpu::allowed().len(),
        took_s: (os::clock::now() - begun).as_secs_f64(),
        variants,
        checks: Vec::new(),
        findings: Vec::new(),
        figures,
    };
    judge::judge(request, &mut record);
    Ok(record)
}

/// The network and the programs of an incident, without its steps, for as long as `work` takes,
/// and what came of that.
///
/// # Errors
/// What could not be set up, that it was stopped before it was, or what `work` failed at.
pub fn visit<T>(
    request: &Request<'_>,
    stop: &Stop,
    work: impl FnOnce(&dyn Fn(&str, &Path) -> std::process::Command) -> Result<T, String>,
) -> Result<T, String> {
    check_programs(request)?;
    clean()?;
    let claim = Claim::new(request.name)?;
    let variant = chosen(request).next().ok_or("there is no such variant")?;
    let mut stage = Stage::set_up(request, variant, claim.folder(), stop, &|_| {})?;
    stop.check()?;
    let ended = work(&|host, program| stage.command(host, program));
    stage.take_down();
    ended
}

fn chosen<'a>(request: &Request<'a>) -> impl Iterator<Item = &'a Variant> + use<'a> {
    let (only, is_short) = (request.only, request.is_short);
    request.incident.variants.iter().filter(move |variant| match only {
        Some(only) => variant.name == only,
        None => !(is_short && variant.long),
    })
}

fn run_variant(
    request: &Request<'_>,
    variant: &Variant,
    folder: &Path,
    stop: &Stop,
    tell: &dyn Fn(Progress<'_>),
) -> Result<(VariantRecord, Value), String> {
    let mut stage = Stage::set_up(request, variant, folder, stop, tell)?;
    for step in &request.incident.steps {
        if step.is_in(&variant.name, request.is_short) {
            stage.step(step)?;
        }
        stop.check()?;
    }
    stage.finish()
}

/// Checks that every program is installed, before anything is created.
fn check_programs(request: &Request<'_>) -> Result<(), String> {
    let incident = request.incident;
    let commands = incident.programs.iter().map(|program| program.run.as_ref().as_str());
    let steps = incident.steps.iter().filter_map(|step| match step.action() {
        Ok(Action::Run(command)) => Some(command.as_ref().as_str()),
        _ => None,
    });
    let mut missing: Vec<&str> = commands
        .chain(steps)
        .flat_map(|command| command.split_whitespace().take(1).chain(programs_in(command)))
        .chain(["ip"])
        .filter(|name| program_path(request.weir, name).is_none())
        .collect();
    missing.sort_unstable();
    missing.dedup();
    if missing.is_empty() {
        return Ok(());
    }
    let missing = missing.join(", ");
    Err(format!(
        "{} needs programs that are not installed: {missing}; scripts/install-test-peers installs them, \
         scripts/install-consul Consul",
        request.name
    ))
}

/// The programs that a command names as `program('NAME')`.
fn programs_in(command: &str) -> impl Iterator<Item = &str> {
    command.split("program(").skip(1).filter_map(|behind| {
        let quote = behind.chars().next().filter(|quote| matches!(quote, '\'' | '"'))?;
        Some(behind[1..].split_once(quote)?.0)
    })
}

fn program_path(weir: &Path, name: &str) -> Option<PathBuf> {
    if name == "weir" {
        return Some(weir.to_path_buf());
    }
    find(name, weir)
}

#[cfg(test)]
mod tests {
    use super::programs_in;

    #[test]
    fn programs_that_a_shell_starts_are_found_too() {
        let command = "sh -c 'mkdir x && exec {{ program('versitygw') }} --port {{ host }}:1 \
                       | {{ program(\"tee\") }} y'";
        assert_eq!(programs_in(command).collect::<Vec<_>>(), ["versitygw", "tee"]);
    }
}
