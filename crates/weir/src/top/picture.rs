//! What is known of a balancer at one moment: answers of its admin API that were fetched together.

use admin_api::causes::Causes;
use admin_api::checks::Plan;
use admin_api::findings::{Findings, SeenFinding};
use admin_api::history::{History, Series};
use admin_api::maintenance::Maintenance;
use admin_api::requests::Requests;
use admin_api::services::{Server, Service};
use admin_api::status::Status;
use admin_api::traffic::{ServerTraffic, ServerWindow, ServiceTraffic, ServiceWindow, Traffic};
use diagnose::finding::Finding;
use model::Administrative;
use serde::Deserialize;

/// One answer of several: a balancer may lack one of them, or fail to answer in time.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(from = "Option<T>")]
pub(crate) enum Part<T> {
    /// No view needs it at present.
    #[default]
    NotFetched,
    Known(T),
    /// The reason.
    Unknown(String),
}

impl<T> From<Option<T>> for Part<T> {
    fn from(known: Option<T>) -> Part<T> {
        known.map_or(Part::NotFetched, Part::Known)
    }
}

impl<T> Part<T> {
    /// Returns the answer, if there is one.
    pub(crate) fn known(&self) -> Option<&T> {
        match self {
            Part::Known(known) => Some(known),
            Part::NotFetched | Part::Unknown(_) => None,
        }
    }

    /// Returns the reason why there is no answer.
    pub(crate) fn missing(&self) -> Option<&str> {
        match self {
            Part::NotFetched => Some("not fetched yet"),
            Part::Known(_) => None,
            Part::Unknown(why) => Some(why),
        }
    }
}

/// The answers.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct Picture {
    pub(crate) status: Status,
    pub(crate) services: Vec<Service>,
    pub(crate) traffic: Part<Traffic>,
    /// Each service's requests of the last minute, second by second.
    pub(crate) past: Part<History>,
    pub(crate) findings: Part<Findings>,
    pub(crate) causes: Part<Causes>,
    /// How requests ended at each listener in the last minute, second by second.
    pub(crate) endings: Part<History>,
    pub(crate) requests: Part<Requests>,
    pub(crate) checks: Part<Plan>,
    /// The last minute of one server.
    pub(crate) server_past: Part<History>,
    /// How the requests of that server's service ended in the last minute.
    pub(crate) service_endings: Part<History>,
    /// A proposed change, and the service as it would be afterwards.
    #[serde(skip)]
    pub(crate) preview: Option<(Proposal, Part<Service>)>,
}

/// A state that a server may be set to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Proposal {
    pub(crate) service: String,
    pub(crate) address: String,
    pub(crate) state: Administrative,
}

/// What to fetch besides what is always shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Needs {
    pub(crate) causes: bool,
    pub(crate) requests: bool,
    pub(crate) checks: bool,
    /// The service and address of the server whose page is shown.
    pub(crate) server: Option<(String, String)>,
    /// The change of the question that is shown.
    pub(crate) proposal: Option<Proposal>,
}

impl Picture {
    /// Returns a service by its name.
    pub(crate) fn service(&self, name: &str) -> Option<&Service> {
        self.services.iter().find(|service| service.name == name)
    }

    /// Returns a service and one of its servers.
    pub(crate) fn server(&self, service: &str, address: &str) -> Option<(&Service, &Server)> {
        let service = self.service(service)?;
        let server = service.servers.iter().find(|server| server.address == address)?;
        Some((service, server))
    }

    /// Returns a service as it would be if the server had this state, if that is known.
    pub(crate) fn service_after(
        &self,
        service: &str,
        address: &str,
        state: Administrative,
    ) -> Option<&Service> {
        let (proposal, after) = self.preview.as_ref()?;
        let is_it =
            (&*proposal.service, &*proposal.address, proposal.state) == (service, address, state);
        after.known().filter(|_| is_it)
    }

    /// Returns the traffic of a service and of its servers.
    pub(crate) fn traffic_of(&self, service: &str) -> Option<&ServiceTraffic> {
        self.traffic.known()?.services.iter().find(|traffic| traffic.name == service)
    }

    /// Returns the traffic of a service in the shortest window.
    pub(crate) fn recent(&self, service: &str) -> Option<&ServiceWindow> {
        self.traffic_of(service)?.windows.first()
    }

    /// Returns the traffic of a server in the shortest window.
    pub(crate) fn recent_server(&self, service: &str, address: &str) -> Option<&ServerWindow> {
        self.server_traffic(service, address)?.windows.first()
    }

    /// Returns the traffic of a server in every window.
    pub(crate) fn server_traffic(&self, service: &str, address: &str) -> Option<&ServerTraffic> {
        self.traffic_of(service)?.servers.iter().find(|server| server.address == address)
    }

    /// Returns the rows of a service.
    pub(crate) fn service_past(&self, service: &str) -> Option<(&History, &Series)> {
        let past = self.past.known()?;
        let is_its = |series: &&Series| series.service.as_deref() == Some(service);
        Some((past, past.series.iter().find(is_its)?))
    }

    /// Returns the rows of a server, if they were fetched.
    pub(crate) fn past_of(&self, service: &str, address: &str) -> Option<(&History, &Series)> {
        let past = self.server_past.known()?;
        let is_its = |series: &&Series| {
            series.service.as_deref() == Some(service) && series.server.as_deref() == Some(address)
        };
        Some((past, past.series.iter().find(is_its)?))
    }

    /// Returns the doctor's findings, present ones first.
    pub(crate) fn findings(&self) -> impl Iterator<Item = &SeenFinding> {
        self.findings.known().into_iter().flat_map(|findings| &findings.findings)
    }

    /// Returns the present findings that an operator should act on, the worst first.
    pub(crate) fn weighty(&self) -> impl Iterator<Item = &SeenFinding> {
        self.findings().filter(|seen| seen.is_present && seen.finding.has_weight())
    }

    /// Returns the worst finding about a server of a service.
    pub(crate) fn finding_about(&self, service: &str, address: &str) -> Option<&Finding> {
        self.findings_about(service, address).next()
    }

    /// Returns all findings about a server of a service, the worst first.
    pub(crate) fn findings_about(
        &self,
        service: &str,
        address: &str,
    ) -> impl Iterator<Item = &Finding> {
        let about = move |finding: &&Finding| {
            finding.service.as_deref() == Some(service)
                && finding.servers.iter().any(|server| server == address)
        };
        self.weighty().map(|seen| &seen.finding).filter(about)
    }

    /// Returns the zone of the balancer.
    pub(crate) fn own_zone(&self) -> Option<&str> {
        self.status.zone.as_deref()
    }

    /// Returns the maintenance of a service, if an operator or the configuration file switched it on.
    pub(crate) fn maintenance(&self, service: &str) -> Option<&Maintenance> {
        let is_its =
            |row: &&Maintenance| row.on && row.kind.as_str() == "service" && row.name == service;
        self.status.maintenance.iter().find(is_its)
    }
}
