//! A fleet of balancers (`[fleet]`): its members find each other, notice who leaves, and share their health
//! checks, their limits, states of servers and loads, and let servers leave. `prove_fleet` has 32 of them.

#[path = "fleet/checks.rs"]
mod checks;
#[path = "fleet/leaving.rs"]
mod leaving;
#[path = "fleet/loads.rs"]
mod loads;
#[path = "fleet/members.rs"]
mod members;
#[path = "fleet/orders.rs"]
mod orders;
#[path = "fleet/rates.rs"]
#[allow(dead_code, reason = "prove_fleet uses the rest")]
mod rates;
#[path = "fleet/slots.rs"]
#[allow(dead_code, reason = "prove_fleet uses the rest")]
mod slots;
#[path = "fleet/stage.rs"]
#[allow(dead_code, reason = "prove_fleet uses the rest")]
mod stage;
#[path = "fleet/tickets.rs"]
mod tickets;
