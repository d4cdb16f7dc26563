//! What the templates of a variant can use: hosts, files, programs and variables.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use minijinja::value::{Object, ObjectRepr};
use minijinja::{Error, ErrorKind, Value};
use toml::Spanned;

use crate::incident::{Incident, Variant};
use crate::network::Network;
use crate::run::{Request, program_path};
use crate::template::{Source, render};

/// How deep files may name files.
const FILES_DEPTH_MAX: u32 = 4;

/// Names and their values for one variant.
#[derive(Debug)]
pub(super) struct Scope {
    source: Source,
    /// Hosts and groups of hosts.
    hosts: BTreeMap<String, Value>,
    /// Variables, which may be templates.
    set: BTreeMap<String, String>,
    files: BTreeMap<String, Spanned<String>>,
    folder: PathBuf,
    seed: u64,
    weir: PathBuf,
}

/// A host: its first address as text, its other addresses by number from 1, `name`, `number`.
#[derive(Debug)]
struct Host {
    name: String,
    addresses: Vec<String>,
}

impl Object for Host {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        if let Some(number) = key.as_usize() {
            return self.addresses.get(number.checked_sub(1)?).map(Value::from);
        }
        match key.as_str()? {
            "name" => Some(Value::from(&self.name)),
            "number" => Some(Value::from(number(&self.name))),
            _ => None,
        }
    }

    fn render(self: &Arc<Self>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.addresses.first().map_or(Err(fmt::Error), |address| f.write_str(address))
    }
}

/// A host's number in its group; 1 for a host that is in none.
fn number(host: &str) -> u64 {
    let digits = host.bytes().rev().take_while(u8::is_ascii_digit).count();
    host[host.len() - digits..].parse().unwrap_or(1)
}

impl Scope {
    pub(super) fn of(
        request: &Request<'_>,
        variant: &Variant,
        network: &Network,
        folder: &Path,
    ) -> Scope {
        let incident = request.incident;
        Scope {
            source: incident.source.clone(),
            hosts: hosts(incident, network),
            set: incident.variables(variant, request.is_short),
            files: incident.files.clone(),
            folder: folder.to_path_buf(),
            seed: request.seed,
            weir: request.weir.to_path_buf(),
        }
    }

    /// The names on a host; `out` is the file for a command's JSON.
    pub(super) fn names(self: &Arc<Self>, host: Option<&str>, out: Option<&Path>) -> Value {
        self.names_at(host, out, 0)
    }

    fn names_at(self: &Arc<Self>, host: Option<&str>, out: Option<&Path>, depth: u32) -> Value {
        let mut names = self.hosts.clone();
        let mut add = |name: &str, value: Value| names.insert(name.to_owned(), value);
        let text = |path: &Path| Value::from(path.display().to_string());
        add("folder", text(&self.folder));
        add("weir", text(&self.weir));
        add("seed", Value::from(self.seed));
        if let Some(out) = out {
            add("out", text(out));
        }
        let weir = self.weir.clone();
        let program = move |name: String| {
            let path = program_path(&weir, &name);
            path.map(|path| path.display().to_string())
                .ok_or_else(|| error(format!("there is no program {name}")))
        };
        add("program", Value::from_function(program));
        if let Some(host) = host {
            add("host", self.hosts.get(host).cloned().unwrap_or_default());
            let (scope, host) = (self.clone(), host.to_owned());
            let file = move |name: String| {
                let path = scope.write_file(&name, &host, depth).map_err(error)?;
                Ok(path.display().to_string())
            };
            add("file", Value::from_function::<_, Result<String, Error>, (String,)>(file));
        }
        let fixed = Value::from(names.clone());
        for (name, value) in &self.set {
            // An error counts only where the variable is used.
            let value = render(value, fixed.clone())
                .map_or_else(|why| Value::from(error(format!("`{name}`: {why}"))), Value::from);
            names.insert(name.clone(), value);
        }
        Value::from(names)
    }

    /// Writes a file of the incident for a host, and returns its path.
    fn write_file(self: &Arc<Self>, name: &str, host: &str, depth: u32) -> Result<PathBuf, String> {
        let text = self.files.get(name).ok_or_else(|| format!("no file `{name}` in [files]"))?;
        if depth >= FILES_DEPTH_MAX {
            return Err(format!(
                "file `{name}`: files name files more than {FILES_DEPTH_MAX} deep"
            ));
        }
        let filled = self.source.render(text, self.names_at(Some(host), None, depth + 1))?;
        let path = self.folder.join(format!("{host}-{name}"));
        // Another program may still be reading this file, so a rename replaces it instead of truncating it.
        let new = self.folder.join(format!("{host}-{name}.new"));
        std::fs::write(&new, filled)
            .and_then(|()| std::fs::rename(&new, &path))
            .map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(path)
    }

    /// Renders a template of the incident's file.
    ///
    /// # Errors
    /// Why it cannot be rendered, with its line.
    pub(super) fn fill(
        self: &Arc<Self>,
        template: &Spanned<String>,
        host: Option<&str>,
        out: Option<&Path>,
    ) -> Result<String, String> {
        self.source.render(template, self.names(host, out))
    }
}

fn error(what: String) -> Error {
    Error::new(ErrorKind::InvalidOperation, what)
}

/// Every host by its name, and every group as the list of its hosts.
fn hosts(incident: &Incident, network: &Network) -> BTreeMap<String, Value> {
    let mut names = BTreeMap::new();
    for group in incident.hosts.keys() {
        let members: Vec<Value> = incident
            .members(group)
            .into_iter()
            .map(|name| {
                let count = incident.host(&name).map_or(1, |host| host.addresses);
                let addresses = (1..=count).filter_map(|number| network.address(&name, number));
                let addresses = addresses.map(|address| address.to_string()).collect();
                let host = Value::from_object(Host { name: name.clone(), addresses });
                names.insert(name, host.clone());
                host
            })
            .collect();
        // A host alone has its own name already.
        names.entry(group.clone()).or_insert_with(|| Value::from(members));
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope() -> Arc<Scope> {
        let host = |name: &str, addresses: &[&str]| {
            let addresses = addresses.iter().map(|address| (*address).to_owned()).collect();
            Value::from_object(Host { name: name.to_owned(), addresses })
        };
        let nodes = [host("node1", &["10.78.2.1"]), host("node2", &["10.78.3.1"])];
        let server = host("server", &["10.78.1.1", "10.78.1.2"]);
        let text = "title = 't'\n[files]\nloop = '''\na\n{{ file('loop') }}\n'''\n";
        let file = "'''\na\n{{ file('loop') }}\n'''";
        let at = text.find(file).unwrap();
        let file_text = Spanned::new(at..at + file.len(), "a\n{{ file('loop') }}\n".to_owned());
        let set = [("rate", "4{{ host.number }}"), ("bad", "{{ nothing }}"), ("workers", "2")];
        Arc::new(Scope {
            source: Source::new("test.toml", text),
            hosts: BTreeMap::from([
                ("server".to_owned(), server),
                ("node1".to_owned(), nodes[0].clone()),
                ("node2".to_owned(), nodes[1].clone()),
                ("node".to_owned(), Value::from(nodes.to_vec())),
            ]),
            set: set.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
            files: BTreeMap::from([("loop".to_owned(), file_text)]),
            folder: std::env::temp_dir(),
            seed: 7,
            weir: PathBuf::from("/bin/weir"),
        })
    }

    fn fill(text: &str) -> Result<String, String> {
        scope().fill(&Spanned::new(0..0, text.to_owned()), Some("node2"), None)
    }

    #[test]
    fn hosts_and_variables_are_filled_in() {
        let table = [
            ("at {{ server }}:80, {{ server[2] }}", "at 10.78.1.1:80, 10.78.1.2"),
            ("{{ host }} {{ host.name }} {{ host.number }}", "10.78.3.1 node2 2"),
            ("{{ server.number }} {{ rate }} {{ seed }}", "1 42 7"),
            ("events { x {} {\"a\"} ${ }", "events { x {} {\"a\"} ${ }"),
            ("{{ program('weir') }}", "/bin/weir"),
            (
                "{% for one in node %}\n  {% for w in range(1, workers | int + 1) %}\ns {{ one.name }}-{{ w }} {{ one }}\n  {% endfor %}\n{% endfor %}\nend\n",
                "s node1-1 10.78.2.1\ns node1-2 10.78.2.1\ns node2-1 10.78.3.1\ns node2-2 10.78.3.1\nend\n",
            ),
        ];
        for (text, filled) in table {
            assert_eq!(fill(text).as_deref(), Ok(filled), "{text}");
        }
    }

    #[test]
    fn mistakes_name_the_file_and_the_line() {
        let table = [
            ("a\n{{ sevrer }}", "test.toml, line 2: undefined value"),
            ("{{ server[3] }}", "test.toml, line 1: undefined value"),
            ("{{ server[0] }}", "test.toml, line 1: undefined value"),
            ("\n\n{{ bad }}", "test.toml, line 3: `bad`: "),
            ("{% for i in node %}", "test.toml, line 1: "),
            ("{{ program('no-such') }}", "there is no program no-such"),
            ("{{ file('none') }}", "no file `none`"),
            (
                "{% for i in range(99999) %}{% for i in range(99999) %}{% endfor %}{% endfor %}",
                "fuel",
            ),
            // Line 5 of the file: the second line of the text after the opening quotes.
            ("{{ file('loop') }}", "test.toml, line 5: "),
        ];
        for (text, expected) in table {
            let error = fill(text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
