//! The steps of a run.

use serde::Deserialize;
use toml::Spanned;

use crate::link::{Way, Ways};
use crate::units::Time;

/// A step with one of `run`, `wait`, `end`, `sleep`, `link`, `cut`, `mend`, `stop`, `pause`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// Its name, used in the paths of figures.
    #[serde(default)]
    pub name: String,
    /// A description for the list of events.
    #[serde(default)]
    pub title: String,
    /// A command line.
    pub run: Option<Spanned<String>>,
    /// Where the command runs: a host, or each host of a group at once.
    pub host: Option<Spanned<String>>,
    /// The command keeps running during the next steps.
    #[serde(default)]
    pub background: bool,
    /// Exit codes that count as success.
    #[serde(default = "zero")]
    pub codes: Vec<i32>,
    /// How long the command may take.
    #[serde(default = "two_minutes")]
    pub timeout: Time,
    /// A step in the background to wait for.
    pub wait: Option<Spanned<String>>,
    /// A step in the background to end, by SIGTERM.
    pub end: Option<Spanned<String>>,
    /// A time to wait.
    pub sleep: Option<Spanned<String>>,
    /// A link whose settings change.
    pub link: Option<Spanned<String>>,
    /// See `link`.
    pub both: Option<Way>,
    /// See `link`.
    pub there: Option<Way>,
    /// See `link`.
    pub back: Option<Way>,
    /// A host to cut off: its links drop everything.
    pub cut: Option<Spanned<String>>,
    /// A host whose links get their first settings again.
    pub mend: Option<Spanned<String>>,
    /// A program that is ended.
    pub stop: Option<Spanned<String>>,
    /// A program that is paused (SIGSTOP) for a time.
    pub pause: Option<Spanned<String>>,
    /// The length of each pause.
    #[serde(rename = "for")]
    pub time: Option<Time>,
    /// The number of pauses.
    pub times: Option<u32>,
    /// See `times`.
    pub every: Option<Time>,
    /// The variants that it is part of; empty: all.
    #[serde(default)]
    pub variants: Vec<Spanned<String>>,
    /// A shortened run leaves it out.
    #[serde(default)]
    pub long: bool,
}

fn zero() -> Vec<i32> {
    vec![0]
}

fn two_minutes() -> Time {
    Time(std::time::Duration::from_mins(2))
}

/// What a step does.
#[derive(Clone, Debug)]
pub enum Action<'a> {
    /// A command.
    Run(&'a Spanned<String>),
    /// Wait for a step.
    Wait(&'a str),
    /// End a step.
    End(&'a str),
    /// Wait for a time, a template.
    Sleep(&'a Spanned<String>),
    /// Change a link.
    Link(&'a str, Box<Ways>),
    /// Cut a host off.
    Cut(&'a str),
    /// Undo that.
    Mend(&'a str),
    /// End a program.
    Stop(&'a str),
    /// Pause a program.
    Pause(&'a str, Pause),
}

/// The pauses of a program.
#[derive(Clone, Copy, Debug)]
pub struct Pause {
    /// For how long each time.
    pub time: Time,
    /// How often.
    pub times: u32,
    /// From one beginning to the next.
    pub every: Time,
}

impl Step {
    /// What it does.
    ///
    /// # Errors
    /// When it does nothing, or two things.
    pub fn action(&self) -> Result<Action<'_>, String> {
        let ways =
            Ways { both: self.both.clone(), there: self.there.clone(), back: self.back.clone() };
        let pause = Pause {
            time: self.time.unwrap_or_default(),
            times: self.times.unwrap_or(1),
            every: self.every.unwrap_or_default(),
        };
        let all = [
            self.run.as_ref().map(Action::Run),
            self.wait.as_ref().map(|it| Action::Wait(own(it))),
            self.end.as_ref().map(|it| Action::End(own(it))),
            self.sleep.as_ref().map(Action::Sleep),
            self.link.as_ref().map(|it| Action::Link(own(it), Box::new(ways))),
            self.cut.as_ref().map(|it| Action::Cut(own(it))),
            self.mend.as_ref().map(|it| Action::Mend(own(it))),
            self.stop.as_ref().map(|it| Action::Stop(own(it))),
            self.pause.as_ref().map(|it| Action::Pause(own(it), pause)),
        ];
        let mut given = all.into_iter().flatten();
        match (given.next(), given.next()) {
            (Some(action), None) => Ok(action),
            _ => {
                Err("a step has one of `run`, `wait`, `end`, `sleep`, `link`, `cut`, `mend`, `stop` and \
                      `pause`"
                    .to_owned())
            }
        }
    }

    /// Whether it is done in a variant.
    pub fn is_in(&self, variant: &str, is_short: bool) -> bool {
        !(self.long && is_short) && is_in(&self.variants, variant)
    }
}

fn own(text: &Spanned<String>) -> &str {
    text.as_ref()
}

/// Whether a list of variants holds one; an empty one holds all.
pub(crate) fn is_in(variants: &[Spanned<String>], variant: &str) -> bool {
    variants.is_empty() || variants.iter().any(|one| one.as_ref() == variant)
}
