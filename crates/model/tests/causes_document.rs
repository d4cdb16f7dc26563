//! Checks that docs/causes.md matches the causes' pages: `UPDATE_EXPECT=1` rewrites it.

use std::fmt::Write as _;
use std::path::Path;

use model::{Cause, Fault};

const START: &str = "\
# Causes

Every exchange ends with exactly one cause. Its name is in the access log (`cause`), a label of the \
metrics, in `Proxy-Status` on responses that Weir generates, and in the body of such a response. \
`weir explain CAUSE` prints the same page in a terminal.

Names that RFC 9209 section 2.3 registers have the meaning defined there. Where they are too general, \
Weir has its own names.

The status is that of the response which Weir generates for the cause, as long as no part of a response \
has been sent to the client. Where there is none, Weir sends no response of its own: the server's \
response was forwarded, a route chooses the status, or the client is gone.

<!-- What follows is generated: UPDATE_EXPECT=1 cargo test -p weir-model -->
";

fn heading(fault: Fault) -> &'static str {
    match fault {
        Fault::None => "No one's fault",
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
