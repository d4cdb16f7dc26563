#!/usr/bin/env python3
"""What `make measure` promised and measured, as a table and as JSON.

    scripts/promises.py [--race RACE.json] [--json OUT.json]

Reads the lines that the tests (`e2e::Promises`) and scripts (`record` below) appended to the file
named by WEIR_PROMISES, and the ratios of a race from what `race/run --json` wrote. A promise is one
figure with its bound. Exit code 1 when a promise does not hold, or when there is none.
"""

import argparse
import json
import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# CPU time per request beside HAProxy's, in `make measure`.
RACE_AT_MOST = 0.95


def promise(source, what, measured, at_most=None, at_least=None, unit=""):
    """One promise, with either bound."""
    relation, bound = ("at most", at_most) if at_most is not None else ("at least", at_least)
    holds = measured <= bound if at_most is not None else measured >= bound
    return {"source": source, "what": what, "measured": measured, "relation": relation, "bound": bound,
            "unit": unit, "holds": holds}


def record(source, what, measured, **bound):
    """Appends a promise for the table, if a table is being made. Returns whether it holds."""
    one = promise(source, what, measured, **bound)
    if path := os.environ.get("WEIR_PROMISES"):
        with open(path, "a") as lines:
            lines.write(json.dumps(one) + "\n")
    return one["holds"]


def of_the_race(path):
    """The ratios of a race, one a work."""
    sys.path.insert(0, str(ROOT / "race"))
    import report  # noqa: PLC0415, it stands beside race/run
    judged = report.ceilings(json.loads(Path(path).read_text()), RACE_AT_MOST)
    return [promise("race", what, measured, at_most=at_most) for what, measured, at_most in judged]


def figure(value, unit):
    text = f"{value:,.0f}" if abs(value) >= 1000 or value == int(value) else f"{value:.3g}"
    return f"{text} {unit}".strip()


def row(one):
    if "left_out" in one:
        return one["source"], one["what"], "–", f"left out: {one['left_out']}", "–"
    bound = f"{one['relation']} {figure(one['bound'], one['unit'])}"
    return one["source"], one["what"], bound, figure(one["measured"], one["unit"]), "yes" if one["holds"] else "NO"


def main():
    parse = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parse.add_argument("--race", help="what race/run --json wrote")
    parse.add_argument("--json", help="write all promises there")
    wanted = parse.parse_args()
    lines = Path(os.environ.get("WEIR_PROMISES", ROOT / "target/measure.lines"))
    promises = [json.loads(line) for line in lines.read_text().splitlines()] if lines.exists() else []
    if wanted.race and Path(wanted.race).exists():
        promises += of_the_race(wanted.race)
    if wanted.json:
        Path(wanted.json).write_text(json.dumps(promises, indent=1, ensure_ascii=False) + "\n")
    rows = [("from", "promise", "bound", "measured", "held?"), *map(row, promises)]
    widths = [max(len(cells[column]) for cells in rows) for column in range(5)]
    for cells in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(cells, widths)).rstrip())
    broken = [one for one in promises if not one.get("holds", True)]
    print(f"{len(promises)} promises, {len(broken)} not held")
    return 1 if broken or not promises else 0


if __name__ == "__main__":
    sys.exit(main())
