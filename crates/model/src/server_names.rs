//! Where connections go that are not routed per request: to one service or several, or by the server name (SNI)
//! that a TLS client asks for.

use crate::{HostPattern, Hosts, ServiceId};

/// Where connections go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TcpSplit {
    /// Empty: there is no route. Then, and if all weights are 0, connections are closed.
    pub branches: Vec<TcpBranch>,
}

/// One branch of a [`TcpSplit`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpBranch {
    /// The service; `None`: there is no valid one, and the connections are closed.
    pub to: Option<ServiceId>,
    /// Its share relative to the other branches.
    pub weight: u32,
}

impl TcpSplit {
    /// Creates a split whose connections all go to one service.
    pub fn only(service: ServiceId) -> TcpSplit {
        TcpSplit { branches: vec![TcpBranch { to: Some(service), weight: 1 }] }
    }

    /// Returns the services that connections go to.
    pub fn services(&self) -> impl Iterator<Item = ServiceId> {
        self.branches.iter().filter_map(|branch| branch.to)
    }

    /// Returns them to be changed.
    pub fn services_mut(&mut self) -> impl Iterator<Item = &mut ServiceId> {
        self.branches.iter_mut().filter_map(|branch| branch.to.as_mut())
    }
}

/// What becomes of the connections that ask for a server name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TlsMode {
    /// They are forwarded without being decrypted.
    Passthrough(TcpSplit),
    /// They are decrypted with the listener's `tls`, and their bytes are forwarded.
    Terminate(TcpSplit),
    /// They are decrypted with the listener's `tls`, and carry HTTP, which is routed per request.
    Http,
    /// They are closed: there is no route for them.
    Refuse,
}

impl TlsMode {
    /// Returns where its connections go; `None`: that depends on their requests, or they are closed.
    pub fn split(&self) -> Option<&TcpSplit> {
        match self {
            TlsMode::Passthrough(split) | TlsMode::Terminate(split) => Some(split),
            TlsMode::Http | TlsMode::Refuse => None,
        }
    }

    /// Returns it to be changed.
    pub fn split_mut(&mut self) -> Option<&mut TcpSplit> {
        match self {
            TlsMode::Passthrough(split) | TlsMode::Terminate(split) => Some(split),
            TlsMode::Http | TlsMode::Refuse => None,
        }
    }
}

/// What becomes of TLS connections, by the server name that the client asks for. The most specific
/// pattern counts: the exact name, the longest wildcard, any name or none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerNames {
    names: Hosts,
    /// By the index of the pattern in `names`.
    modes: Vec<TlsMode>,
}

impl ServerNames {
    /// Collects patterns with names in lower case; `None`: any name, or none. Of equal ones the first counts.
    pub fn new(by_name: impl IntoIterator<Item = (Option<HostPattern>, TlsMode)>) -> ServerNames {
        let mut all = ServerNames::default();
        for (pattern, mode) in by_name {
            if all.names.push(pattern) {
                all.modes.push(mode);
            }
        }
        all
    }

    /// Returns what becomes of a connection whose client asks for this name. `None`: it is refused.
    pub fn mode(&self, asked: Option<&str>) -> Option<&TlsMode> {
        let index = match asked {
            Some(name) => self.names.entry(name),
            None => self.names.any(),
        };
        self.modes.get(index? as usize)
    }

    /// Returns the patterns as a configuration has them (`*` for any name), in its order, each with its mode.
    pub fn iter(&self) -> impl Iterator<Item = (String, &TlsMode)> {
        self.names.iter().zip(&self.modes)
    }

    /// Returns all modes, in the order of [`ServerNames::iter`].
    pub fn modes(&self) -> &[TlsMode] {
        &self.modes
    }

    /// Returns them to be changed.
    pub fn modes_mut(&mut self) -> &mut [TlsMode] {
        &mut self.modes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_specific_name_counts_and_a_client_without_one_is_any() {
        let name = |text: &str| match text.strip_prefix("*.") {
            Some(suffix) => HostPattern::Wildcard(suffix.to_owned()),
            None => HostPattern::Exact(text.to_owned()),
        };
        let to = |id| TlsMode::Terminate(TcpSplit::only(ServiceId(id)));
        let names = |any: Option<TlsMode>| {
            let named = [
                (Some(name("*.example.com")), to(0)),
                (Some(name("a.example.com")), TlsMode::Http),
                (Some(name("a.example.com")), to(9)),
                (Some(name("*.a.example.com")), to(2)),
            ];
            ServerNames::new(named.into_iter().chain(any.map(|mode| (None, mode))))
        };
        for (asked, expected) in [
            (Some("a.example.com"), Some(TlsMode::Http)),
            (Some("A.example.com"), Some(TlsMode::Http)),
            (Some("b.example.com"), Some(to(0))),
            (Some("x.a.example.com"), Some(to(2))),
            (Some("example.com"), None),
            (None, None),
        ] {
            assert_eq!(names(None).mode(asked), expected.as_ref(), "{asked:?}");
            let otherwise = expected.unwrap_or(to(7));
            assert_eq!(names(Some(to(7))).mode(asked), Some(&otherwise), "{asked:?}");
        }
    }
}
