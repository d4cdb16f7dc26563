//! `weir top` apart from its terminal: what is known of the balancer ([`Picture`]), what is on the screen
//! ([`State`]), what an event makes of it ([`State::update`]), and how it is drawn ([`draw`]). Nothing here
//! reads a clock, a key or a socket; `verbs::top` does.

mod action;
mod asking;
mod condition;
mod draw;
mod endings;
mod judgement;
mod lists;
mod navigate;
mod pages;
mod past;
mod picture;
mod state;
mod table;
mod tone;
mod troubles;
mod update;
mod view;

pub(crate) use action::Change;
pub(crate) use draw::{Palette, draw};
pub(crate) use picture::{Needs, Part, Picture, Proposal};
pub(crate) use state::State;
pub(crate) use update::{Effect, Event, Key};
