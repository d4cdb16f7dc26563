//! States of servers that an operator sets for the whole fleet (`weir drain --fleet`): a table of orders that all
//! members copy from each other.
//!
//! Pure: time is an argument, messages are values. [`Orders`] is one member. A shell passes it the messages of the
//! others, sends those that it returns, and sets the states of its servers as the table says.
//!
//! **All members end with the same table**, whatever messages are lost, late or repeated:
//!
//! - Each order has a [`Version`], which is greater than those of all orders that its maker knew. Of two orders about
//!   one server, the one with the greater version is kept. So the order in which messages arrive does not matter. A
//!   maker that knew less makes its order again if the one that would replace it was made before.
//! - A new order is sent to all members at once, and again to those that have not acknowledged it
//!   ([`exchange`]).
//! - Each second a member compares its table with that of one other, and both send what the other lacks. So a member
//!   that starts later or was cut off learns the orders.
//!
//! An order that makes a server ready again is dropped after [`READY_KEPT`]; the others stay until they are replaced. A
//! member that was cut off for longer can bring back an order that was replaced meanwhile.

#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::wildcard_enum_match_arm))]

mod exchange;
mod order;
mod table;
pub mod wire;

pub use exchange::{Confirmation, Malformed, Orders, Peer, Received, WAIT_MAX};
pub use order::{FleetOrder, Order, SERVICE_BYTES_MAX, ServerKey, Version, is_server_of_fleet};
pub use table::{COUNTER_MAX, Full, ORDERS_MAX, READY_KEPT};
