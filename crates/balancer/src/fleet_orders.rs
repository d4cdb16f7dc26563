//! States of servers for the whole fleet: from the admin API to the control thread, and from one process to the next.

use std::sync::Arc;
use std::time::Duration;

use admin_api::fleet::{FleetConfirmation, UnconfirmedMember};
use admin_api::handover;
use control::{Confirmed, HandedOrder, NotOrdered, Orderer};
use model::{Administrative, Moment};
use orders::{FleetOrder, Order, ServerKey, Version};

/// Sets states of servers at all members, and waits for their confirmations.
///
/// # Errors
/// Why they are not set.
pub(crate) fn set(
    orderer: &Orderer,
    wanted: FleetOrder,
) -> Result<FleetConfirmation, admin::NotOrdered> {
    match orderer.order(wanted) {
        Ok(confirmed) => Ok(confirmation(confirmed)),
        Err(NotOrdered::Upgrading) => Err(admin::NotOrdered::Upgrading),
        Err(error @ NotOrdered::Unavailable) => {
            Err(admin::NotOrdered::Unavailable(error.to_string()))
        }
        Err(NotOrdered::NotMember) => Err(admin::NotOrdered::NotMember),
        Err(NotOrdered::Replaced) => Err(admin::NotOrdered::Replaced),
        Err(error @ (NotOrdered::Full | NotOrdered::Invalid | NotOrdered::Busy)) => {
            Err(admin::NotOrdered::Refused(error.to_string()))
        }
    }
}

fn confirmation(confirmed: Confirmed) -> FleetConfirmation {
    let Confirmed { members, unconfirmed } = confirmed;
    FleetConfirmation {
        members,
        confirmed: members.saturating_sub(unconfirmed.len()),
        unconfirmed: unconfirmed
            .into_iter()
            .map(|(name, address)| UnconfirmedMember {
                name: name.to_string(),
                address: address.to_string(),
            })
            .collect(),
    }
}

/// Returns the orders as they are handed over.
pub(crate) fn to_handover(orders: Vec<HandedOrder>, now: Moment) -> Vec<handover::FleetOrder> {
    let rows =
        orders.into_iter().map(|HandedOrder { key, order, is_applied }| handover::FleetOrder {
            service: key.service.to_string(),
            address: key.address,
            state: order.state.into(),
            counter: order.version.counter,
            start: format!("{:032x}", u128::from_be_bytes(order.version.start)),
            member: order.member.to_string(),
            age_s: order.age(now).as_secs(),
            is_applied,
        });
    rows.collect()
}

/// Returns the orders that were handed over. Those that are not understood are left out.
pub(crate) fn from_handover(rows: Vec<handover::FleetOrder>, now: Moment) -> Vec<HandedOrder> {
    rows.into_iter().filter_map(|row| handed(row, now)).collect()
}

fn handed(row: handover::FleetOrder, now: Moment) -> Option<HandedOrder> {
    let state: Administrative = row.state.known()?;
    let start = u128::from_str_radix(&row.start, 16).ok()?.to_be_bytes();
    Some(HandedOrder {
        key: ServerKey { service: row.service.into(), address: row.address },
        order: Order {
            state,
            version: Version { counter: row.counter, start },
            member: Arc::from(row.member),
            age: (Duration::from_secs(row.age_s), now),
        },
        is_applied: row.is_applied,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_read_as_they_were_handed_over() {
        let now = Moment::from_millis(10_000);
        let order = HandedOrder {
            key: ServerKey { service: "web".into(), address: "10.0.0.1:80".parse().unwrap() },
            order: Order {
                state: Administrative::Drain,
                version: Version { counter: orders::COUNTER_MAX, start: [1; 16] },
                member: "b1".into(),
                age: (Duration::from_secs(3), now),
            },
            is_applied: true,
        };
        let mut rows = to_handover(vec![order.clone()], now);
        assert_eq!(from_handover(rows.clone(), now), [order]);
        rows[0].start = "no number".to_owned();
        assert!(from_handover(rows, now).is_empty());
    }
}
