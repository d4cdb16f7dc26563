//! The challenges of an order: answered, and if they fail, why (RFC 8555 section 7.5).

use std::collections::HashMap;
use std::time::Duration;

use instant_acme::{
    AuthorizationStatus, AuthorizedIdentifier, Challenge, ChallengeHandle, ChallengeStatus,
    ChallengeType, Order,
};
use model::AcmeChallenge;
use tls::{Answer, Pending};

use crate::failure::{Failed, Kind, problem_text};
use crate::text::foreign;

use super::Job;

/// How long other processes of the fleet have to answer the challenges, too, before the authority validates: it may ask
/// any of them. A validation that fails because one of them does not answer ends the order; waiting longer for one that
/// is slow would keep all certificates from being renewed.
const OTHERS_ANSWER_MAX: Duration = Duration::from_secs(3);
const OTHERS_ANSWER_LOOK: Duration = Duration::from_millis(20);

/// Maximum number of names whose failures are described.
const NAMES_TOLD_MAX: usize = 8;

/// The answers to an order's challenges, by token. They outlive the attempts of an order: an authority
/// that was told that a challenge is ready may validate at any time, also after an attempt has failed,
/// and a challenge that is not answered then ends the order.
#[derive(Default)]
pub(crate) struct Answers(HashMap<String, Pending>);

impl Answers {
    /// Ends the answers, with their order.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// Replaces the tokens in a text that is to be logged; authorities quote them.
    pub(super) fn redact(&self, text: &mut String) {
        for token in self.0.keys() {
            *text = text.replace(token.as_str(), "TOKEN");
        }
    }
}

/// Answers the challenge of every name that is not validated yet, here and in the whole fleet, and tells the authority
/// so.
pub(super) async fn begin(
    job: &Job<'_>,
    order: &mut Order,
    answers: &mut Answers,
) -> Result<(), Failed> {
    let kind = match job.settings.challenge {
        AcmeChallenge::Http01 => ChallengeType::Http01,
        AcmeChallenge::TlsAlpn01 => ChallengeType::TlsAlpn01,
    };
    let failed = |error| Failed::of("cannot fetch a name's authorization", &error);
    let mut authorizations = order.authorizations();
    while let Some(authorization) = authorizations.next().await {
        let mut authorization = authorization.map_err(failed)?;
        match authorization.status {
            AuthorizationStatus::Valid => continue,
            AuthorizationStatus::Pending => {}
            // The order has failed; polling it says so, and why.
            _ => return Ok(()),
        }
        let name = authorization.identifier().to_string();
        let offered: Vec<String> =
            authorization.challenges.iter().map(|c| word(&c.r#type)).collect();
        let Some(challenge) = authorization.challenge(kind.clone()) else {
            return Err(not_offered(job.settings.challenge, &name, &offered));
        };
        // Again, since the order of another certificate may have answered for the name in between.
        let pending = answer(job, name, &challenge)?;
        answers.0.insert(challenge.token.clone(), pending);
    }
    others_answer(job).await;
    // The loop above has fetched them, so that this sends no request.
    let mut authorizations = order.authorizations();
    while let Some(authorization) = authorizations.next().await {
        let mut authorization = authorization.map_err(failed)?;
        let is_pending = authorization.status == AuthorizationStatus::Pending;
        let Some(mut challenge) = authorization.challenge(kind.clone()).filter(|_| is_pending)
        else {
            continue;
        };
        // After a restart the authority may be validating already.
        if challenge.status == ChallengeStatus::Pending {
            let told = challenge.set_ready().await;
            told.map_err(|error| Failed::of("the authority did not begin to validate", &error))?;
        }
    }
    Ok(())
}

fn answer(job: &Job<'_>, name: String, challenge: &ChallengeHandle<'_>) -> Result<Pending, Failed> {
    let authorization = challenge.key_authorization();
    let answer = match job.settings.challenge {
        AcmeChallenge::Http01 => Answer::Http {
            token: challenge.token.clone(),
            key_authorization: authorization.as_str().to_owned(),
        },
        AcmeChallenge::TlsAlpn01 => {
            Answer::Tls { name, digest: authorization.digest().as_ref().to_vec() }
        }
    };
    let added = job.challenges.answer_own(answer);
    added.map_err(|mistake| Failed::new(Kind::Local, mistake.message))
}

/// Waits until the other processes of the fleet answer the challenges.
async fn others_answer(job: &Job<'_>) {
    let number = job.challenges.own_number();
    let all = async {
        while !job.shared.all_answer(number) {
            tokio::time::sleep(OTHERS_ANSWER_LOOK).await;
        }
    };
    if tokio::time::timeout(OTHERS_ANSWER_MAX, all).await.is_err() {
        tracing::warn!(
            names = job.names.join(", "),
            "not all members of the fleet were ready to answer the ACME challenges within 3 s; validation starts all \
             the same, and fails if the authority connects to one that is not. Look for failed fetches in their logs"
        );
    }
}

/// Returns the names that could not be validated, with the authority's reasons; as many as can be
/// fetched.
pub(super) async fn reasons(order: &mut Order) -> Vec<(String, String)> {
    let mut reasons = Vec::new();
    let mut authorizations = order.authorizations();
    while let Some(Ok(mut authorization)) = authorizations.next().await {
        if reasons.len() == NAMES_TOLD_MAX || authorization.refresh().await.is_err() {
            break;
        }
        let name = |identifier: AuthorizedIdentifier<'_>| foreign(&identifier.to_string());
        let error = |challenge: &Challenge| challenge.error.as_ref().map(problem_text);
        if let Some(why) = authorization.challenges.iter().find_map(error) {
            reasons.push((name(authorization.identifier()), why));
        }
    }
    reasons
}

fn not_offered(challenge: AcmeChallenge, name: &str, offered: &[String]) -> Failed {
    let (wanted, name) = (challenge.as_str(), foreign(name));
    let offered = foreign(&offered.join(", "));
    let what = format!("the authority does not offer {wanted} for {name}, only {offered}");
    Failed::new(Kind::Refused, what)
}

fn word(kind: &ChallengeType) -> String {
    match kind {
        ChallengeType::Http01 => "http-01".to_owned(),
        ChallengeType::TlsAlpn01 => "tls-alpn-01".to_owned(),
        ChallengeType::Dns01 => "dns-01".to_owned(),
        ChallengeType::Unknown(word) => word.clone(),
        other => format!("{other:?}"),
    }
}
