//! Mistakes in incident files, and their messages.

use crate::incident::Incident;

const GOOD: &str = r#"title = "t"
story = "s"
here = "h"
[hosts.client]
[hosts.node]
count = 3
[[links]]
name = "up"
between = ["node", "client"]
both = { delay = "1ms" }
[[programs]]
name = "p"
host = "node"
run = "sleep 1"
[[steps]]
name = "load"
host = "client"
run = "true"
[[variants]]
name = "before"
title = "b"
[[expect]]
what = "w"
figure = "before.load.totals.errors"
at_most = 0
[[findings]]
variant = "before"
step = "load"
must = ["loss"]
"#;

#[test]
fn groups_are_counted_out() {
    let incident = Incident::read("good", GOOD).unwrap();
    assert_eq!(incident.all_hosts(), ["client", "node1", "node2", "node3"]);
    let links: Vec<String> = incident.all_links().into_iter().map(|(name, ..)| name).collect();
    assert_eq!(links, ["up-node1", "up-node2", "up-node3"]);
    assert_eq!(incident.members("node2"), ["node2"]);
    assert!(incident.members("node4").is_empty() && incident.members("node0").is_empty());
}

#[test]
fn a_name_in_a_figure_stands_for_its_part() {
    let text = GOOD.replace("[[expect]]", "[figures]\npart = \"before.a + 1\"\n[[expect]]");
    let text = text.replace("\"before.load.totals.errors\"", "\"10 / {{ part }}\"");
    let incident = Incident::read("good", &text).unwrap();
    let figure = incident.figure(&incident.expect[0]).unwrap();
    let value = figure.value(&serde_json::json!({ "before": { "a": 4 } })).unwrap();
    assert!((value - 2.0).abs() < 1e-9, "{value}");
}

#[test]
fn mistakes_are_told_with_their_line() {
    for (from, to, expected) in [
        (
            "between = [\"node\"",
            "between = [\"nod\"",
            "line 9: no host `nod`; there are client, node",
        ),
        ("delay = \"1ms\"", "delay = \"1 msec\"", "line 10"),
        ("delay = ", "dealy = ", "unknown field `dealy`"),
        ("host = \"node\"", "host = \"nodes\"", "line 13: no host `nodes`"),
        ("run = \"true\"", "sleep = \"1s\"\ncut = \"client\"", "one of `run`"),
        ("run = \"true\"", "stop = \"q\"", "no program `q`"),
        ("run = \"true\"", "wait = \"load\"", "no step `load` is in the background"),
        ("figure = \"before.", "figure = \"after.", "line 24: `after` is no variant"),
        (
            "\"before.load.totals.errors\"",
            "\"{{ part }} / 2\"",
            "line 24: undefined value, in `{{ part }} / 2`",
        ),
        (
            "[[expect]]",
            "[figures]\na = \"{{ b }}\"\nb = \"before.x\"\n[[expect]]",
            "`a` of [figures] names another; only figures name parts",
        ),
        ("at_most = 0", "", "line 24: an expectation wants"),
        ("variant = \"before\"", "variant = \"then\"", "no variant `then`; there are before"),
        ("step = \"load\"", "step = \"laod\"", "no step named `laod`"),
        ("step = \"load\"", "balancer = \"p\"", "line 28: no `weir serve` runs there as `p`"),
        ("step = \"load\"", "", "line 27: findings are those of a `step` or of a `balancer`"),
        ("[hosts.client]", "[hosts.Client]", "no name of a host"),
        ("count = 3", "count = 250", "1 to 200 hosts"),
        ("run = \"sleep 1\"", "run = \"sleep {{ tiem }}\"", "line 14: `tiem` is not defined"),
        ("run = \"true\"", "run = \"a {{ host[1 }}\"", "line 18: "),
        ("[[variants]]", "[[steps]]\nsleep = \"{{ x }}\"\n[[variants]]", "line 20: `x` is not"),
        (
            "[[programs]]",
            "[files]\nf = '''\na\n\n{{ nod }}\n'''\n[[programs]]",
            "line 15: `nod` is not defined",
        ),
        ("[hosts.client]", "[set]\nhost = \"1\"\n[hosts.client]", "variable `host`"),
        ("[hosts.client]", "[set]\na = \"{{ b }}\"\n[hosts.client]", "variable `a`: `b` is not"),
    ] {
        assert!(GOOD.contains(from), "{from}");
        let error = Incident::read("bad.toml", &GOOD.replacen(from, to, 1)).unwrap_err();
        assert!(error.starts_with("bad.toml"), "{error}");
        assert!(error.contains(expected), "{from} -> {to}: {error}");
    }
}
