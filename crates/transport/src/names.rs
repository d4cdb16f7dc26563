//! Lookups of names: the hosts file, `localhost`, then DNS.
//!
//! The order is that of `files dns` in nsswitch.conf. The hosts file and resolv.conf are reread
//! when they change, as the C library does. Nothing is cached here: the caller decides when to look a
//! name up again, based on the TTL. The C library itself is not used: in a program that is linked
//! statically it could load modules of another version. (The client of Kubernetes' API server uses it
//! if a kubeconfig names the server by a host name.)

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use hickory_resolver::config::{
    ConnectionConfig, NameServerConfig, ResolveHosts, ResolverConfig, ResolverOpts,
};
use hickory_resolver::lookup::Lookup;
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::net::{DnsError, NetError};
use hickory_resolver::proto::op::{Query, ResponseCode};
use hickory_resolver::proto::rr::{Name, RecordType};
use hickory_resolver::{Hosts, Resolver, TokioResolver, system_conf};

model::words! {
    /// Where addresses came from.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Source {
        /// The hosts file.
        Hosts = "hosts",
        /// `localhost` and names below it, which mean the loopback addresses (RFC 6761 section 6.3).
        Localhost = "localhost",
        /// A DNS server.
        Dns = "dns",
    }
}

/// The answer for one address family.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Family {
    /// At least one address.
    Found {
        /// Those that the machine can use, if there are some.
        addresses: Vec<IpAddr>,
        /// How long they are valid.
        ttl: Duration,
    },
    /// An answer that states there is none (no such name, or no such record).
    None(String),
    /// No answer.
    Failed(String),
}

/// The answer for a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Where it came from.
    pub source: Source,
    /// Addresses of IPv4.
    pub v4: Family,
    /// Addresses of IPv6.
    pub v6: Family,
}

impl Answer {
    /// Returns all addresses, those of IPv6 first (RFC 6724 section 2.1: its precedence is higher).
    ///
    /// # Errors
    /// There are none; why.
    fn into_addresses(self) -> Result<Vec<IpAddr>, String> {
        let (mut found, mut why) = (Vec::new(), None);
        for family in [self.v6, self.v4] {
            match family {
                Family::Found { addresses, .. } => found.extend(addresses),
                Family::None(reason) | Family::Failed(reason) => {
                    why.get_or_insert(reason);
                }
            }
        }
        if found.is_empty() { Err(why.unwrap_or_default()) } else { Ok(found) }
    }
}

/// Returns the addresses of a host, which is a name or an address itself, as the system's files and DNS servers have them.
///
/// # Errors
/// The host has none, or nothing answered. With several DNS servers and a search list, that can take a minute.
pub async fn addresses(host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    if let Some(address) = literal(host, port) {
        return Ok(vec![address]);
    }
    let answer = Dns::new(&[]).lookup(host).await;
    let found = answer.into_addresses().map_err(io::Error::other)?;
    Ok(found.into_iter().map(|ip| SocketAddr::new(ip, port)).collect())
}

/// As [`addresses`], for a thread without an event loop, and for at most this time.
///
/// # Errors
/// As [`addresses`].
pub fn addresses_blocking(host: &str, port: u16, max: Duration) -> io::Result<Vec<SocketAddr>> {
    if let Some(address) = literal(host, port) {
        return Ok(vec![address]);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let found = async { tokio::time::timeout(max, addresses(host, port)).await };
    runtime.block_on(found).unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

fn literal(host: &str, port: u16) -> Option<SocketAddr> {
    host.parse::<IpAddr>().ok().map(|ip| SocketAddr::new(ip, port))
}

/// How long an answer from the hosts file or for `localhost` is valid before it is read again.
const LOCAL_TTL: Duration = Duration::from_secs(10);

/// Performs lookups.
#[expect(missing_debug_implementations, reason = "the resolver has none")]
pub struct Dns {
    /// Used instead of the servers in resolv.conf.
    nameservers: Vec<SocketAddr>,
    hosts: Watched<Hosts>,
    servers: Watched<Result<Servers, String>>,
}

/// DNS servers, and what they are asked for.
#[derive(Clone)]
struct Servers {
    resolver: TokioResolver,
    /// What is appended to a name that is not complete.
    search: Vec<Name>,
    /// A name with this many dots is tried as it is first.
    dots: usize,
}

/// A parsed file, and its modification time when it was read.
struct Watched<T> {
    path: PathBuf,
    seen: Option<SystemTime>,
    value: T,
}

impl Dns {
    /// Uses the system's files; `nameservers` are queried instead of those in resolv.conf, unless there are none.
    pub fn new(nameservers: &[SocketAddr]) -> Dns {
        Dns::with_files(nameservers, "/etc/hosts".into(), "/etc/resolv.conf".into())
    }

    /// As [`Dns::new`], with other files.
    pub fn with_files(nameservers: &[SocketAddr], hosts: PathBuf, resolv_conf: PathBuf) -> Dns {
        Dns {
            nameservers: nameservers.to_vec(),
            hosts: Watched { seen: modified(&hosts), value: read_hosts(&hosts), path: hosts },
            servers: Watched {
                seen: modified(&resolv_conf),
                value: build(nameservers, &resolv_conf),
                path: resolv_conf,
            },
        }
    }

    /// Starts a lookup of `host`. The future borrows nothing, so that many can run at once.
    pub fn lookup(&mut self, host: &str) -> impl Future<Output = Answer> + use<> {
        self.refresh();
        let local = self.local(host);
        let servers = self.servers.value.clone();
        let host = host.to_owned();
        async move {
            if let Some(answer) = local {
                return answer;
            }
            let (v4, v6) = match servers {
                Ok(servers) => ask_all(&servers, &host).await,
                Err(why) => (Family::Failed(why.clone()), Family::Failed(why)),
            };
            only_usable(Answer { source: Source::Dns, v4, v6 })
        }
    }

    /// Returns what asks DNS servers, for records of other types than addresses.
    ///
    /// # Errors
    /// Why there is none: resolv.conf cannot be read.
    pub fn resolver(&mut self) -> Result<TokioResolver, String> {
        self.refresh();
        self.servers.value.clone().map(|servers| servers.resolver)
    }

    fn refresh(&mut self) {
        if self.hosts.has_changed() {
            self.hosts.value = read_hosts(&self.hosts.path);
        }
        if self.nameservers.is_empty() && self.servers.has_changed() {
            self.servers.value = build(&[], &self.servers.path);
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
    // Without a file there are no such hosts.
    drop(std::fs::File::open(path).and_then(|file| hosts.read_hosts_conf(file)));
    hosts
}

fn build(nameservers: &[SocketAddr], resolv_conf: &Path) -> Result<Servers, String> {
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
    // Without a search list, the domain of the machine stands for it (resolv.conf(5)).
    let search = match (config.search(), config.domain()) {
        ([], domain) => domain.into_iter().cloned().collect(),
        (search, _) => search.to_vec(),
    };
    let dots = options.ndots;
    let mut builder = Resolver::builder_with_config(config, TokioRuntimeProvider::default());
    *builder.options_mut() = options;
    let resolver = builder.build().map_err(|error| error.to_string())?;
    Ok(Servers { resolver, search, dots })
}

/// Returns the complete names that a host may stand for, in the order in which they are tried.
fn candidates(host: &str, search: &[Name], dots: usize) -> Vec<String> {
    if host.ends_with('.') {
        return vec![host.to_owned()];
    }
    let complete = format!("{host}.");
    let mut all: Vec<String> = search
        .iter()
        .map(|domain| format!("{host}.{}.", domain.to_ascii().trim_end_matches('.')))
        .collect();
    let is_first = host.matches('.').count() >= dots;
    all.insert(if is_first { 0 } else { all.len() }, complete);
    all
}

/// Asks for the addresses of both families of each name that the host may stand for, until one has some. As the C library
/// does, it stops if nothing answers: a later name could be another host's. An error is remembered, since it is not an
/// answer that there is none.
async fn ask_all(servers: &Servers, host: &str) -> (Family, Family) {
    let mut failed = None;
    let mut last = (Family::None("no such name".into()), Family::None("no such name".into()));
    for name in candidates(host, &servers.search, servers.dots) {
        let (v4, v6) = tokio::join!(
            ask(&servers.resolver, &name, RecordType::A),
            ask(&servers.resolver, &name, RecordType::AAAA)
        );
        let has_answered = v4.1 && v6.1;
        let families = (v4.0, v6.0);
        let is_found = |family: &Family| matches!(family, Family::Found { .. });
        if is_found(&families.0) || is_found(&families.1) {
            return families;
        }
        let is_failed = |family: &Family| matches!(family, Family::Failed(_));
        if is_failed(&families.0) || is_failed(&families.1) {
            failed.get_or_insert(families);
        } else {
            last = families;
        }
        if !has_answered {
            break;
        }
    }
    failed.unwrap_or(last)
}

/// Returns the addresses of a complete name, and whether a server has answered.
async fn ask(resolver: &TokioResolver, name: &str, record_type: RecordType) -> (Family, bool) {
    let family = match resolver.lookup(name, record_type).await {
        Ok(lookup) => {
            let mut addresses = Vec::new();
            let mut ttl_s = u32::MAX;
            for record in lookup.answers() {
                // A CNAME on the way limits how long the whole answer is valid.
                ttl_s = ttl_s.min(record.ttl);
                addresses.extend(record.data.ip_addr());
            }
            if addresses.is_empty() {
                Family::None(format!("no {record_type} records"))
            } else {
                Family::Found { addresses, ttl: Duration::from_secs(ttl_s.into()) }
            }
        }
        Err(NetError::Dns(DnsError::NoRecordsFound(none))) => match none.response_code {
            ResponseCode::NXDomain => Family::None("no such name".into()),
            ResponseCode::NoError => Family::None(format!("no {record_type} records")),
            code => Family::Failed(code.to_string()),
        },
        Err(error) => return (Family::Failed(error.to_string()), false),
    };
    (family, true)
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

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn block_on<F: Future>(future: F) -> F::Output {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(future)
    }

    #[test]
    fn the_hosts_file_comes_first_is_read_again_when_it_changes_and_localhost_needs_none() {
        block_on(async {
            let directory = std::env::temp_dir().join(format!("weir-hosts-{}", std::process::id()));
            std::fs::create_dir_all(&directory).expect("a directory");
            let path = directory.join("hosts");
            let write = |text: &str, second: u64| {
                let mut file = std::fs::File::create(&path).expect("created");
                file.write_all(text.as_bytes()).expect("written");
                file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(second))
                    .expect("set");
            };
            let found = |answer: &Answer| match &answer.v4 {
                Family::Found { addresses, .. } => addresses[0].to_string(),
                other => format!("{other:?}"),
            };
            write("127.0.0.7 app.test app\n", 1);
            let mut dns = Dns::with_files(&[], path.clone(), directory.join("no-resolv.conf"));
            let answer = dns.lookup("app.test").await;
            assert_eq!((answer.source, found(&answer)), (Source::Hosts, "127.0.0.7".into()));
            write("127.0.0.8 app.test\n", 2);
            assert_eq!(found(&dns.lookup("app.test").await), "127.0.0.8");

            let answer = dns.lookup("localhost").await;
            assert_eq!((answer.source, found(&answer)), (Source::Localhost, "127.0.0.1".into()));
            // Without resolv.conf other names fail with a reason, and only those.
            let answer = dns.lookup("other.test").await;
            assert!(matches!(&answer.v4, Family::Failed(why) if why.contains("no-resolv.conf")));
            std::fs::remove_dir_all(&directory).expect("removed");
        });
    }

    #[test]
    fn a_search_list_applies_as_in_the_c_library() {
        let search =
            ["ns.svc.cluster.local", "corp.example."].map(|name| Name::from_ascii(name).unwrap());
        let of = |host: &str, dots: usize| candidates(host, &search, dots).join(" ");
        assert_eq!(of("db", 1), "db.ns.svc.cluster.local. db.corp.example. db.");
        assert_eq!(of("a.b", 1), "a.b. a.b.ns.svc.cluster.local. a.b.corp.example.");
        assert_eq!(of("a.b", 5), "a.b.ns.svc.cluster.local. a.b.corp.example. a.b.");
        assert_eq!(of("a.b.", 5), "a.b.");
        assert_eq!(candidates("db", &[], 1), ["db."]);
    }

    #[test]
    fn addresses_need_no_lookup_and_localhost_no_server() {
        let of = |host: &str| addresses_blocking(host, 80, Duration::from_secs(5)).unwrap();
        assert_eq!(of("192.0.2.1"), [SocketAddr::from(([192, 0, 2, 1], 80))]);
        assert_eq!(of("2001:db8::1")[0].to_string(), "[2001:db8::1]:80");
        let found = of("a.localhost");
        assert!(found.iter().all(|address| address.ip().is_loopback()), "{found:?}");
    }
}
