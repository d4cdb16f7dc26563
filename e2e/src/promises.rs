//! What `make measure` promises: each figure is recorded with its bound, whether it holds or not, and a
//! test fails at its end if one of its promises does not hold.
//!
//! A promise is printed, and written as a line of JSON to the file that `WEIR_PROMISES` names.
//! scripts/promises.py, which the scripts of `make measure` use for theirs, makes a table of these.

use std::io::Write;

use serde_json::{Value, json};

/// The promises of one test. [`Promises::hold`] ends it.
#[must_use = "`hold` fails the test when a promise does not hold"]
pub struct Promises {
    source: &'static str,
    broken: Vec<String>,
}

impl Promises {
    /// None yet; `source` names the test's file in the table.
    pub fn of(source: &'static str) -> Promises {
        Promises { source, broken: Vec::new() }
    }

    /// `what` was promised to be `bound` or less; both in `unit` (empty for a ratio).
    pub fn at_most(&mut self, what: &str, measured: f64, bound: f64, unit: &str) {
        self.record(what, measured, ("at most", bound), unit, measured <= bound);
    }

    /// `what` was promised to be `bound` or more.
    pub fn at_least(&mut self, what: &str, measured: f64, bound: f64, unit: &str) {
        self.record(what, measured, ("at least", bound), unit, measured >= bound);
    }

    /// `what` could not be measured here; it counts neither as held nor as broken.
    pub fn left_out(&self, what: &str, why: &str) {
        println!("{what}: left out: {why}");
        let source = self.source;
        write(&json!({ "source": source, "what": what, "left_out": why }));
    }

    /// Fails the test if a promise did not hold.
    pub fn hold(self) {
        assert!(self.broken.is_empty(), "promises that do not hold:\n{}", self.broken.join("\n"));
    }

    fn record(&mut self, what: &str, measured: f64, bound: (&str, f64), unit: &str, holds: bool) {
        let (relation, bound) = bound;
        let line = format!("{what}: {measured:.3} {unit} ({relation} {bound:.3} {unit})");
        println!("{line}");
        write(&json!({
            "source": self.source,
            "what": what,
            "measured": measured,
            "relation": relation,
            "bound": bound,
            "unit": unit,
            "holds": holds,
        }));
        if !holds {
            self.broken.push(line);
        }
    }
}

fn write(promise: &Value) {
    let Some(path) = std::env::var_os("WEIR_PROMISES") else { return };
    let file = std::fs::File::options().create(true).append(true).open(path);
    // One write, so that lines of two processes do not mix.
    let written = file.and_then(|mut file| file.write_all(format!("{promise}\n").as_bytes()));
    written.expect("the file that WEIR_PROMISES names can be written");
}
