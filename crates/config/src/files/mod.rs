//! The files that a configuration names: requests their contents, checks them and makes them part
//! of the configuration. Errors are reported at the key that names the file.

mod acme;
mod certificate_directory;
mod client_lists;
mod credentials;
mod fleet;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use model::{
    Acme, AffinityKey, AffinityKeyFile, Authentication, AutoscalerListener, Certificate,
    ClientCertificateMode, ClientCertificates, Discover, HttpPeer, HttpUrl, ListenerTls, Material,
    ServerSource, ServiceTls, TlsVersion, UnknownNames,
};
use tls::{Facts, KeyKind, Mistake, Part, Validity};

use crate::diagnostic::{At, Diagnostic, Problems, Severity, Span, quote, shown_path};
use crate::include::Pattern;
use crate::names::Names;
use crate::raw::{
    Document, RawAction, RawAutoscaler, RawCertificate, RawDiscover, RawErrorPage, RawListenerTls,
    RawRegistry, RawRespond, RawRoute, RawScalingWebhook, RawServicePort, RawServiceTls, RawSource,
    RawUnknownNames,
};
use crate::sources::Sources;
use crate::{Found, Surroundings, Unreadable};

pub(crate) use client_lists::add_client_lists;
pub(crate) use fleet::FleetFiles;

/// Where systems keep their trusted authorities: Debian, Alpine and Arch; Fedora and its
/// derivatives; `SUSE`; Alpine again. The first readable one is used.
pub const SYSTEM_AUTHORITIES: &[&str] = &[
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// What the files provide: TLS settings, affinity keys, lists of networks, responses and error pages.
/// `None` also after a mistake, which is reported.
pub(crate) struct Contents {
    /// In order of the listeners.
    pub(crate) listeners: Vec<Option<ListenerTls>>,
    /// In order of the services.
    pub(crate) services: Vec<Option<Arc<ServiceTls>>>,
    /// In order of the services.
    pub(crate) affinity_keys: Vec<Option<AffinityKeyFile>>,
    /// The key of every affinity without a `key_file`.
    pub(crate) affinity_key: Option<AffinityKeyFile>,
    /// In order of the services.
    pub(crate) discover: Vec<Option<Arc<Discover>>>,
    /// What is called to start and stop servers, in order of the services.
    pub(crate) scaling_webhooks: Vec<Option<HttpPeer>>,
    pub(crate) fleet: FleetFiles,
    pub(crate) registries: RegistryPeers,
    /// The collector of telemetry.
    pub(crate) collector: Option<HttpPeer>,
    /// How certificates are obtained; which ones is not filled in.
    pub(crate) acme: Option<Acme>,
    /// Of the metrics listener.
    pub(crate) metrics: Option<ListenerTls>,
    /// The listeners for autoscalers: KEDA's, and that of external metrics.
    pub(crate) keda: Option<AutoscalerListener>,
    pub(crate) external_metrics: Option<AutoscalerListener>,
    /// In order of the document's; `None`: a mistake is reported.
    pub(crate) authentications: Vec<Option<Authentication>>,
    /// In order of the routes.
    pub(crate) routes: Vec<RouteFiles>,
    /// In order of the listeners.
    pub(crate) listener_pages: Vec<PageFiles>,
    /// In order of the services.
    pub(crate) service_pages: Vec<PageFiles>,
}

/// The registries that services use, with what their files provide.
pub(crate) struct RegistryPeers {
    pub(crate) consul: Option<HttpPeer>,
    pub(crate) nomad: Option<HttpPeer>,
    pub(crate) etcd: Option<Vec<HttpPeer>>,
}

/// The contents of error pages, in their order; `None` also for a page without a file.
pub(crate) type PageFiles = Vec<Option<Material>>;

/// What the files of a route provide, besides its lists of networks.
pub(crate) struct RouteFiles {
    /// The content of its response.
    pub(crate) content: Option<Material>,
    /// The key of its affinity.
    pub(crate) affinity_key: Option<AffinityKeyFile>,
    pub(crate) pages: PageFiles,
}

/// Reads every file that the document names.
pub(crate) fn read(
    document: &Document,
    names: &Names,
    sources: &Sources,
    surroundings: &dyn Surroundings,
    problems: &Problems,
) -> Contents {
    let user = document.run_as.as_ref().map(|(user, _)| user.as_str());
    let reader = Reader { sources, surroundings, problems, user };
    let listeners = document.listeners.iter();
    let services = document.services.iter();
    let keys = services.clone().map(|service| service.affinity_key.as_ref());
    let metrics = document.metrics.listener.as_ref().and_then(|listener| listener.tls.as_ref());
    let registries = &document.registries;
    Contents {
        acme: document.acme.as_ref().and_then(|raw| reader.acme(raw, document)),
        metrics: metrics.and_then(|raw| reader.listener(raw)),
        keda: reader.autoscaler(document.keda.as_ref()),
        external_metrics: reader.autoscaler(document.external_metrics.as_ref()),
        collector: document.otlp.as_ref().and_then(|raw| {
            let ca = raw.ca.as_ref().map(|ca| ("ca", ca));
            reader.peer(&raw.endpoint, ca, &raw.endpoint.span)
        }),
        registries: RegistryPeers {
            consul: reader
                .registry(document, registries.consul.as_ref())
                .and_then(|mut all| all.pop()),
            nomad: reader
                .registry(document, registries.nomad.as_ref())
                .and_then(|mut all| all.pop()),
            etcd: reader.registry(document, registries.etcd.as_ref()),
        },
        discover: services
            .clone()
            .map(|service| reader.discover(service.discover.as_ref()?).map(Arc::new))
            .collect(),
        scaling_webhooks: services
            .clone()
            .map(|service| {
                let RawScalingWebhook { url, ca, .. } = service.scaling_webhook.as_ref()?;
                reader.peer(url, ca.as_ref().map(|ca| ("ca", ca)), &url.span)
            })
            .collect(),
        fleet: reader.fleet(document.fleet.as_ref()),
        authentications: document
            .authentications
            .iter()
            .map(|raw| reader.authentication(raw, names))
            .collect(),
        routes: document.routes.iter().map(|route| reader.route(route)).collect(),
        listener_pages: listeners.clone().map(|raw| reader.pages(&raw.error_pages)).collect(),
        service_pages: services.clone().map(|raw| reader.pages(&raw.error_pages)).collect(),
        affinity_keys: keys.map(|at| reader.affinity_key(at?)).collect(),
        affinity_key: document.affinity_key_file.as_ref().and_then(|at| reader.affinity_key(at)),
        listeners: listeners
            .map(|listener| listener.tls.as_ref().and_then(|raw| reader.listener(raw)))
            .collect(),
        services: services
            .map(|service| service.tls.as_ref().and_then(|raw| reader.service(raw)).map(Arc::new))
            .collect(),
    }
}

struct Reader<'a> {
    sources: &'a Sources,
    surroundings: &'a dyn Surroundings,
    problems: &'a Problems,
    /// The user that Weir switches to after startup.
    user: Option<&'a str>,
}

/// A usable certificate, and where its chain is named.
struct Usable {
    certificate: Certificate,
    /// For which names, and of which kind; an authority issues for the kind of key that it is given.
    names: Vec<String>,
    kind: KeyKind,
    at: At<PathBuf>,
    from: From,
}

/// How the configuration names a certificate.
#[derive(Clone, Copy, PartialEq, Eq)]
enum From {
    /// By its file, or by its names (ACME).
    List,
    /// By the directory that it is in.
    Directory,
}

impl From {
    /// Returns a label for the place where `at` is named. A directory is not enough.
    fn label(self, at: &At<PathBuf>, label: &str) -> String {
        match self {
            From::List => label.to_owned(),
            From::Directory => format!("{}: {label}", shown_path(&at.value)),
        }
    }
}

impl Reader<'_> {
    fn route(&self, raw: &RawRoute) -> RouteFiles {
        let content = match &raw.action {
            RawAction::Respond(RawRespond::Fixed { content, .. }) => {
                content.file().and_then(|at| self.file(at))
            }
            _ => None,
        };
        let affinity_key = match &raw.action {
            RawAction::Forward(forward) => {
                let key_file = forward.affinity.as_ref().and_then(|raw| raw.key_file.as_ref());
                key_file.and_then(|at| self.affinity_key(at))
            }
            _ => None,
        };
        RouteFiles { content, affinity_key, pages: self.pages(&raw.error_pages) }
    }

    fn pages(&self, raw: &[RawErrorPage]) -> PageFiles {
        raw.iter().map(|page| page.content.file().and_then(|at| self.file(at))).collect()
    }

    fn autoscaler(&self, raw: Option<&RawAutoscaler>) -> Option<AutoscalerListener> {
        let RawAutoscaler { address, tls } = raw?;
        let tls = tls.as_ref().and_then(|tls| self.listener(tls));
        Some(AutoscalerListener { address: address.value, tls })
    }

    fn listener(&self, raw: &RawListenerTls) -> Option<ListenerTls> {
        // All are checked, even if the first has errors.
        let mut usable: Vec<_> =
            raw.certificates.iter().map(|certificate| self.certificate(certificate)).collect();
        match raw.directory.as_ref().map(|at| self.certificate_directory(at)) {
            Some(Some(found)) => usable.extend(found.into_iter().map(Some)),
            Some(None) => usable.push(None),
            None => {}
        }
        let clients = raw.clients.as_ref().map(|clients| {
            Some(ClientCertificates {
                ca: self.authorities(clients.ca.as_ref()?)?,
                mode: if clients.required {
                    ClientCertificateMode::Required
                } else {
                    ClientCertificateMode::Optional
                },
            })
        });
        self.twice(usable.iter().flatten());
        if raw.certificates.is_empty() && raw.directory.is_none() {
            let diagnostic = Diagnostic::error(
                "TLS needs a certificate",
                raw.span.clone(),
                "none is shown to clients",
            );
            self.problems.report_absence(
                diagnostic.help(
                    "write certificates = [{ chain = \"…\", key = \"…\" }] or certificate_directory = \"…\"",
                ),
            );
            return None;
        }
        let usable: Vec<_> = usable.into_iter().collect::<Option<_>>()?;
        let unknown_names = self.unknown_names(raw, &usable)?;
        Some(ListenerTls {
            certificates: usable.into_iter().map(|usable| usable.certificate).collect(),
            unknown_names,
            version_min: raw.version_min,
            ciphers: self.ciphers(raw)?,
            client_certificates: clients.map_or(Some(None), |clients| clients.map(Some))?,
            hsts: raw.hsts.as_ref().map(|at| at.value),
        })
    }

    /// Returns which certificate clients get that name none.
    fn unknown_names(&self, raw: &RawListenerTls, usable: &[Usable]) -> Option<UnknownNames> {
        let named = match &raw.unknown_names {
            None if raw.unknown_names_unreadable => return None,
            None if raw.certificates.is_empty() => {
                let diagnostic = Diagnostic::error(
                    "`certificate_directory` without `unknown_names`",
                    raw.directory.as_ref().map_or(&raw.span, |at| &at.span).clone(),
                    "a directory has no first certificate for other names",
                );
                self.problems.report_absence(diagnostic.help(
                    "write unknown_names = \"www.example.com\" for the certificate of that name, or \"refuse\"",
                ));
                return None;
            }
            None => return Some(UnknownNames::First),
            Some(At { value: RawUnknownNames::Refuse, .. }) => return Some(UnknownNames::Refuse),
            Some(At { value: RawUnknownNames::Named(name), span }) => {
                At { value: name, span: span.clone() }
            }
        };
        let parent = named.value.split_once('.').map(|(_, parent)| format!("*.{parent}"));
        let is_for = |one: &&Usable| {
            one.names.iter().any(|name| name == named.value || Some(name) == parent.as_ref())
        };
        if usable.iter().find(is_for).is_none() {
            let title = format!("no certificate for {}", quote(named.value));
            let diagnostic =
                Diagnostic::error(title, named.span, "none of this listener's has this name");
            self.problems.report(diagnostic.on_machine());
            return None;
        }
        Some(UnknownNames::As(named.value.clone()))
    }

    /// Returns the cipher suites, if one of them can be used with the enabled versions.
    fn ciphers(&self, raw: &RawListenerTls) -> Option<Vec<&'static str>> {
        let names: Vec<_> = raw.ciphers.iter().map(|at| at.value).collect();
        // Those of TLS 1.2 name the key exchange, which TLS 1.3 negotiates separately.
        let is_of_13 = |name: &&str| !name.contains("_WITH_");
        if raw.version_min == TlsVersion::Tls13
            && let Some(first) = raw.ciphers.first()
            && !names.iter().any(is_of_13)
        {
            let title = "no cipher suite of TLS 1.3";
            let what = "none of these can be used with `version_min = \"1.3\"`";
            let help = "add \"TLS_AES_256_GCM_SHA384\", or lower `version_min`";
            self.problems.report(Diagnostic::error(title, first.span.clone(), what).help(help));
            return None;
        }
        Some(names)
    }

    fn service(&self, raw: &RawServiceTls) -> Option<ServiceTls> {
        let certificate = raw.certificate.as_ref().map(|certificate| self.certificate(certificate));
        let ca = match &raw.ca {
            Some(at) => {
                let ca = self.authorities(at);
                if !raw.verify {
                    self.problems.report(
                        Diagnostic::warning("nothing is verified", at.span.clone(), "not used")
                            .help("leave `verify = false` out, or this"),
                    );
                }
                ca
            }
            None if raw.ca_unreadable => None,
            None if raw.verify => self.system_authorities(&raw.span),
            None => Some(Material { path: PathBuf::new(), bytes: Arc::default() }),
        };
        Some(ServiceTls {
            name: raw.name.clone(),
            names: raw.names.clone(),
            verify: raw.verify,
            ca: ca?,
            certificate: match certificate {
                Some(certificate) => Some(certificate?.certificate),
                None => None,
            },
        })
    }

    fn discover(&self, raw: &RawDiscover) -> Option<Discover> {
        let source = match raw.source.as_ref()? {
            RawSource::Consul { service, tag } => {
                ServerSource::Consul { service: Arc::clone(service), tag: tag.clone() }
            }
            RawSource::Nomad { service, tag } => {
                ServerSource::Nomad { service: Arc::clone(service), tag: tag.clone() }
            }
            RawSource::Etcd { prefix } => ServerSource::Etcd { prefix: Arc::clone(prefix) },
            RawSource::Kubernetes(RawServicePort { namespace, service, port }) => {
                ServerSource::Kubernetes {
                    namespace: Arc::clone(namespace),
                    service: Arc::clone(service),
                    port: port.clone(),
                }
            }
            RawSource::DnsSrv(name) => ServerSource::DnsSrv { name: name.clone() },
            RawSource::Files(at) => {
                ServerSource::Files { folder: self.folder(at), names: at.value.name().into() }
            }
            RawSource::FileSd(at) => {
                ServerSource::FileSd { folder: self.folder(at), names: at.value.name().into() }
            }
            RawSource::HttpSd { url, ca, interval } => {
                let ca = ca.as_ref().map(|ca| ("ca", ca));
                let peer = self.peer(url, ca, &raw.span)?;
                ServerSource::HttpSd { peer, interval: *interval }
            }
        };
        let RawDiscover { port, limits, hold, saved, kept_max, .. } = raw;
        let (port, limits, hold, saved, kept_max) = (*port, *limits, *hold, *saved, *kept_max);
        Some(Discover { source, port, limits, hold, saved, kept_max })
    }

    /// Returns the folder of a pattern, an absolute path.
    fn folder(&self, at: &At<Pattern>) -> PathBuf {
        let folder = At { value: at.value.folder().to_path_buf(), span: at.span.clone() };
        self.surroundings.absolute(&self.path(&folder))
    }

    /// Returns the peers of a registry; `None` also if no service uses it.
    fn registry<T>(
        &self,
        document: &Document,
        raw: Option<&RawRegistry<T>>,
    ) -> Option<Vec<HttpPeer>> {
        let raw = raw.filter(|raw| document.uses(raw.kind))?;
        let ca = raw.ca.as_ref().map(|ca| ("ca", ca));
        let certificate = match &raw.certificate {
            Some(certificate) => Some(Box::new(self.certificate(certificate)?.certificate)),
            None => None,
        };
        let peers = raw.urls.iter().map(|url| {
            let peer = self.peer(url, ca, &url.span)?;
            if let (Some(at), false) = (&raw.certificate, url.value.is_https()) {
                let span = at.chain.as_ref().map_or_else(|| url.span.clone(), |at| at.span.clone());
                let title = "`certificate` for a URL without TLS";
                let error = Diagnostic::error(title, span, "it is never presented");
                self.problems.report(error.other(url.span.clone(), "this is not https"));
                return None;
            }
            Some(HttpPeer { certificate: certificate.clone(), ..peer })
        });
        peers.collect()
    }

    /// Returns the server of a URL, with the authorities that a key names, or the system's. `span` is where a
    /// missing key would be.
    fn peer(
        &self,
        url: &At<HttpUrl>,
        ca: Option<(&str, &At<PathBuf>)>,
        span: &Span,
    ) -> Option<HttpPeer> {
        let is_https = url.value.is_https();
        let ca = match ca {
            Some((key, at)) if !is_https => {
                let title = format!("`{key}` for a URL without TLS");
                let error = Diagnostic::error(title, at.span.clone(), "no certificate is verified");
                self.problems.report(error.other(url.span.clone(), "this is not https"));
                return None;
            }
            Some((_, at)) => Some(self.authorities(at)?),
            None if is_https => Some(self.system_authorities(span)?),
            None => None,
        };
        Some(HttpPeer { url: url.value.clone(), ca, certificate: None })
    }

    /// Returns a certificate with its key, if it is valid today.
    fn certificate(&self, raw: &RawCertificate) -> Option<Usable> {
        if let Some(At { value: names, span }) = &raw.acme {
            return (!names.is_empty()).then(|| Usable {
                certificate: acme::certificate(names),
                names: names.clone(),
                kind: KeyKind::Ecdsa,
                at: At { value: PathBuf::new(), span: span.clone() },
                from: From::List,
            });
        }
        let chain = raw.chain.as_ref().and_then(|at| self.file(at));
        let key = raw.key.as_ref().and_then(|at| self.file(at));
        let ocsp = raw.ocsp.as_ref().map(|at| self.file(at));
        let certificate = Certificate {
            chain: chain?,
            key: key?,
            ocsp: match ocsp {
                Some(ocsp) => Some(ocsp?),
                None => None,
            },
            acme: None,
        };
        let at = raw.chain.as_ref()?;
        match tls::certificate(&certificate) {
            Ok(facts) => self.usable(certificate, facts, (at.clone(), From::List)),
            Err(mut mistake) => {
                if mistake.about == Part::Key && raw.key == raw.chain {
                    mistake.help = Some("name the file of its key: key = \"…\"".to_owned());
                }
                let place = match mistake.about {
                    Part::Key => raw.key.as_ref(),
                    Part::Ocsp => raw.ocsp.as_ref(),
                    Part::Chain | Part::Ca => None,
                };
                self.report_mistake(mistake, place.unwrap_or(at));
                None
            }
        }
    }

    /// Returns a certificate, and reports if it is not valid today. Then it is an error if the certificate is
    /// listed; in a directory it may be left over, and must not keep the others from being used.
    fn usable(
        &self,
        certificate: Certificate,
        facts: Facts,
        (at, from): (At<PathBuf>, From),
    ) -> Option<Usable> {
        if let Some(stranger) = &facts.followed_by_stranger {
            self.problems.report(
                Diagnostic::warning(
                    "a chain with a gap",
                    at.span.clone(),
                    from.label(
                        &at,
                        &format!("issued by {}, but followed by {stranger}", facts.issuer),
                    ),
                )
                .help(
                    "many clients will not trust it; each certificate is followed by its issuer's",
                )
                .on_machine(),
            );
        }
        let is_usable = self.is_valid_today(&facts, &at, from) || from == From::Directory;
        is_usable.then_some(Usable { certificate, kind: facts.key, names: facts.names, at, from })
    }

    fn is_valid_today(&self, facts: &Facts, at: &At<PathBuf>, from: From) -> bool {
        let Some(now_s) = self.surroundings.now_s() else { return true };
        let whose = whose(facts);
        let (diagnostic, valid) = match facts.validity(now_s) {
            Validity::Valid { .. } if !facts.ends_soon(now_s) => return true,
            Validity::Valid { left_s } => {
                let warning = Diagnostic::warning(
                    format!("the certificate of {whose} ends soon"),
                    at.span.clone(),
                    from.label(
                        at,
                        &format!("on {}, {} from now", tls::date(facts.not_after), days(left_s)),
                    ),
                );
                (warning.help("clients refuse it from then on; a client that renews by itself would have done so by now: look at its log"), true)
            }
            Validity::Expired => {
                let since = days(now_s.saturating_sub(facts.not_after));
                let error = Diagnostic::error(
                    format!("the certificate of {whose} has expired"),
                    at.span.clone(),
                    from.label(at, &format!("on {}, {since} ago", tls::date(facts.not_after))),
                );
                (error.help("clients refuse it: renew it, or leave it out"), false)
            }
            Validity::NotYet => {
                let error = Diagnostic::error(
                    format!("the certificate of {whose} is not valid yet"),
                    at.span.clone(),
                    from.label(at, &format!("valid from {} on", tls::date(facts.not_before))),
                );
                (error.help("clients refuse it until then; is this machine's clock right?"), false)
            }
        };
        let severity = match from {
            From::List => diagnostic.severity,
            From::Directory => Severity::Warning,
        };
        self.problems.report(Diagnostic { severity, ..diagnostic }.on_machine());
        valid
    }

    /// Reports certificates of one listener for the same name and the same key type: only the first
    /// is ever used for it.
    fn twice<'u>(&self, certificates: impl Iterator<Item = &'u Usable>) {
        let mut seen: HashMap<(&str, KeyKind), &Usable> = HashMap::new();
        for usable in certificates {
            let again = usable.names.iter().find_map(|name| {
                let first = seen.get(&(name.as_str(), usable.kind))?;
                Some((name, *first))
            });
            if let Some((name, first)) = again {
                let why_shown = match first.from {
                    From::List => "shown: it stands first",
                    From::Directory => "shown: it is valid longest",
                };
                self.problems.report(
                    Diagnostic::warning(
                        format!("two certificates for {name}"),
                        usable.at.span.clone(),
                        usable.from.label(&usable.at, "never shown for this name"),
                    )
                    .other(first.at.span.clone(), first.from.label(&first.at, why_shown))
                    .on_machine(),
                );
            }
            for name in &usable.names {
                seen.entry((name, usable.kind)).or_insert(usable);
            }
        }
    }

    /// Returns authorities of which at least one is usable.
    fn authorities(&self, at: &At<PathBuf>) -> Option<Material> {
        let material = self.file(at)?;
        match tls::authorities(&material) {
            Ok(_) => Some(material),
            Err(mistake) => {
                self.report_mistake(mistake, at);
                None
            }
        }
    }

    fn affinity_key(&self, at: &At<PathBuf>) -> Option<AffinityKeyFile> {
        let found = self.surroundings.secret(&self.path(at), AffinityKey::FILE_MAX_BYTES);
        let Material { path, bytes } = self.material(at, found)?;
        let key = AffinityKey::parse(&bytes);
        if key.is_none() {
            let title = format!("no key in {}", at.value.display());
            let what = "a key is 32 hexadecimal digits";
            let help = "make one with: openssl rand -hex 16";
            let diagnostic = Diagnostic::error(title, at.span.clone(), what).help(help);
            self.problems.report(diagnostic.on_machine());
        }
        Some(AffinityKeyFile { path, key: key? })
    }

    fn system_authorities(&self, span: &Span) -> Option<Material> {
        let found = SYSTEM_AUTHORITIES.iter().find_map(|path| {
            let found = self.surroundings.file(Path::new(path)).ok()?;
            tls::authorities(&found.material).is_ok().then_some(found.material)
        });
        if found.is_none() {
            self.problems.report(
                Diagnostic::error(
                    "this system's authorities are not found",
                    span.clone(),
                    "no certificate can be verified",
                )
                .help(format!(
                    "install the package ca-certificates, or name a file with the authorities to trust (looked for: {})",
                    SYSTEM_AUTHORITIES.join(", ")
                ))
                .on_machine(),
            );
        }
        found
    }

    fn file(&self, at: &At<PathBuf>) -> Option<Material> {
        self.material(at, self.surroundings.file(&self.path(at)))
    }

    /// Returns a path relative to the configuration file's folder, from one that is relative to the file
    /// that names it.
    fn path(&self, at: &At<PathBuf>) -> PathBuf {
        self.sources.path(&at.value, &at.span)
    }

    /// Returns the contents of the file that `at` names; reports if it was not found, or is only
    /// readable by root.
    fn material(&self, at: &At<PathBuf>, found: Result<Found, Unreadable>) -> Option<Material> {
        match found {
            Ok(found) => {
                if let Some(user) = self.user.filter(|_| found.only_root) {
                    self.problems.report(cannot_read_again(at, user));
                }
                Some(found.material)
            }
            Err(error) => {
                self.unreadable(at, error);
                None
            }
        }
    }

    fn unreadable(&self, at: &At<PathBuf>, error: Unreadable) {
        let Unreadable { why, help, is_denied, .. } = error;
        let title = format!("cannot read {}", at.value.display());
        let mut diagnostic = Diagnostic::error(title, at.span.clone(), why);
        match (is_denied, self.user) {
            (true, Some(user)) => {
                diagnostic = diagnostic.help(format!(
                    "as root Weir could read it at its start; since then it is user \"{user}\": let that user read it"
                ));
            }
            _ => diagnostic.help.extend(help),
        }
        self.problems.report(diagnostic.on_machine());
    }

    fn report_mistake(&self, mistake: Mistake, at: &At<PathBuf>) {
        let Mistake { about, message, help } = mistake;
        let what = match about {
            Part::Chain => "certificate",
            Part::Key => "private key",
            Part::Ocsp => "OCSP response",
            Part::Ca => "authorities",
        };
        let title = format!("unusable {what} in {}", at.value.display());
        let mut diagnostic = Diagnostic::error(title, at.span.clone(), message);
        diagnostic.help.extend(help);
        self.problems.report(diagnostic.on_machine());
    }
}

/// Warns of files in texts that only root may read.
pub(crate) fn warn_of_only_root(document: &Document, files: &[At<PathBuf>], problems: &Problems) {
    let Some((user, _)) = &document.run_as else { return };
    for at in files {
        problems.report_as_is(cannot_read_again(at, user));
    }
}

fn cannot_read_again(at: &At<PathBuf>, user: &str) -> Diagnostic {
    let title = format!("{} cannot be read again", at.value.display());
    Diagnostic::warning(title, at.span.clone(), "only root may read this file")
        .help(format!(
            "Weir becomes user \"{user}\" after its start, so that a reload or an upgrade could not read it: let that user read it"
        ))
        .on_machine()
}

/// Returns the certificate's first names, in a few words.
fn whose(facts: &Facts) -> String {
    match facts.names.as_slice() {
        [] => facts.subject.clone(),
        [one] => one.clone(),
        [first, rest @ ..] => format!("{first} (and {} more)", rest.len()),
    }
}

fn days(seconds: i64) -> String {
    match seconds / (24 * 3600) {
        0 => "less than a day".to_owned(),
        1 => "1 day".to_owned(),
        n => format!("{n} days"),
    }
}
