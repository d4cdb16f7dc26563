//! How much of what goes wrong the doctor sees, and how much of what it says is true: every fault of
//! `doctor/faults.rs`, from both sides. This test writes docs/doctor-situations.md (`UPDATE_EXPECT=1`)
//! and fails if that table no longer holds.

#[path = "doctor/both.rs"]
mod both;
#[path = "doctor/faults.rs"]
mod faults;
#[path = "doctor/make.rs"]
mod make;
#[path = "doctor/stage.rs"]
#[allow(dead_code, reason = "shared with the doctor's other tests")]
mod stage;
#[path = "doctor/witness.rs"]
mod witness;

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Mutex;

use faults::{DEAD_OR_FALSE, Fault, OTHERS, Outcome, Side};

const HEAD: &str = "\
# What the doctor sees

Each situation is made with real sockets in network namespaces. `weir doctor` looks at it from the server's \
side and from the client's side at the same time. A row is one side of one situation.

- **Must find** is the rule that has to report the fault; – means that this side cannot see a fault, so \
nothing has to be reported.
- **Found** says whether it was reported. *Recall* is the share of rows with a fault in which it was.
- **Also true** lists other findings that are true in this situation, and why.
- **False** counts findings, of any severity, that are neither of these, or that the kernel's counters \
contradict. The test reads those counters itself, in the same namespace, before and after the look. \
*Precision* is the share of findings that are true.

Findings about the whole machine (processors, memory, cgroups) are left out, because other programs run on \
it.

Written by `UPDATE_EXPECT=1 cargo test -p weir-e2e --test prove_doctor_situations -- --ignored`. The test \
fails if more than one fault is missed or if anything false is said.

| situation | side | must find | found | also true | false |
|---|---|---|---|---|---|
";

/// Faults made at the same time, each in namespaces of its own.
const AT_ONCE: usize = 4;

#[test]
#[ignore = "takes a minute; run with make prove"]
fn faults_are_named_and_nothing_else_is() {
    let all: Vec<&'static Fault> = DEAD_OR_FALSE.iter().chain(OTHERS).collect();
    let left = Mutex::new(all.iter().enumerate());
    let done: Mutex<Vec<(usize, Vec<Outcome>)>> = Mutex::default();
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let next = left.lock().expect("no panic").next();
                    let Some((number, fault)) = next else { return };
                    let outcomes = faults::judge(fault, &format!("prove-doctor-{number}"));
                    done.lock().expect("no panic").push((number, outcomes));
                }
            });
        }
    });
    let mut done = done.into_inner().expect("no panic");
    done.sort_by_key(|&(number, _)| number);
    let rows: Vec<Outcome> = done.into_iter().flat_map(|(_, outcomes)| outcomes).collect();
    let faults = rows.iter().filter(|row| row.expected.finds.is_some()).count();
    let missed: Vec<&str> = rows.iter().filter(|row| !row.is_found).map(|row| row.fault).collect();
    let wrong: Vec<&String> = rows.iter().flat_map(|row| &row.wrong).collect();
    assert!(faults >= 29, "{faults} rows with a fault");
    assert!(missed.len() <= 1, "missed: {missed:#?}");
    assert!(wrong.is_empty(), "not so: {wrong:#?}");
    hold(&table(&rows, faults, missed.len()));
}

fn table(rows: &[Outcome], faults: usize, missed: usize) -> String {
    let mut out = HEAD.to_owned();
    for row in rows {
        let side = if row.expected.side == Side::Server { "server" } else { "client" };
        let must = row.expected.finds.map_or_else(|| "–".to_owned(), |rule| format!("`{rule}`"));
        let found = match (row.expected.finds, row.is_found) {
            (None, _) => "–",
            (Some(_), true) => "yes",
            (Some(_), false) => "**no**",
        };
        let also: Vec<String> =
            row.expected.also.iter().map(|(rule, why)| format!("`{rule}`: {why}")).collect();
        let _ = writeln!(
            out,
            "| {} | {side} | {must} | {found} | {} | {} |",
            row.fault,
            also.join("; "),
            row.wrong.len()
        );
    }
    let right: usize = rows.iter().map(|row| row.right).sum();
    let wrong: usize = rows.iter().map(|row| row.wrong.len()).sum();
    let percent = |part: usize, all: usize| 100.0 * part as f64 / all.max(1) as f64;
    let _ = writeln!(
        out,
        "\n{} rows, {faults} with a fault, {missed} missed, {wrong} false statements. Recall {:.0} %, \
         precision {:.0} %.",
        rows.len(),
        percent(faults - missed, faults),
        percent(right, right + wrong),
    );
    out
}

fn hold(table: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/doctor-situations.md");
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(path, table).expect("the table");
    } else {
        let kept = std::fs::read_to_string(path).unwrap_or_default();
        assert!(kept == table, "docs/doctor-situations.md is not what was found now:\n{table}");
    }
}
