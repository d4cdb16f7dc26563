//! `weir doctor --watch`: repeats the diagnosis.

use std::io::{self, IsTerminal};

use balancer::signals::Signals;
use diagnose::rules::diagnose;

use super::{facts, value};
use crate::flags::{Common, Exit, FactsArgs};
use crate::render;
use crate::verbs::check::print_on;

/// Clears a terminal and begins at its top.
const CLEAR: &str = "\u{1b}[H\u{1b}[2J\u{1b}[3J";

/// A part of the time between two samples, so that three of them see a queue that stays full.
const PARTS: u32 = 3;

pub(super) fn run(args: &FactsArgs, common: Common) -> Exit {
    let mut signals = match Signals::catch() {
        Ok(signals) => signals,
        Err(error) => {
            eprintln!("weir: no signals: {error}");
            return Exit::Failed;
        }
    };
    let mut collector = match facts::begin(&args.netns, facts::Settings::OfRules) {
        Ok(collector) => collector,
        Err(error) => return error.tell(),
    };
    let on_terminal = io::stdout().is_terminal();
    if on_terminal && !args.json {
        println!("looking for {}…", model::units::show_duration(args.time));
    }
    collector.sample();
    loop {
        for part in 1..=PARTS {
            if signals.wait_at_most(args.time / PARTS).is_some() {
                return Exit::Done;
            }
            if part < PARTS {
                collector.glance();
            } else {
                collector.sample();
            }
        }
        collector.renew();
        let seen = collector.facts();
        let report = diagnose(seen);
        let text = if args.json {
            format!("{}\n", value(seen, &report))
        } else {
            let clear = if on_terminal { CLEAR } else { "" };
            format!("{clear}{}\n", render::doctor::report(seen, &report, common.colours_stdout()))
        };
        if let Err(ended) = print_on(&text) {
            return ended;
        }
    }
}
