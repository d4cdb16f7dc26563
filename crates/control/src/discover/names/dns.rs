//! One lookup of one name: the hosts file, `localhost`, then DNS.
//!
//! The order is that of `files dns` in nsswitch.conf. The hosts file and resolv.conf are reread
//! when they change, as the C library does. Nothing is cached here: `known` decides when to look up
//! again, based on the TTL.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use discovery::srv::Record;
use hickory_resolver::config::{
    ConnectionConfig, NameServerConfig, ResolveHosts, ResolverConfig, ResolverOpts,
};
use hickory_resolver::lookup::Lookup;
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::net::{DnsError, NetError};
use hickory_resolver::proto::op::{Query, ResponseCode};
use hickory_resolver::proto::rr::{Name, RData, RecordType};
use hickory_resolver::{Hosts, Resolver, TokioResolver, system_conf};

use super::known::{Answer, Family, Source};

/// How long an answer from the hosts file or for `localhost` is valid before it is read again.
const LOCAL_TTL: Duration = Duration::from_secs(10);

/// Performs lookups.
pub(crate) struct Dns {
    /// Used instead of the servers in resolv.conf.
    nameservers: Vec<SocketAddr>,
    hosts: Watched<Hosts>,
    resolver: Watched<Result<TokioResolver, String>>,
}

/// A parsed file, and its modification time when it was read.
struct Watched<T> {
    path: PathBuf,
    seen: Option<SystemTime>,
    value: T,
}

impl Dns {
    /// Uses the system's files; `nameservers` are queried instead of those in resolv.conf, unless there are none.
    pub(crate) fn new(nameservers: &[SocketAddr]) -> Dns {
        Dns::with_files(nameservers, "/etc/hosts".into(), "/etc/resolv.conf".into())
    }

    /// As [`Dns::new`], with other files.
    pub(crate) fn with_files(
        nameservers: &[SocketAddr],
        hosts: PathBuf,
        resolv_conf: PathBuf,
    ) -> Dns {
        Dns {
            nameservers: nameservers.to_vec(),
            hosts: Watched { seen: modified(&hosts), value: read_hosts(&hosts), path: hosts },
            resolver: Watched {
                seen: modified(&resolv_conf),
                value: build(nameservers, &resolv_conf),
                path: resolv_conf,
            },
        }
    }

    /// Starts a lookup of `host`. The future borrows nothing, so that many can run at once.
    pub(crate) fn lookup(&mut self, host: &str) -> impl Future<Output = Answer> + use<> {
        self.refresh();
        let local = self.local(host);
        let resolver = self.resolver.value.clone();
        let host = host.to_owned();
        async move {
            if let Some(answer) = local {
                return answer;
            }
            let resolver = match resolver {
                Ok(resolver) => resolver,
                Err(why) => {
                    let (v4, v6) = (Family::Failed(why.clone()), Family::Failed(why));
                    return Answer { source: Source::Dns, v4, v6 };
                }
            };
            let (v4, v6) = tokio::join!(
                ask(&resolver, &host, RecordType::A),
                ask(&resolver, &host, RecordType::AAAA)
            );
            only_usable(Answer { source: Source::Dns, v4, v6 })
        }
    }

    /// Starts a lookup of the SRV records of `name`, which returns them with the time for which they are valid. The
    /// future borrows nothing, so that many can run at once.
    pub(crate) fn services(
        &mut self,
        name: &str,
    ) -> impl Future<Output = Result<(Vec<Record>, Duration), String>> + use<> {
        self.refresh();
        let resolver = self.resolver.value.clone();
        // With a dot at its end no search list applies: the name is complete.
        let name = format!("{name}.");
        async move {
            let lookup = resolver?.lookup(name, RecordType::SRV).await;
            let lookup = lookup.map_err(|error| match &error {
                NetError::Dns(DnsError::NoRecordsFound(none)) => match none.response_code {
                    ResponseCode::NXDomain => "no such name".to_owned(),
                    ResponseCode::NoError => "no SRV records".to_owned(),
                    code => code.to_string(),
                },
                _ => error.to_string(),
            })?;
            let mut ttl_s = u32::MAX;
            let mut records = Vec::new();
            for record in lookup.answers() {
                ttl_s = ttl_s.min(record.ttl);
                if let RData::SRV(srv) = &record.data {
                    records.push(Record {
                        priority: srv.priority,
                        weight: srv.weight,
                        port: srv.port,
                        target: srv.target.to_ascii(),
                    });
                }
            }
            Ok((records, Duration::from_secs(ttl_s.into())))
        }
    }

    fn refresh(&mut self) {
        if self.hosts.has_changed() {
            self.hosts.value = read_hosts(&self.hosts.path);
        }
        if self.nameservers.is_empty() && self.resolver.has_changed() {
            self.resolver.value = build(&[], &self.resolver.path);
        }
    }

    fn local(&self, host: &str) -> Option<Answer> {
        let addresses = |record_type| -> Vec<IpAddr> {
            let Ok(name) = Name::from_ascii(host) else {
                return Vec::new();
            };
            let lookup = self.hosts.value.lookup_static_host(&Query::query(name, record_type));
            let records = lookup.iter().flat_map(Lookup::answers);
            records.filter_map(|record| record.data.ip_addr()).collect()
        };
        let (v4, v6) = (addresses(RecordType::A), addresses(RecordType::AAAA));
        let (source, v4, v6) = if !v4.is_empty() || !v6.is_empty() {
            (Source::Hosts, v4, v6)
        } else if host == "localhost" || host.ends_with(".localhost") {
            let (v4, v6) = (Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into());
            (Source::Localhost, vec![v4], vec![v6])
        } else {
            return None;
        };
        let family = |addresses: Vec<IpAddr>| {
            if addresses.is_empty() {
                return Family::None("not in the hosts file".into());
            }
            Family::Found { addresses, ttl: LOCAL_TTL }
        };
        Some(only_usable(Answer { source, v4: family(v4), v6: family(v6) }))
    }
}

impl<T> Watched<T> {
    fn has_changed(&mut self) -> bool {
        let now = modified(&self.path);
        std::mem::replace(&mut self.seen, now) != now
    }
}

fn modified(path: &Path) -> Option<SystemTime> {
    std::fs::metadata(path).and_then(|metadata| metadata.modified()).ok()
}

fn read_hosts(path: &Path) -> Hosts {
    let mut hosts = Hosts::default();
    let read = std::fs::File::open(path).and_then(|file| hosts.read_hosts_conf(file));
    if let Err(error) = read {
        tracing::debug!(path = %path.display(), %error, "no hosts file");
    }
    hosts
}

fn build(nameservers: &[SocketAddr], resolv_conf: &Path) -> Result<TokioResolver, String> {
    let (config, mut options) = if nameservers.is_empty() {
        std::fs::read(resolv_conf)
            .map_err(|error| error.to_string())
            .and_then(|text| system_conf::parse_resolv_conf(text).map_err(|e| e.to_string()))
            .map_err(|why| format!("{}: {why}", resolv_conf.display()))?
    } else {
        let servers = nameservers.iter().map(|address| {
            let connections = [ConnectionConfig::udp(), ConnectionConfig::tcp()].map(|mut c| {
                c.port = address.port();
                c
            });
            NameServerConfig::new(address.ip(), true, connections.into())
        });
        let config = ResolverConfig::from_parts(None, vec![], servers.collect());
        let mut options = ResolverOpts::default();
        // Long answers, such as those with many SRV records, arrive without a second query over TCP.
        options.edns0 = true;
        (config, options)
    };
    options.cache_size = 0;
    options.use_hosts_file = ResolveHosts::Never;
    let mut builder = Resolver::builder_with_config(config, TokioRuntimeProvider::default());
    *builder.options_mut() = options;
    builder.build().map_err(|error| error.to_string())
}

async fn ask(resolver: &TokioResolver, host: &str, record_type: RecordType) -> Family {
    match resolver.lookup(host, record_type).await {
        Ok(lookup) => {
            let mut addresses = Vec::new();
            let mut ttl_s = u32::MAX;
            for record in lookup.answers() {
                // A CNAME on the way limits how long the whole answer is valid.
                ttl_s = ttl_s.min(record.ttl);
                addresses.extend(record.data.ip_addr());
            }
            if addresses.is_empty() {
                return Family::None(format!("no {record_type} records"));
            }
            Family::Found { addresses, ttl: Duration::from_secs(ttl_s.into()) }
        }
        Err(NetError::Dns(DnsError::NoRecordsFound(none))) => match none.response_code {
            ResponseCode::NXDomain => Family::None("no such name".into()),
            ResponseCode::NoError => Family::None(format!("no {record_type} records")),
            code => Family::Failed(code.to_string()),
        },
        Err(error) => Family::Failed(error.to_string()),
    }
}

/// Drops an address family that this machine cannot use (no IPv6, for example), as long as the
/// other has addresses: RFC 6724 section 6, rule 1. Determined by asking for a source address;
/// nothing is sent.
fn only_usable(answer: Answer) -> Answer {
    let Answer { source, v4, v6 } = answer;
    let (v4_usable, v6_usable) = (keep_usable(&v4), keep_usable(&v6));
    let found = |family: &Family| matches!(family, Family::Found { .. });
    if found(&v4_usable) || found(&v6_usable) {
        return Answer { source, v4: v4_usable, v6: v6_usable };
    }
    Answer { source, v4, v6 }
}

fn keep_usable(family: &Family) -> Family {
    let Family::Found { addresses, ttl } = family else {
        return family.clone();
    };
    let usable: Vec<_> = addresses.iter().copied().filter(|ip| has_source_for(*ip)).collect();
    if usable.is_empty() {
        return Family::None("this machine has no address from which to reach it".into());
    }
    Family::Found { addresses: usable, ttl: *ttl }
}

fn has_source_for(ip: IpAddr) -> bool {
    let any: IpAddr = match ip {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    const DISCARD_PORT: u16 = 9;
    UdpSocket::bind((any, 0)).and_then(|socket| socket.connect((ip, DISCARD_PORT))).is_ok()
}
