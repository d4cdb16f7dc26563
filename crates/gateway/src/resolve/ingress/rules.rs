//! One Ingress → its hosts and paths with what happens to their requests, its certificates, and what is wrong with it.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use model::{Condition, Denial, HostPattern};

use super::annotations::{Annotations, shown};
use super::backends::Backends;
use super::paths::{self, Path, Reading};
use super::redirects;
use super::terms::{self, Terms};
use super::wildcard::{covers, one_label};
use crate::hosts;
use crate::ir::Certificate;
use crate::ir::backend::ServicePort;
use crate::ir::extras::UNUSABLE;
use crate::ir::filter::{PathChange, Redirect};
use crate::ir::request::PathCondition;
use crate::objects::ingress::{HttpIngressPath, Ingress, IngressBackend};
use crate::objects::{Key, Meta};
use crate::resolve::status::{Notice, Problem};
use crate::resolve::world::World;

/// At most this many hosts of an Ingress are served.
pub const HOSTS_MAX: usize = 500;
/// At most this many paths.
const PATHS_MAX: usize = 2000;
/// At most this many regular expressions are compiled.
const EXPRESSIONS_MAX: usize = 100;

/// What an Ingress resolves to.
#[derive(Clone, Debug, PartialEq)]
pub struct Resolved {
    /// The Ingress.
    pub metadata: Meta,
    /// Its class.
    pub class: Arc<str>,
    /// Its hosts, each once.
    pub hosts: Vec<HostRules>,
    /// Where requests go that no rule matches.
    pub default: Option<PathRule>,
    /// Its certificates. `None` as a host: any host.
    pub certificates: Vec<(Option<HostPattern>, Certificate)>,
    /// Hosts whose TLS is not decrypted, with their backends.
    pub passthrough: Vec<(HostPattern, Arc<ServicePort>)>,
    /// What its annotations state.
    pub terms: Terms,
    /// What its user should know.
    pub notices: Vec<Notice>,
    /// The Services that it may refer to, those that do not exist included.
    pub services: BTreeSet<Key>,
}

/// The paths of a host.
#[derive(Clone, Debug, PartialEq)]
pub struct HostRules {
    /// The host. `None`: any.
    pub host: Option<HostPattern>,
    /// A condition that its requests meet besides.
    pub condition: Option<Condition>,
    /// Its paths, without duplicates.
    pub paths: Vec<PathRule>,
    /// Whether requests without TLS are redirected.
    pub to_tls: bool,
    /// Whether it is the other name of a host (with or without `www.`), which another Ingress may have.
    pub is_other_name: bool,
}

/// A path.
#[derive(Clone, Debug, PartialEq)]
pub struct PathRule {
    /// The position of its path in the Ingress.
    pub index: usize,
    /// The requests that it matches.
    pub path: PathCondition,
    /// The length of a regular expression.
    pub length: usize,
    /// What happens to them.
    pub act: Act,
}

impl HostRules {
    /// Creates a host without paths.
    fn new(host: Option<HostPattern>) -> HostRules {
        let condition = host.as_ref().and_then(one_label);
        HostRules { host, condition, paths: Vec::new(), to_tls: false, is_other_name: false }
    }
}

/// What happens to requests.
#[derive(Clone, Debug, PartialEq)]
pub enum Act {
    /// They are forwarded, perhaps with another path.
    Forward(Arc<ServicePort>, Option<PathChange>),
    /// They are redirected.
    Redirect(Redirect),
    /// They are refused.
    Refuse(Denial),
}

/// Resolves an Ingress. `None`: it is not of one of Weir's classes.
pub fn resolve(world: &World<'_>, ingress: &Ingress) -> Option<Resolved> {
    let class = world.ingress_classes.of(ingress)?;
    let metadata = &ingress.metadata;
    let mut backends = Backends::new(world, &metadata.namespace);
    let mut annotations = Annotations::new(metadata);
    let terms = terms::read(&mut annotations, metadata, &world.cluster, &mut backends);
    let mut reader = Reader {
        terms: &terms,
        backends,
        annotations,
        expressions: 0,
        index: 0,
        cookies: has_several_backends(ingress),
    };
    let mut hosts = reader.hosts(ingress);
    let default = ingress.spec.default_backend.as_ref().map(|stated| {
        let Path { condition, length, .. } = Path::all();
        let act = reader.forward(stated, None);
        PathRule { index: reader.index, path: condition, length, act }
    });
    let certificates = reader.certificates(world, ingress, &hosts);
    let mut passthrough = Vec::new();
    if terms.is_passthrough {
        passthrough = reader.passthrough(&hosts);
    }
    for host in &mut hosts {
        let has_tls = is_stated(ingress, host.host.as_ref())
            || passthrough.iter().any(|(one, _)| Some(one) == host.host.as_ref());
        let redirects = &terms.redirects;
        host.to_tls = redirects.to_tls_always || redirects.to_tls && has_tls;
    }
    let Reader { backends, annotations, .. } = reader;
    let problems = annotations.into_problems().into_iter();
    Some(Resolved {
        metadata: Meta { annotations: BTreeMap::new(), ..metadata.clone() },
        class: Arc::clone(class),
        hosts,
        default,
        certificates,
        passthrough,
        notices: problems.map(|problem| Notice::new("Ingress", metadata, problem)).collect(),
        services: backends.services,
        terms,
    })
}

/// Returns whether an Ingress states TLS for a host of its rules.
fn is_stated(ingress: &Ingress, host: Option<&HostPattern>) -> bool {
    ingress.spec.tls.iter().any(|tls| {
        tls.hosts.is_empty()
            || tls
                .hosts
                .iter()
                .filter_map(|text| hosts::host(text).ok())
                .any(|stated| host.is_some_and(|host| covers(&stated, host)))
    })
}

fn has_several_backends(ingress: &Ingress) -> bool {
    let paths = ingress.spec.rules.iter().filter_map(|rule| rule.http.as_ref());
    let backends = paths.flat_map(|http| &http.paths).map(|path| &path.backend);
    let mut all = backends.chain(&ingress.spec.default_backend);
    let first = all.next();
    all.any(|one| Some(one) != first)
}

struct Reader<'w, 't> {
    terms: &'t Terms,
    backends: Backends<'w>,
    annotations: Annotations<'w>,
    expressions: usize,
    /// The position of the next path.
    index: usize,
    /// Whether each Service has an affinity cookie of its own.
    cookies: bool,
}

impl Reader<'_, '_> {
    fn problem(&mut self, reason: &'static str, message: String) {
        self.annotations.add(Problem::new(reason, message));
    }

    fn hosts(&mut self, ingress: &Ingress) -> Vec<HostRules> {
        let mut read: Vec<HostRules> = Vec::new();
        let mut at: HashMap<Option<HostPattern>, usize> = HashMap::new();
        let mut known: HashSet<(usize, String)> = HashSet::new();
        for rule in &ingress.spec.rules {
            let text = rule.host.as_deref().filter(|text| !text.is_empty());
            let host = match text.map(hosts::host).transpose() {
                Ok(host) => host,
                Err(why) => {
                    let host = shown(text.unwrap_or_default());
                    self.problem(
                        "InvalidHost",
                        format!("The host {host} {why}. Its rule is not served."),
                    );
                    continue;
                }
            };
            if read.len() >= HOSTS_MAX && !at.contains_key(&host) {
                self.problem(
                    "TooManyHosts",
                    format!(
                        "The Ingress has more than {HOSTS_MAX} hosts; the others are not served. Move \
                         them to other Ingresses."
                    ),
                );
                break;
            }
            let position = *at.entry(host.clone()).or_insert(read.len());
            if position == read.len() {
                read.push(HostRules::new(host));
                self.root(&mut read[position], (position, &mut known));
            }
            let paths = rule.http.iter().flat_map(|http| &http.paths);
            for path in paths {
                if self.index >= PATHS_MAX {
                    self.problem(
                        "TooManyPaths",
                        format!(
                            "The Ingress has more than {PATHS_MAX} paths; the others are not served. \
                             Move them to other Ingresses."
                        ),
                    );
                    return read;
                }
                self.add(path, &mut read[position], (position, &mut known));
            }
        }
        if ingress.spec.rules.is_empty() && ingress.spec.default_backend.is_some() {
            // Its default backend is for all hosts.
            read.push(HostRules::new(None));
        }
        self.other_names(&mut read);
        read
    }

    /// Adds the redirect of `/` itself.
    fn root(&mut self, host: &mut HostRules, (at, known): (usize, &mut HashSet<(usize, String)>)) {
        let Some(to) = &self.terms.redirects.root else { return };
        let path = PathCondition::Exact("/".to_owned());
        known.insert((at, path_key(&path)));
        let act = Act::Redirect(to.clone());
        host.paths.push(PathRule { index: self.index, path, length: 0, act });
        self.index += 1;
    }

    fn add(
        &mut self,
        stated: &HttpIngressPath,
        host: &mut HostRules,
        (at, known): (usize, &mut HashSet<(usize, String)>),
    ) {
        let index = self.index;
        self.index += 1;
        let text = stated.path.as_deref().unwrap_or_default();
        let kind = stated.path_type.as_deref().unwrap_or("ImplementationSpecific");
        let reading =
            Reading { is_regex: self.terms.is_regex, rewrite: self.terms.rewrite.as_deref() };
        if paths::is_expression(text, kind, reading) {
            self.expressions += 1;
            if self.expressions > EXPRESSIONS_MAX {
                let why = format!(
                    "The Ingress has more than {EXPRESSIONS_MAX} regular expressions. Move the path \
                     {} to another Ingress.",
                    shown(text)
                );
                return self.unserved(("TooManyExpressions", &why), text, host, (at, known));
            }
        }
        let Path { condition, length, change } = match paths::read(text, kind, reading) {
            Ok(path) => path,
            Err(why) => return self.unserved(("InvalidPath", &why), text, host, (at, known)),
        };
        if !known.insert((at, path_key(&condition))) {
            let message = format!(
                "The Ingress has the path {} of a host twice. The first one is served. Remove the other.",
                shown(text)
            );
            return self.problem("DuplicatePath", message);
        }
        let act = match change.transpose() {
            Ok(change) => self.forward(&stated.backend, change),
            Err(why) => {
                let message = format!(
                    "{why} Requests for this path receive the status 503 until it is corrected."
                );
                self.problem("UnsupportedRewrite", message);
                Act::Refuse(UNUSABLE)
            }
        };
        host.paths.push(PathRule { index, path: condition, length, act });
    }

    /// Records that a path is not served. If annotations protect it, its requests must not reach the backend of a wider
    /// path.
    fn unserved(
        &mut self,
        (reason, why): (&'static str, &str),
        text: &str,
        host: &mut HostRules,
        (at, known): (usize, &mut HashSet<(usize, String)>),
    ) {
        let is_protected = self.terms.is_protected();
        let path = paths::plain_prefix(text).filter(|_| is_protected);
        let Some(path) = path.filter(|path| known.insert((at, path_key(path)))) else {
            return self.problem(reason, format!("{why} The path is not served."));
        };
        self.problem(
            reason,
            format!("{why} All requests below its beginning receive the status 503."),
        );
        let act = Act::Refuse(UNUSABLE);
        host.paths.push(PathRule { index: self.index - 1, path, length: 0, act });
    }

    fn forward(&mut self, stated: &IngressBackend, change: Option<PathChange>) -> Act {
        if let Some(to) = &self.terms.redirects.all {
            return Act::Redirect(to.clone());
        }
        match self.backends.of(stated) {
            Ok(port) => {
                let suffix = format!("{}-{}", port.service.name, port.port);
                let suffix = self.cookies.then_some(suffix.as_str());
                Act::Forward(Arc::new(self.terms.upstream.port(&port, suffix)), change)
            }
            Err(why) => {
                self.problem(
                    "InvalidBackend",
                    format!("{why} Its requests receive the status 503."),
                );
                Act::Refuse(UNUSABLE)
            }
        }
    }

    /// Adds the further names of hosts.
    fn other_names(&mut self, read: &mut Vec<HostRules>) {
        let own: HashSet<Option<HostPattern>> = read.iter().map(|one| one.host.clone()).collect();
        if let Some(first) = read.first().cloned().filter(|_| !self.terms.aliases.is_empty()) {
            let new =
                self.terms.aliases.iter().filter(|alias| !own.contains(&Some((*alias).clone())));
            let room = PATHS_MAX / first.paths.len().max(1);
            let mut new: Vec<HostRules> = new
                .map(|alias| {
                    let paths = first.paths.clone();
                    HostRules { paths, ..HostRules::new(Some(alias.clone())) }
                })
                .collect();
            if new.len() > room {
                new.truncate(room);
                self.annotations.remark("server-alias", "has too many names for so many paths");
            }
            read.extend(new);
            if own.len() > 1 {
                self.annotations.remark(
                    "server-alias",
                    "is for the first host of the Ingress only. Use an Ingress for each host",
                );
            }
        }
        if !self.terms.redirects.www {
            return;
        }
        let mut new = Vec::new();
        for host in read.iter() {
            let Some(HostPattern::Exact(name)) = &host.host else { continue };
            let other = redirects::other_name(name);
            let Ok(pattern) = hosts::host(&other) else { continue };
            if own.contains(&Some(pattern.clone())) {
                continue;
            }
            let to = Redirect { hostname: Some(name.clone()), ..redirects::redirect(308) };
            let path = PathCondition::Prefix("/".to_owned());
            let rule = PathRule { index: self.index, path, length: 0, act: Act::Redirect(to) };
            self.index += 1;
            let paths = vec![rule];
            new.push(HostRules { paths, is_other_name: true, ..HostRules::new(Some(pattern)) });
        }
        read.extend(new);
    }

    /// Returns the certificate of each host with TLS.
    fn certificates(
        &mut self,
        world: &World<'_>,
        ingress: &Ingress,
        rules: &[HostRules],
    ) -> Vec<(Option<HostPattern>, Certificate)> {
        let mut read: Vec<(Option<HostPattern>, Certificate)> = Vec::new();
        let mut known = HashSet::new();
        if self.terms.is_passthrough {
            return read;
        }
        if ingress.spec.tls.len() > HOSTS_MAX {
            let message = format!(
                "tls has more than {HOSTS_MAX} entries; the others have no effect. Move some to another \
                 Ingress."
            );
            self.problem("InvalidCertificate", message);
        }
        for tls in ingress.spec.tls.iter().take(HOSTS_MAX) {
            let certificate = match secret(world, &ingress.metadata, tls.secret_name.as_ref()) {
                Ok(certificate) => certificate,
                Err(why) => {
                    let hosts: Vec<String> =
                        tls.hosts.iter().take(5).map(|host| shown(host)).collect();
                    let which = if hosts.is_empty() {
                        "the hosts of the Ingress".to_owned()
                    } else {
                        hosts.join(", ")
                    };
                    let message = format!(
                        "{why} There is no default certificate: port 443 does not serve {which}."
                    );
                    self.problem("InvalidCertificate", message);
                    continue;
                }
            };
            let mut stated: Vec<Option<HostPattern>> = Vec::new();
            if tls.hosts.is_empty() {
                let own = rules.iter().filter(|one| !one.is_other_name);
                stated.extend(own.map(|one| one.host.clone()));
                if stated.is_empty() {
                    stated.push(None);
                }
            }
            for text in &tls.hosts {
                match hosts::host(text) {
                    Ok(host) => stated.push(Some(host)),
                    Err(why) => {
                        let message = format!("The host {} in tls {why}.", shown(text));
                        self.problem("InvalidHost", message);
                    }
                }
            }
            for host in stated {
                if read.len() < HOSTS_MAX && known.insert(host.clone()) {
                    read.push((host, certificate.clone()));
                }
            }
        }
        read
    }

    /// Returns the hosts whose TLS is not decrypted: each with the backend of its path `/`, or of its first path.
    fn passthrough(&mut self, rules: &[HostRules]) -> Vec<(HostPattern, Arc<ServicePort>)> {
        let mut found = Vec::new();
        for rule in rules.iter().filter(|one| !one.is_other_name) {
            let Some(host @ HostPattern::Exact(_)) = &rule.host else {
                let why = "is supported for exact hosts only";
                self.annotations.unsupported("ssl-passthrough", why);
                continue;
            };
            let is_root = |one: &&PathRule| one.path == PathCondition::Prefix("/".to_owned());
            let path = rule.paths.iter().find(is_root).or_else(|| rule.paths.first());
            if let Some(PathRule { act: Act::Forward(port, _), .. }) = path {
                let plain = ServicePort { settings: None, ..(**port).clone() };
                found.push((host.clone(), Arc::new(plain)));
            }
        }
        found
    }
}

/// Returns the text by which paths are equal.
pub fn path_key(path: &PathCondition) -> String {
    match path {
        PathCondition::Exact(path) => format!("={path}"),
        PathCondition::Prefix(path) => format!("^{path}"),
        PathCondition::Regex(pattern) => format!("~{}", pattern.as_str()),
    }
}

fn secret(
    world: &World<'_>,
    metadata: &Meta,
    name: Option<&Arc<str>>,
) -> Result<Certificate, String> {
    let Some(name) = name.filter(|name| !name.is_empty()) else {
        return Err("An entry of tls has no secretName.".to_owned());
    };
    let key = Key::new(Arc::clone(&metadata.namespace), Arc::clone(name));
    match world.cluster.certificate(&key) {
        Some(Ok(certificate)) => Ok(certificate.clone()),
        Some(Err(why)) => Err(format!("Secret {key} {why}.")),
        None => Err(format!("Secret {key} does not exist.")),
    }
}
