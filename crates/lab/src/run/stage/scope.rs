//! What words in braces stand for on a host of a variant at work.

use std::path::Path;

use super::Stage;
use crate::incident::Incident;
use crate::run::program_path;
use crate::run::words::Lookup;

/// What words stand for on a host.
pub(super) struct Scope<'a> {
    pub(super) stage: &'a Stage<'a>,
    pub(super) host: &'a str,
    pub(super) out: Option<&'a Path>,
}

impl Lookup for Scope<'_> {
    fn word(&self, name: &str) -> Option<String> {
        let stage = self.stage;
        if let Some(file) = name.strip_prefix("file:") {
            return stage.file(file, self.host).map(|path| path.display().to_string());
        }
        if let Some(program) = name.strip_prefix("program:") {
            let path = program_path(stage.request, program);
            return path.map(|path| path.display().to_string());
        }
        match name {
            "self" => return stage.network.address(self.host, 1).map(|ip| ip.to_string()),
            "host" => return Some(self.host.to_owned()),
            "number" => return Some(number(self.host)),
            "folder" => return Some(stage.folder.display().to_string()),
            "out" => return self.out.map(|path| path.display().to_string()),
            "seed" => return Some(stage.request.seed.to_string()),
            "weir" => return Some(stage.request.weir.display().to_string()),
            _ => {}
        }
        if let Some(value) = stage.words.get(name) {
            return Some(value.clone());
        }
        let (host, number) = name.split_once('.').unwrap_or((name, "1"));
        let host = if host == "self" { self.host } else { host };
        let count = incident_host(stage.request.incident, host)?;
        let number = number.parse().ok().filter(|number| (1..=count).contains(number))?;
        stage.network.address(host, number).map(|ip| ip.to_string())
    }

    fn members(&self, name: &str) -> Vec<String> {
        self.stage.request.incident.members(name)
    }
}

/// How many addresses a host has.
fn incident_host(incident: &Incident, host: &str) -> Option<u8> {
    incident.host(host).map(|host| host.addresses)
}

/// A host's number in its group; 1 for one alone.
fn number(host: &str) -> String {
    let digits = host.bytes().rev().take_while(u8::is_ascii_digit).count();
    if digits == 0 { "1".to_owned() } else { host[host.len() - digits..].to_owned() }
}
