//! The recent past of a balancer: what is saved of it in one file ([`Bundle`]), and what happened in it, in
//! sentences ([`account`]). Nothing here reads a clock, a file or a socket; `verbs::bundle` and `verbs::explain`
//! do.

mod account;
mod bundle;
mod excluded;
mod moves;
mod series;
mod shifts;
#[cfg(test)]
mod tests;
mod text;

pub(crate) use account::account;
pub(crate) use bundle::{Bundle, FORMAT, VERSION};
pub(crate) use text::text;
