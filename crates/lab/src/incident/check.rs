//! Consistency checks of an incident file.

use std::ops::Range;

use toml::Spanned;

use crate::template::{self, Source};

use super::{Action, Findings, HOSTS_MAX, Incident, Program, is_in};

/// A mistake and its place, if that is known.
#[derive(Debug)]
pub(super) struct Mistake {
    what: String,
    at: Option<Range<usize>>,
}

impl Mistake {
    fn at(text: &Spanned<String>, what: String) -> Mistake {
        Mistake { what, at: Some(text.span()) }
    }

    fn new(what: String) -> Mistake {
        Mistake { what, at: None }
    }

    /// As one line, with the line of the file that it is about.
    pub(super) fn message(self, source: &Source) -> String {
        source.message(&self.what, self.at.as_ref())
    }
}

/// Names that every template can use, besides hosts and variables.
const NAMES: &[&str] = &["host", "out", "folder", "seed", "weir", "file", "program"];

/// Checks the syntax of every template, and that its names are known.
///
/// # Errors
/// The first mistake, with its line.
pub(super) fn templates(incident: &Incident) -> Result<(), String> {
    let sets = || {
        let variants = incident.variants.iter().map(|variant| &variant.set);
        [&incident.set, &incident.short].into_iter().chain(variants).flatten()
    };
    let is_fixed = |name: &str| {
        NAMES.contains(&name) || incident.hosts.contains_key(name) || incident.host(name).is_some()
    };
    let is_known = |name: &str| is_fixed(name) || sets().any(|(one, _)| one == name);
    let source = &incident.source;
    for (name, value) in sets() {
        if NAMES.contains(&name.as_str()) {
            let what = format!("variable `{name}`: templates use this name for something else");
            return Err(source.message(&what, None));
        }
        template::check(value, &is_fixed)
            .map_err(|what| source.message(&format!("variable `{name}`: {what}"), None))?;
    }
    for step in &incident.steps {
        template::check(&step.title, &is_known)
            .map_err(|what| source.message(&format!("title of a step: {what}"), None))?;
    }
    let steps = incident.steps.iter().flat_map(|step| [step.run.as_ref(), step.sleep.as_ref()]);
    let programs = incident.programs.iter();
    let programs = programs.flat_map(|program| [Some(&program.run), program.ready.as_ref()]);
    let mut templates = programs.chain(steps).flatten().chain(incident.files.values());
    templates.try_for_each(|template| source.check(template, &is_known))
}

pub(super) fn check(incident: &Incident) -> Result<(), Mistake> {
    hosts_and_links(incident)?;
    programs(incident)?;
    steps(incident)?;
    for (name, part) in &incident.figures {
        if part.contains("{{") {
            let what = format!("`{name}` of [figures] names another; only figures name parts");
            return Err(Mistake::new(what));
        }
    }
    for expect in &incident.expect {
        if expect.at_least.is_none() && expect.at_most.is_none() && expect.theirs.is_empty() {
            let what = "an expectation wants `at_least`, `at_most` or `theirs`".to_owned();
            return Err(Mistake::at(&expect.figure, what));
        }
        let expression =
            incident.figure(expect).map_err(|what| Mistake::at(&expect.figure, what))?;
        for path in expression.paths() {
            let first = path.split('.').next().unwrap_or_default();
            if !incident.variants.iter().any(|variant| variant.name == first) {
                let what = format!("`{first}` is no variant; a figure begins with one");
                return Err(Mistake::at(&expect.figure, what));
            }
        }
    }
    incident.findings.iter().try_for_each(|one| findings(incident, one))
}

fn findings(incident: &Incident, findings: &Findings) -> Result<(), Mistake> {
    variant(incident, &findings.variant)?;
    let steps = |name: &str| incident.steps.iter().any(|one| one.run.is_some() && one.name == name);
    let (name, mistake) = match (&findings.step, &findings.balancer) {
        (Some(step), None) if steps(step.as_ref()) => return Ok(()),
        (Some(step), None) => (step, format!("no step named `{}` runs anything", step.as_ref())),
        (None, Some(program)) => {
            let runs = |one: &&Program| one.name == *program.as_ref();
            let runs_weir = |one: &Program| {
                is_in(&one.variants, findings.variant.as_ref())
                    && one.run.as_ref().split_whitespace().take(2).eq(["weir", "serve"])
            };
            match incident.programs.iter().find(runs) {
                // What it says is kept by its name, among what steps have written.
                Some(one) if runs_weir(one) && !steps(&one.name) => return Ok(()),
                Some(one) if steps(&one.name) => {
                    (program, format!("a step is named `{}` as well", one.name))
                }
                _ => (program, format!("no `weir serve` runs there as `{}`", program.as_ref())),
            }
        }
        _ => {
            let what = "findings are those of a `step` or of a `balancer`".to_owned();
            return Err(Mistake::at(&findings.variant, what));
        }
    };
    Err(Mistake::at(name, mistake))
}

fn hosts_and_links(incident: &Incident) -> Result<(), Mistake> {
    let hosts = incident.all_hosts();
    if hosts.is_empty() || hosts.len() > HOSTS_MAX {
        return Err(Mistake::new(format!("1 to {HOSTS_MAX} hosts, not {}", hosts.len())));
    }
    for name in incident.hosts.keys() {
        let fits = name.len() <= 12
            && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
            && !name.ends_with(|c: char| c.is_ascii_digit());
        if !fits {
            let what = "up to 12 small letters and digits, a letter at the end";
            return Err(Mistake::new(format!("`{name}` is no name of a host: {what}")));
        }
    }
    for link in &incident.links {
        for name in &link.between {
            host(incident, name)?;
        }
        link.ways().each().map_err(|what| {
            Mistake::at(&link.between[0], format!("link `{}`: {what}", link.name))
        })?;
    }
    Ok(())
}

fn programs(incident: &Incident) -> Result<(), Mistake> {
    for program in &incident.programs {
        host(incident, &program.host)?;
        for name in &program.variants {
            variant(incident, name)?;
        }
    }
    Ok(())
}

fn steps(incident: &Incident) -> Result<(), Mistake> {
    for step in &incident.steps {
        let named = || if step.name.is_empty() { &step.title } else { &step.name };
        let about = |what: String| Mistake::new(format!("step `{}`: {what}", named()));
        for name in &step.variants {
            variant(incident, name)?;
        }
        match step.action().map_err(about)? {
            Action::Run(_) => match &step.host {
                Some(name) => host(incident, name)?,
                None => return Err(about("`run` wants a `host`".to_owned())),
            },
            Action::Link(name, ways) => {
                ways.each().map_err(about)?;
                if !incident.all_links().iter().any(|(one, ..)| one == name) {
                    return Err(about(format!("there is no link `{name}`")));
                }
            }
            Action::Cut(name) | Action::Mend(name) => {
                if incident.members(name).is_empty() {
                    return Err(about(format!("there is no host `{name}`")));
                }
            }
            Action::Stop(name) | Action::Pause(name, _) => {
                if !incident.programs.iter().any(|program| program.name == name) {
                    return Err(about(format!("there is no program `{name}`")));
                }
            }
            Action::Wait(name) | Action::End(name) => {
                if !incident.steps.iter().any(|one| one.background && one.name == name) {
                    return Err(about(format!("no step `{name}` is in the background")));
                }
            }
            Action::Sleep(_) => {}
        }
    }
    Ok(())
}

fn host(incident: &Incident, name: &Spanned<String>) -> Result<(), Mistake> {
    if incident.members(name.as_ref()).is_empty() {
        let names: Vec<&str> = incident.hosts.keys().map(String::as_str).collect();
        let what = format!("no host `{}`; there are {}", name.as_ref(), names.join(", "));
        return Err(Mistake::at(name, what));
    }
    Ok(())
}

fn variant(incident: &Incident, name: &Spanned<String>) -> Result<(), Mistake> {
    if incident.variants.iter().any(|variant| variant.name == *name.as_ref()) {
        return Ok(());
    }
    let names: Vec<&str> = incident.variants.iter().map(|variant| variant.name.as_str()).collect();
    let what = format!("no variant `{}`; there are {}", name.as_ref(), names.join(", "));
    Err(Mistake::at(name, what))
}

#[cfg(test)]
#[path = "check/tests.rs"]
mod tests;
