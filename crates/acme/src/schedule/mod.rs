//! Decides when which certificate is ordered, and when the authority is asked about renewals. Pure:
//! the time and random numbers are arguments. Times are seconds since 1970-01-01 UTC.

#[cfg(test)]
mod tests;

use model::AcmeRenewal;

use crate::backoff::{Backoff, Growth};

/// Waits while the authority cannot be reached or does not work. They are for all certificates
/// together, so the number of attempts does not depend on the number of certificates.
const OUTAGE: Growth = Growth { first_s: 30, wait_max_s: 3600 };

/// Waits after an authority refused an order. Let's Encrypt accepts five failed validations of a
/// name in an hour (<https://letsencrypt.org/docs/rate-limits/>); these are four.
const REFUSAL: Growth = Growth { first_s: 5 * 60, wait_max_s: 4 * 3600 };

/// How long to leave another process that orders certificates alone.
const OTHER_PROCESS_S: i64 = 5;

/// Bounds on the time between questions about renewals (RFC 9773 section 4.3.2: a minute, a day).
const ASK_AFTER_MIN_S: i64 = 60;
const ASK_AFTER_MAX_S: i64 = 24 * 3600;

/// When to ask again after a failure (RFC 9773 section 4.3.3).
const ASK_AFTER_FAILURE_S: i64 = 6 * 3600;

/// A certificate is renewed this long after it was stored, at the earliest, or after a tenth of its
/// lifetime if that is less. Bounds the orders when the authority always asks for an immediate
/// renewal, or when this machine's clock is wrong.
const RENEWALS_APART_MIN_S: i64 = 3600;

/// Without regard to the authority's wish, a certificate is renewed after this part of its
/// lifetime: nine tenths.
const RENEWED_AT_LATEST: f64 = 0.9;

/// A certificate that another process should have renewed is overdue after this part of its lifetime, and up to the second
/// more by process: the first one's renewal is that of all.
const OVERDUE: f64 = 0.93;
const OVERDUE_SPREAD: f64 = 0.05;

/// The part of the lifetime over which renewals without ARI are spread: a thirtieth.
const SPREAD: f64 = 1.0 / 30.0;

/// What to do now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Order this certificate.
    Order(usize),
    /// Ask the authority when to renew this certificate.
    AskRenewalInfo(usize),
    /// Nothing until this time.
    Wait {
        /// When to look again.
        until_s: i64,
    },
}

/// What is wrong when an attempt fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// The authority as a whole: it cannot be reached or does not work.
    Authority,
    /// This certificate's order.
    Certificate,
}

/// The certificate in use.
#[derive(Clone, Copy, Debug)]
#[allow(clippy::struct_field_names, reason = "each name ends in its unit")]
pub(crate) struct Lifetime {
    pub(crate) not_before_s: i64,
    pub(crate) not_after_s: i64,
    /// When it was stored here.
    pub(crate) stored_s: i64,
}

/// When the authority suggests to renew (RFC 9773 section 4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) start_s: i64,
    pub(crate) end_s: i64,
}

/// All certificates of one authority.
#[derive(Debug)]
pub(crate) struct Schedule {
    renewal: AcmeRenewal,
    certificates: Vec<Entry>,
    outage: Backoff,
}

#[derive(Debug, Default)]
struct Entry {
    current: Option<Current>,
    refusals: Backoff,
    /// Another process has the lock until then, at least.
    held_until_s: i64,
}

#[derive(Debug)]
struct Current {
    lifetime: Lifetime,
    /// From 0 to 1: where in the window it is renewed.
    draw: f64,
    window: Option<Window>,
    /// When the authority may be asked next; `None`: it cannot be asked about this certificate.
    ask_at_s: Option<i64>,
}

impl Schedule {
    /// Returns a schedule for this many certificates, none of which has been issued.
    pub(crate) fn new(renewal: AcmeRenewal, certificates: usize) -> Schedule {
        let certificates = (0..certificates).map(|_| Entry::default()).collect();
        Schedule { renewal, certificates, outage: Backoff::default() }
    }

    /// Returns what is due at `now_s`.
    pub(crate) fn next(&self, now_s: i64) -> Next {
        let outage_s = self.outage.until_s(now_s);
        let mut first = (i64::MAX, Next::Wait { until_s: i64::MAX });
        for (index, entry) in self.certificates.iter().enumerate() {
            let asked_s = entry.ask_at_s(now_s).map(|at_s| (at_s, Next::AskRenewalInfo(index)));
            let ordered_s = (entry.order_at_s(self.renewal, now_s), Next::Order(index));
            for (at_s, step) in asked_s.into_iter().chain([ordered_s]) {
                let at_s = at_s.max(outage_s);
                if at_s < first.0 {
                    first = (at_s, step);
                }
            }
        }
        if first.0 <= now_s { first.1 } else { Next::Wait { until_s: first.0 } }
    }

    /// Notes that a certificate is in use: it was stored before, or has been issued. `draw`: a
    /// random number from 0 to 1. `identifiable`: the authority can be asked about it.
    pub(crate) fn use_certificate(
        &mut self,
        index: usize,
        lifetime: Lifetime,
        identifiable: bool,
        draw: f64,
    ) {
        let ask_at_s = (identifiable && self.renewal.ari).then_some(i64::MIN);
        if let Some(entry) = self.certificates.get_mut(index) {
            let current = Some(Current { lifetime, draw, window: None, ask_at_s });
            *entry = Entry { current, ..Entry::default() };
        }
    }

    /// Notes that the authority has been reached and works.
    pub(crate) fn authority_works(&mut self) {
        self.outage.succeeded();
    }

    /// Notes a failed order; returns when it is tried again.
    pub(crate) fn failed(
        &mut self,
        index: usize,
        scope: Scope,
        now_s: i64,
        retry_after_s: Option<i64>,
        draw: f64,
    ) -> i64 {
        if scope == Scope::Authority {
            return self.outage.failed(now_s, OUTAGE, retry_after_s, draw);
        }
        self.outage.succeeded();
        self.certificates
            .get_mut(index)
            .map_or(now_s, |entry| entry.refusals.failed(now_s, REFUSAL, retry_after_s, draw))
    }

    /// Notes that another process orders certificates.
    pub(crate) fn held_by_another(&mut self, index: usize, now_s: i64) {
        if let Some(entry) = self.certificates.get_mut(index) {
            entry.held_until_s = now_s.saturating_add(OTHER_PROCESS_S);
        }
    }

    /// Forgets which certificates other processes order, since this may have changed.
    pub(crate) fn release_held(&mut self) {
        for entry in &mut self.certificates {
            entry.held_until_s = 0;
        }
    }

    /// Notes the authority's suggestion, and after how many seconds it wants to be asked again.
    /// An empty window is not valid (RFC 9773 section 4.2) and counts as a failure.
    pub(crate) fn told(&mut self, index: usize, window: Window, ask_after_s: i64, now_s: i64) {
        if window.end_s <= window.start_s {
            return self.not_told(index, now_s);
        }
        if let Some(current) = self.current_mut(index) {
            current.window = Some(window);
            let ask_after_s = ask_after_s.clamp(ASK_AFTER_MIN_S, ASK_AFTER_MAX_S);
            current.ask_at_s = Some(now_s.saturating_add(ask_after_s));
        }
    }

    /// Notes that the authority did not say when to renew. An earlier suggestion stays in effect.
    pub(crate) fn not_told(&mut self, index: usize, now_s: i64) {
        if let Some(current) = self.current_mut(index) {
            current.ask_at_s = Some(now_s.saturating_add(ASK_AFTER_FAILURE_S));
        }
    }

    /// Returns when a certificate is renewed, as far as is known; `None`: it has not been issued.
    pub(crate) fn renew_at_s(&self, index: usize) -> Option<i64> {
        let current = self.certificates.get(index)?.current.as_ref()?;
        Some(current.renew_at_s(self.renewal))
    }

    /// Returns whether a certificate is so long overdue that this process orders it even if another one should.
    pub(crate) fn is_overdue(&self, index: usize, now_s: i64) -> bool {
        let current = self.certificates.get(index).and_then(|entry| entry.current.as_ref());
        current.is_some_and(|current| now_s >= current.overdue_at_s())
    }

    /// Returns whether the authority has said when to renew a certificate.
    pub(crate) fn is_by_authority(&self, index: usize) -> bool {
        let entry = self.certificates.get(index);
        entry.and_then(|entry| entry.current.as_ref()).is_some_and(|c| c.window.is_some())
    }

    /// Returns the number of attempts that have failed since the last success.
    pub(crate) fn failures(&self, index: usize) -> u32 {
        let refusals = self.certificates.get(index).map_or(0, |entry| entry.refusals.failures());
        refusals.saturating_add(self.outage.failures())
    }

    fn current_mut(&mut self, index: usize) -> Option<&mut Current> {
        self.certificates.get_mut(index)?.current.as_mut()
    }
}

impl Entry {
    fn order_at_s(&self, renewal: AcmeRenewal, now_s: i64) -> i64 {
        let due_s = self.current.as_ref().map_or(i64::MIN, |current| current.renew_at_s(renewal));
        // A clock that is set back must not leave the lock's wait in force.
        let is_held = self.held_until_s <= now_s.saturating_add(OTHER_PROCESS_S);
        let held_s = if is_held { self.held_until_s } else { now_s };
        due_s.max(self.refusals.until_s(now_s)).max(held_s)
    }

    fn ask_at_s(&self, now_s: i64) -> Option<i64> {
        let at_s = self.current.as_ref()?.ask_at_s?;
        Some(if at_s > now_s.saturating_add(2 * ASK_AFTER_MAX_S) { now_s } else { at_s })
    }
}

impl Current {
    fn overdue_at_s(&self) -> i64 {
        let Lifetime { not_before_s, not_after_s, .. } = self.lifetime;
        let lifetime_s = not_after_s.saturating_sub(not_before_s).max(0);
        let share = OVERDUE + OVERDUE_SPREAD * self.draw;
        not_before_s.saturating_add((lifetime_s as f64 * share) as i64)
    }

    fn renew_at_s(&self, renewal: AcmeRenewal) -> i64 {
        let Lifetime { not_before_s, not_after_s, stored_s } = self.lifetime;
        let lifetime_s = not_after_s.saturating_sub(not_before_s).max(0);
        let part = |share: f64| (lifetime_s as f64 * share) as i64;
        let due_s = if let Some(Window { start_s, end_s }) = self.window {
            let length_s = end_s.saturating_sub(start_s);
            let wish_s = start_s.saturating_add((length_s as f64 * self.draw) as i64);
            wish_s.min(not_before_s.saturating_add(part(RENEWED_AT_LATEST)))
        } else {
            let share = f64::from(renewal.after_permille) / 1000.0 - self.draw * SPREAD;
            not_before_s.saturating_add(part(share))
        };
        due_s.max(stored_s.saturating_add(RENEWALS_APART_MIN_S.min(lifetime_s / 10)))
    }
}
