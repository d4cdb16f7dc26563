//! docs/causes.md is made of the causes' own pages: `UPDATE_EXPECT=1` rewrites it.

use std::fmt::Write as _;
use std::path::Path;

use model::{Cause, Fault};

const START: &str = "\
# Causes

Every exchange ends with exactly one cause. Its name stands in the access log (`cause`), as a label \
of the metrics, in `Proxy-Status` on answers that Weir makes, and in the body of such an answer. \
`weir explain CAUSE` prints the same page in a terminal.

Names that RFC 9209 section 2.3 registers mean what they mean there. Where they do not tell enough, \
Weir has names of its own.

The status is that of the answer which Weir makes for the cause, as long as nothing of a response \
has been sent to the client. Where there is none, Weir makes no answer: the server's own response \
was passed on, a route chooses the status, or nobody is there any more to read one.

<!-- What follows is generated: UPDATE_EXPECT=1 cargo test -p weir-model -->
";

fn heading(fault: Fault) -> &'static str {
    match fault {
        Fault::None => "Ended well",
        Fault::Client => "The client's fault",
        Fault::Server => "A server's fault",
        Fault::Network => "The network's fault",
        Fault::Balancer => "The balancer's fault",
        Fault::Configuration => "The configuration's fault",
    }
}

fn status(cause: Cause) -> String {
    match cause.status() {
        0 => "–".to_owned(),
        status => status.to_string(),
    }
}

fn document() -> String {
    let mut out = START.to_owned();
    let of = |fault| Cause::ALL.iter().copied().filter(move |cause| cause.fault() == fault);
    out.push_str("\n| cause | status | fault | what happened |\n|---|---|---|---|\n");
    for &fault in Fault::ALL {
        for cause in of(fault) {
            let (name, status, fault) = (cause.name(), status(cause), fault.as_str());
            let _ =
                writeln!(out, "| [`{name}`](#{name}) | {status} | {fault} | {} |", cause.summary());
        }
    }
    for &fault in Fault::ALL {
        let _ = write!(out, "\n## {}\n", heading(fault));
        for cause in of(fault) {
            let page = cause.page();
            let _ = write!(out, "\n### `{}`\n\n", cause.name());
            if cause.status() > 0 {
                let _ = write!(out, "Answered with {}. ", cause.status());
            }
            let _ = write!(
                out,
                "{}\n\n**Why it usually happens.** {}\n\n**What to do.** {}\n",
                page.what, page.why, page.remedy
            );
        }
    }
    out
}

#[test]
fn the_document_is_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/causes.md");
    let current = document();
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(path, current).unwrap();
    } else {
        let found = std::fs::read_to_string(path).unwrap_or_default();
        assert!(found == current, "docs/causes.md is old: UPDATE_EXPECT=1 rewrites it");
    }
}
