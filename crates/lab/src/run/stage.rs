//! The run of one variant: its network, its programs and its steps.

mod scope;

use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use os::process::Ask;
use serde_json::{Map, Value, json};
use toml::Spanned;

use super::command_line::split;
use super::program::Running;
use super::record::{Event, VariantRecord};
use super::written::{self, one_or_all};
use super::{Progress, Request, program_path};
use crate::incident::{Action, Pause, Program, Step, Variant};
use crate::network::Network;
use crate::stop::Stop;
use crate::template;
use crate::units::Time;
use scope::Scope;

/// How long a program may take until it accepts connections.
const READY_WITHIN: Duration = Duration::from_secs(15);
/// Between two attempts to connect to one that is not ready.
const CONNECT_WAIT: Duration = Duration::from_millis(500);

/// The run of a variant.
pub(super) struct Stage<'a> {
    request: &'a Request<'a>,
    variant: &'a Variant,
    stop: &'a Stop,
    tell: &'a dyn Fn(Progress<'_>),
    // Dropped before the network: fields are dropped in this order.
    background: Vec<Doing<'a>>,
    programs: Vec<Running>,
    network: Network,
    folder: PathBuf,
    scope: Arc<Scope>,
    begun: model::Moment,
    events: Vec<Event>,
    outputs: Map<String, Value>,
    /// When steps began, in seconds, by name.
    begun_s: Map<String, Value>,
}

/// A command of a step, on one host or on several.
struct Doing<'a> {
    step: &'a Step,
    commands: Vec<(Running, PathBuf)>,
    ends_by: model::Moment,
}

impl<'a> Stage<'a> {
    /// Creates the network and starts the programs.
    pub(super) fn set_up(
        request: &'a Request<'a>,
        variant: &'a Variant,
        folder: &Path,
        stop: &'a Stop,
        tell: &'a dyn Fn(Progress<'_>),
    ) -> Result<Stage<'a>, String> {
        let incident = request.incident;
        let folder = folder.join(&variant.name);
        std::fs::create_dir_all(&folder)
            .map_err(|error| format!("{}: {error}", folder.display()))?;
        let run = std::process::id().to_string();
        let network = Network::make(incident, variant, &run, request.seed, stop)?;
        let scope = Arc::new(Scope::of(request, variant, &network, &folder));
        let mut stage = Stage {
            request,
            variant,
            stop,
            tell,
            background: Vec::new(),
            programs: Vec::new(),
            network,
            folder,
            scope,
            begun: os::clock::now(),
            events: Vec::new(),
            outputs: Map::new(),
            begun_s: Map::new(),
        };
        for program in &incident.programs {
            if crate::incident::is_in(&program.variants, &variant.name) {
                for host in incident.members(program.host.as_ref()) {
                    stop.check()?;
                    stage.start(program, &host)?;
                }
            }
        }
        stage.wait_until_ready()?;
        stage.begun = os::clock::now();
        Ok(stage)
    }

    fn start(&mut self, program: &Program, host: &str) -> Result<(), String> {
        let name = match self.request.incident.members(program.host.as_ref()).len() {
            1 => program.name.clone(),
            _ => format!("{}-{host}", program.name),
        };
        let command = self.filled(&program.run, host, None)?;
        let running = Running::start(command, &name, &program.name, &self.folder)?;
        self.programs.push(running);
        Ok(())
    }

    fn wait_until_ready(&mut self) -> Result<(), String> {
        for program in &self.request.incident.programs {
            let Some(ready) = &program.ready else { continue };
            if !crate::incident::is_in(&program.variants, &self.variant.name) {
                continue;
            }
            for host in self.request.incident.members(program.host.as_ref()) {
                let address = self.scope.fill(ready, Some(&host), None)?;
                let address: SocketAddr = address
                    .parse()
                    .map_err(|_| format!("{}: `{address}` is no address", program.name))?;
                self.wait_for(&program.name, &host, address)?;
            }
        }
        Ok(())
    }

    fn wait_for(&mut self, program: &str, host: &str, address: SocketAddr) -> Result<(), String> {
        let Stage { network, programs, stop, .. } = self;
        let mut ended = None;
        let answers = stop.until(READY_WITHIN, || {
            let mut own = programs.iter_mut().filter(|one| one.of == program);
            let gone = own.find_map(|one| one.ended().map(|_| one.last_words()));
            if let Some(gone) = gone {
                ended = Some(gone);
                return Some(false);
            }
            let connect = || TcpStream::connect_timeout(&address, CONNECT_WAIT).is_ok();
            network.inside(host, connect).is_ok_and(|connected| connected).then_some(true)
        });
        stop.check()?;
        match (answers, ended) {
            (Some(true), _) => Ok(()),
            (_, Some(words)) => Err(format!("{program} on {host} ended at once: {words}")),
            _ => Err(format!("{program} on {host} does not accept connections to {address}")),
        }
    }

    /// Executes a step.
    pub(super) fn step(&mut self, step: &'a Step) -> Result<(), String> {
        let title = if step.title.is_empty() { &step.name } else { &step.title };
        let shown = template::render(title, self.scope.names(None, None))?;
        let action = step.action()?;
        let is_fault =
            !matches!(action, Action::Run(_) | Action::Wait(_) | Action::End(_) | Action::Sleep(_));
        if !shown.is_empty() {
            self.note(shown.clone(), is_fault);
        }
        if !step.name.is_empty() {
            self.begun_s.insert(step.name.clone(), json!(self.now_s()));
        }
        let done = match action {
            Action::Run(command) => self.run(step, command),
            Action::Wait(name) => self.wait(name),
            Action::End(name) => {
                let doing = self.background.iter_mut().filter(|doing| doing.step.name == name);
                let commands = doing.flat_map(|doing| &mut doing.commands);
                commands.for_each(|(running, _)| running.ask(Ask::Terminate));
                self.wait(name)
            }
            Action::Sleep(time) => {
                let time = Time::read(&self.scope.fill(time, None, None)?)?;
                self.stop.wait(time.0);
                Ok(())
            }
            Action::Link(name, ways) => self.network.set(name, &ways),
            Action::Cut(host) => self.cut(host, true),
            Action::Mend(host) => self.cut(host, false),
            Action::Stop(program) => {
                for running in self.programs.iter_mut().filter(|one| one.of == program) {
                    running.stop();
                }
                Ok(())
            }
            Action::Pause(program, pause) => {
                self.pause(program, pause);
                Ok(())
            }
        };
        done.map_err(|why| format!("{shown}: {why}"))
    }

    fn note(&mut self, what: String, is_fault: bool) {
        (self.tell)(Progress::Event(&what));
        self.events.push(Event { at_s: self.now_s(), what, is_fault });
    }

    /// Seconds since the variant's beginning.
    fn now_s(&self) -> f64 {
        (os::clock::now() - self.begun).as_secs_f64()
    }

    fn cut(&mut self, host: &str, is_cut: bool) -> Result<(), String> {
        for host in self.request.incident.members(host) {
            self.network.cut(&host, is_cut)?;
        }
        Ok(())
    }

    fn pause(&mut self, program: &str, pause: Pause) {
        for _ in 0..pause.times {
            let begun = os::clock::now();
            for ask in [Ask::Pause, Ask::GoOn] {
                for running in self.programs.iter_mut().filter(|one| one.of == program) {
                    running.ask(ask);
                }
                let time = if ask == Ask::Pause {
                    pause.time.0
                } else {
                    pause.every.0.saturating_sub(os::clock::now() - begun)
                };
                // Stopped or not, it must go on again.
                self.stop.wait(time);
            }
        }
    }

    fn run(&mut self, step: &'a Step, command: &Spanned<String>) -> Result<(), String> {
        let hosts = step.host.as_ref().map(|host| self.request.incident.members(host.as_ref()));
        let hosts = hosts.unwrap_or_default();
        let mut commands = Vec::new();
        for host in &hosts {
            let name = match (hosts.len(), step.name.is_empty()) {
                (_, true) => format!("step{}", self.events.len()),
                (1, false) => step.name.clone(),
                (_, false) => format!("{}-{host}", step.name),
            };
            let out = self.folder.join(format!("{name}.json"));
            let command = self.filled(command, host, Some(&out))?;
            let running = Running::start(command, &name, &step.name, &self.folder)?;
            commands.push((running, out));
        }
        let doing = Doing { step, commands, ends_by: os::clock::now() + step.timeout.0 };
        if step.background {
            self.background.push(doing);
            return Ok(());
        }
        self.end(doing)
    }

    fn wait(&mut self, name: &str) -> Result<(), String> {
        let place = self.background.iter().position(|doing| doing.step.name == name);
        let Some(place) = place else { return Ok(()) };
        let doing = self.background.remove(place);
        self.end(doing)
    }

    /// Waits for a step's commands and keeps their output.
    fn end(&mut self, mut doing: Doing<'a>) -> Result<(), String> {
        let step = doing.step;
        let mut values = Vec::new();
        for (running, out) in &mut doing.commands {
            let left = doing.ends_by.since(os::clock::now());
            let Some(code) = self.stop.until(left, || running.ended()) else {
                let why = if self.stop.is_pulled() { "stopped" } else { "takes too long" };
                return Err(format!("{}: {why}", running.name));
            };
            if !step.codes.contains(&code) {
                let words = running.last_words();
                return Err(format!("{} ended with code {code}: {words}", running.name));
            }
            let text = std::fs::read_to_string(&*out).unwrap_or_else(|_| running.said());
            // What has written no JSON has at least an exit code.
            values.push(written::read(&text).unwrap_or_else(|| json!({ "code": code })));
        }
        let value = one_or_all(values);
        if !step.name.is_empty() {
            self.outputs.insert(step.name.clone(), value);
        }
        Ok(())
    }

    /// Waits for background steps, reads the kernels' counters and stops everything.
    pub(super) fn finish(mut self) -> Result<(VariantRecord, Value), String> {
        while let Some(doing) = self.background.pop() {
            self.end(doing)?;
        }
        self.ask_balancers()?;
        let mut counters = self.network.counters();
        for of in counters.values_mut() {
            of.retain(|_, count| *count > 0);
        }
        let mut links = self.network.link_counts();
        let late = self.network.end_links();
        for (name, of) in links.as_object_mut().into_iter().flatten() {
            of["late"] = late[name].clone();
        }
        for running in &mut self.programs {
            if !running.is_stopped && running.ended().is_some() {
                let what =
                    format!("{} had ended by itself: {}", running.name, running.last_words());
                (self.tell)(Progress::Event(&what));
                let at_s = (os::clock::now() - self.begun).as_secs_f64();
                self.events.push(Event { at_s, what, is_fault: true });
            }
        }
        let took_s = self.now_s();
        let begun_s = Value::Object(std::mem::take(&mut self.begun_s));
        self.outputs.insert("begun_s".to_owned(), begun_s);
        self.outputs.insert("counters".to_owned(), json!(counters));
        self.outputs.insert("links".to_owned(), links);
        self.outputs.insert("took_s".to_owned(), json!(took_s));
        let record = VariantRecord {
            name: self.variant.name.clone(),
            title: self.variant.title.clone(),
            events: std::mem::take(&mut self.events),
            counters,
        };
        let outputs = Value::Object(std::mem::take(&mut self.outputs));
        self.take_down();
        Ok((record, outputs))
    }

    /// Asks each balancer whose findings are checked for them.
    fn ask_balancers(&mut self) -> Result<(), String> {
        let incident = self.request.incident;
        for findings in &incident.findings {
            let Some(balancer) = &findings.balancer else { continue };
            if *findings.variant.as_ref() != self.variant.name {
                continue;
            }
            let own = |one: &&Program| one.name == *balancer.as_ref();
            let hosts = incident.programs.iter().find(own).map(|one| one.host.as_ref());
            let hosts = hosts.map_or_else(Vec::new, |host| incident.members(host));
            self.note(format!("{} is asked for its own findings", balancer.as_ref()), false);
            let answers: Result<Vec<Value>, String> =
                hosts.iter().map(|host| self.findings_of(host)).collect();
            self.outputs.insert(balancer.as_ref().clone(), Value::Array(answers?));
        }
        Ok(())
    }

    /// The findings that the admin API of the balancer on a host reports.
    fn findings_of(&self, host: &str) -> Result<Value, String> {
        let mut command = self.network.command(host, self.request.weir);
        let output = command.args(["status", "--json"]).output();
        let output = output.map_err(|error| format!("weir status on {host}: {error}"))?;
        let mut status: Value = serde_json::from_slice(&output.stdout).map_err(|_| {
            let words = String::from_utf8_lossy(&output.stderr);
            format!("the balancer on {host} did not report its status: {}", words.trim())
        })?;
        Ok(status["doctor"].take())
    }

    /// Ends the programs, in the order opposite to their start.
    pub(super) fn take_down(&mut self) {
        self.background.clear();
        while let Some(mut running) = self.programs.pop() {
            running.stop();
        }
    }

    /// A command on a host.
    pub(super) fn command(&self, host: &str, program: &Path) -> Command {
        self.network.command(host, program)
    }

    /// A command line on a host.
    fn filled(
        &self,
        line: &Spanned<String>,
        host: &str,
        out: Option<&Path>,
    ) -> Result<Command, String> {
        let words = split(&self.scope.fill(line, Some(host), out)?)?;
        let (program, words) = words.split_first().ok_or("an empty command line")?;
        let path = program_path(self.request.weir, program)
            .ok_or_else(|| format!("there is no program {program}"))?;
        let mut command = self.network.command(host, &path);
        command.args(words);
        command.current_dir(&self.folder);
        Ok(command)
    }
}
