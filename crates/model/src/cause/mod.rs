//! Causes: why an exchange ended, each with one stable name used in logs, metrics and responses.
//!
//! The causes, each with its documentation page, are in `list`. This file does not decide which
//! cause an exchange ends with: the code that sees it end does.

/// Generates the enum and its queries from one list. Defined here, as `list` is long enough.
macro_rules! causes {
    ($(
        $(#[doc = $doc:literal])+
        $variant:ident = $name:literal, $fault:ident, $status:literal;
    )+) => {
        /// Why an exchange ended as it did. Each variant's comment is its documentation page: what
        /// happened, why it usually does, what to do.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum Cause { $($(#[doc = $doc])+ $variant,)+ }

        impl Cause {
            /// Every cause, in order of the enum.
            pub const ALL: &'static [Cause] = &[$(Cause::$variant,)+];

            /// Returns the stable name: log, metric label, `Proxy-Status`.
            pub fn name(self) -> &'static str {
                match self { $(Cause::$variant => $name,)+ }
            }

            /// Returns who could have prevented it.
            pub fn fault(self) -> crate::Fault {
                match self { $(Cause::$variant => crate::Fault::$fault,)+ }
            }

            /// Returns the status of the response that Weir generates for it while nothing has been
            /// sent to the client yet; 0 if it generates none, or a configured one.
            pub fn status(self) -> u16 {
                match self { $(Cause::$variant => $status,)+ }
            }

            /// Returns the variant's comment, line by line.
            pub(super) fn document(self) -> &'static str {
                match self { $(Cause::$variant => concat!($($doc, "\n"),+),)+ }
            }
        }
    };
}

mod list;
mod page;

pub use list::Cause;
pub use page::Page;

crate::words! {
    /// Who could have prevented a failure.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Fault {
        /// No one: it ended well, or as an operator intends.
        None = "none",
        /// The client.
        Client = "client",
        /// The server.
        Server = "server",
        /// The network between balancer and server.
        Network = "network",
        /// This balancer, or the machine it runs on.
        Balancer = "balancer",
        /// The configuration.
        Configuration = "configuration",
    }
}

/// The outcome of an exchange, in four classes. Every exchange is in exactly one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It ended as it should.
    Served,
    /// It failed because of a server, the network, the balancer or the configuration, or a server
    /// sent a 5xx.
    Failed,
    /// Weir refused it, because of a limit or maintenance.
    Refused,
    /// It failed because of the client.
    ClientFault,
}

impl Ending {
    /// Returns the class of an exchange that ended for `cause` with a status of `class` (1 to 5 for 1xx
    /// to 5xx, 0 for none).
    pub fn of(cause: Cause, class: usize) -> Ending {
        match (cause, cause.fault()) {
            (
                Cause::QueueFull
                | Cause::QueueWaitExceeded
                | Cause::RateLimited
                | Cause::Maintenance
                | Cause::ConnectionLimitReached
                | Cause::AuthenticationOverloaded
                | Cause::EnhanceYourCalm
                | Cause::Http2StreamsExceeded
                | Cause::ShuttingDown,
                _,
            ) => Ending::Refused,
            (_, Fault::Client) => Ending::ClientFault,
            (Cause::Completed, Fault::None) if class == 5 => Ending::Failed,
            (_, Fault::None) => Ending::Served,
            (_, Fault::Server | Fault::Network | Fault::Balancer | Fault::Configuration) => {
                Ending::Failed
            }
        }
    }
}

impl Cause {
    /// Returns the cause with that name, exactly as [`Cause::name`] returns it.
    pub fn from_name(name: &str) -> Option<Cause> {
        Cause::ALL.iter().copied().find(|cause| cause.name() == name)
    }

    /// Returns what happened, in one sentence. It names no address, service or server, so anyone
    /// may see it.
    pub fn summary(self) -> &'static str {
        self.document().lines().next().unwrap_or_default().trim_ascii()
    }

    /// Returns whether the client is gone: no response can be sent, and nothing waits for what a
    /// server may still be doing.
    pub fn is_client_gone(self) -> bool {
        self.fault() == Fault::Client && self.status() == 0
    }

    /// Returns the page on this cause.
    pub fn page(self) -> Page {
        Page::of(self.document())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_fit_a_structured_field_token() {
        let mut names: Vec<_> = Cause::ALL.iter().map(|cause| cause.name()).collect();
        assert!(
            names.iter().all(|n| n
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_'))
        );
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Cause::ALL.len());
    }

    #[test]
    fn a_name_leads_back_to_its_cause() {
        for &cause in Cause::ALL {
            assert_eq!(Cause::from_name(cause.name()), Some(cause));
        }
        assert_eq!(Cause::from_name("Connection_Refused"), None);
        assert_eq!(Cause::from_name(""), None);
    }

    #[test]
    fn a_status_fits_its_fault() {
        for &cause in Cause::ALL {
            let (name, status) = (cause.name(), cause.status());
            match cause.fault() {
                // Maintenance is intended, but no success.
                Fault::None => assert!(matches!(status, 0 | 503), "{name} {status}"),
                Fault::Client => {
                    assert!(matches!(status, 0 | 400..=499 | 501 | 505), "{name} {status}");
                }
                // An attempt's cause that is never the exchange's gets no response.
                Fault::Server => assert!(matches!(status, 0 | 429 | 502..=504), "{name} {status}"),
                Fault::Network => assert!(matches!(status, 502 | 504), "{name} {status}"),
                // A tunnel that is cut gets no response.
                Fault::Balancer => assert!(matches!(status, 0 | 500 | 503), "{name} {status}"),
                Fault::Configuration => {
                    assert!(matches!(status, 404 | 500 | 502 | 508), "{name} {status}");
                }
            }
        }
    }

    #[test]
    fn an_exchange_is_in_one_count() {
        for (cause, class, ending) in [
            (Cause::Completed, 2, Ending::Served),
            (Cause::Completed, 0, Ending::Served),
            (Cause::Completed, 5, Ending::Failed),
            (Cause::Responded, 5, Ending::Served),
            (Cause::RateLimited, 4, Ending::Refused),
            (Cause::QueueFull, 4, Ending::Refused),
            (Cause::ClientReset, 0, Ending::ClientFault),
            (Cause::ConnectionRefused, 5, Ending::Failed),
            (Cause::DestinationNotFound, 4, Ending::Failed),
        ] {
            assert_eq!(Ending::of(cause, class), ending, "{}", cause.name());
        }
    }

    #[test]
    fn a_client_that_is_gone_gets_no_answer() {
        let gone: Vec<_> = Cause::ALL.iter().copied().filter(|c| c.is_client_gone()).collect();
        let expected = [
            Cause::HttpRequestIncomplete,
            Cause::ClientClosed,
            Cause::ClientReset,
            Cause::ClientTlsError,
            Cause::ProxyProtocolError,
            Cause::EnhanceYourCalm,
            Cause::Http2ProtocolError,
            Cause::Http2StreamsExceeded,
            Cause::ClientWriteTimeout,
        ];
        assert_eq!(gone, expected);
    }

    /// A timeout of Weir's own is a 408 towards a client and a 504 towards a server (RFC 9110
    /// sections 15.5.9 and 15.6.5).
    #[test]
    fn timeouts_are_answered_as_timeouts() {
        for &cause in Cause::ALL {
            if cause.name().ends_with("_timeout") && cause.status() > 0 {
                let status = if cause.fault() == Fault::Client { 408 } else { 504 };
                assert_eq!(cause.status(), status, "{}", cause.name());
            }
        }
    }
}
