//! Health checks that the balancers of a fleet share: each distinct probe is run by a few members of
//! a zone, whose results go to all members of the zone.
//!
//! [`exchange`] has all probes of one member. Of these, [`identity`] names each, [`assignment`] says who
//! runs it, [`belief`] decides when a member must probe for itself, and [`tally`] what the results mean
//! for one consumer. [`wire`] is the form in which results travel. The transport, its encryption and the
//! list of members are the caller's.
//!
//! What stays local: `rise`, `fall` and `timeout` of each consumer, and the outcomes of real
//! requests ([`crate::outlier`]). Shared results only ever change [`model::Health`]; an ejection is
//! a separate state of the server. A change to [`model::Health::Up`] also ends an ejection if this
//! balancer's own probe decided it ([`tally::Decided::is_own`]); a result from elsewhere does not.

pub mod assignment;
pub mod belief;
mod doubt;
pub mod exchange;
pub mod identity;
pub mod result;
pub mod tally;
pub mod wire;

#[cfg(test)]
mod tests;
