//! Asks the API server which kinds of the Gateway API and of Weir's own group it has, repeatedly: CRDs can be installed and removed at any time.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;

use http::Request;
use http::header::ACCEPT;
use os::clock::now;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::sleep;

use crate::api::{self, Api, REQUEST_MAX};
use crate::backoff::Backoff;
use crate::failure::{Cause, Failure};
use crate::kinds::{self, CRD_GROUPS, Discovered, Kind, Versions};

/// How often it is asked.
const EVERY: Duration = Duration::from_secs(20);
/// How often it is asked until the kinds at the start are known.
const AT_START_EVERY: Duration = Duration::from_secs(1);

/// The CRD whose annotation names the channel of all.
const CRD: &str =
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/httproutes.gateway.networking.k8s.io";
/// The annotation of the CRDs' authors.
const CHANNEL: &str = "gateway.networking.k8s.io/channel";

/// What the API server has of the CRDs.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    pub(crate) versions: Versions,
    /// Whether the CRDs are of the experimental channel, which have more fields; `None`: that could not be found out.
    pub(crate) is_experimental: Option<bool>,
}

/// Reports the kinds until the manager ends.
pub(crate) async fn run(api: Rc<Api>, answers: mpsc::Sender<Result<Found, Failure>>) {
    let mut backoff = Backoff::default();
    // The manager decides; this is only for how often to ask, for which the start matters alone.
    let mut discovered = Discovered::default();
    loop {
        let asked = api.news().retries;
        let found = ask(&api).await;
        let failure = found.as_ref().err().cloned();
        if let Ok(found) = &found {
            backoff.succeeded();
            discovered.answer(found.versions.clone(), now(), |_| false);
        }
        if answers.send(found).await.is_err() {
            return;
        }
        match failure {
            Some(failure) => {
                let wait = backoff.failed(failure.retry_after, fastrand::f64());
                if api.wait(wait, &failure, asked).await {
                    backoff.restart();
                }
            }
            None => sleep(if discovered.is_settled { EVERY } else { AT_START_EVERY }).await,
        }
    }
}

async fn ask(api: &Api) -> Result<Found, Failure> {
    let mut versions = Versions::new();
    for group in CRD_GROUPS {
        versions.extend(of_group(api, group).await?);
    }
    let is_experimental = if versions.is_empty() { None } else { is_experimental(api).await };
    Ok(Found { versions, is_experimental })
}

/// Returns whether the CRDs are of the experimental channel. Only the list of features depends on it: whatever prevents
/// the answer, such as a missing permission, prevents nothing else.
async fn is_experimental(api: &Api) -> Option<bool> {
    const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
    let request = Request::get(CRD).header(ACCEPT, METADATA).body(Vec::new());
    let crd = api.json(api::built(request).ok()?, REQUEST_MAX).await.ok()?;
    Some(crd["metadata"]["annotations"][CHANNEL] == "experimental")
}

/// Returns the kinds of a group.
async fn of_group(api: &Api, name: &str) -> Result<Versions, Failure> {
    let group = match api.json(api::get(&format!("/apis/{name}"))?, REQUEST_MAX).await {
        Ok(group) => group,
        // No CRD of the group is installed.
        Err(failure) if failure.cause == Cause::NotFound => return Ok(Versions::new()),
        Err(failure) => return Err(failure),
    };
    let served: BTreeSet<&str> = list(&group["versions"], "version").collect();
    let understood: BTreeSet<&str> = Kind::ALL
        .into_iter()
        .filter(|kind| kind.group() == name)
        .flat_map(Kind::versions)
        .copied()
        .collect();
    let mut found = BTreeMap::new();
    for version in served.intersection(&understood) {
        let path = format!("/apis/{name}/{version}");
        let resources = match api.json(api::get(&path)?, REQUEST_MAX).await {
            Ok(resources) => resources,
            Err(failure) if failure.cause == Cause::NotFound => continue,
            Err(failure) => return Err(failure),
        };
        let names = list(&resources["resources"], "name").map(ToOwned::to_owned);
        found.insert((*version).to_owned(), names.collect::<BTreeSet<String>>());
    }
    Ok(kinds::versions(name, &found))
}

/// Returns one field of all elements of a list.
fn list<'a>(value: &'a Value, name: &'a str) -> impl Iterator<Item = &'a str> {
    let elements = value.as_array().map_or(&[][..], Vec::as_slice);
    elements.iter().filter_map(move |element| element[name].as_str())
}
