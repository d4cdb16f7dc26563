"""What a race says: tables for the terminal, the targets, and a picture for the README."""

import statistics
from xml.sax.saxutils import escape

REFERENCE = "haproxy"


def median(rows, key):
    return statistics.median(row[key] for row in rows)


def ratios(results, name, key="cpu_us", reference=REFERENCE):
    """One contestant's figure beside another's of the same round, for every round."""
    return [mine[key] / theirs[key] for mine, theirs in zip(results[name], results[reference])]


def spread(values):
    """The quartiles of some values; the ends, when there are too few."""
    if len(values) < 4:
        return min(values), max(values)
    quarters = statistics.quantiles(values, n=4)
    return quarters[0], quarters[2]


def work_table(name, title, results):
    lines = [f"{name}: {title}",
             f"  {'':<10}{'CPU/request':>13}{'user':>8}{'system':>8}{'of HAProxy':>12}{'quartiles':>14}{'requests/s':>12}"]
    for who, rows in results.items():
        mine = ratios(results, who)
        low, high = spread(mine)
        lines.append(f"  {who:<10}{median(rows, 'cpu_us'):>10.2f} µs{median(rows, 'user_us'):>8.2f}"
                     f"{median(rows, 'system_us'):>8.2f}{statistics.median(mine):>12.3f}"
                     f"{f'{low:.2f}–{high:.2f}':>14}{median(rows, 'rate'):>12,.0f}")
    return "\n".join(lines)


def latency_table(rows):
    lines = [f"  {'at 70 %':<10}{'intended/s':>12}{'reached/s':>12}{'p50':>10}{'p99':>10}{'p99.9':>10}"]
    for who, each in rows.items():
        lines.append(f"  {who:<10}{median(each, 'intended_rate'):>12,.0f}{median(each, 'rate'):>12,.0f}" + "".join(
            f"{median(each, key) / 1000:>7.2f} ms" for key in ("p50_us", "p99_us", "p999_us")))
    return "\n".join(lines)


def standing_table(report):
    lines = []
    if memory := report.get("memory"):
        lines.append(f"memory\n  {'':<10}{'at rest':>11}{'idle connection':>18}{'idle, HTTP/2':>15}{'peak':>11}")
        for who, row in memory.items():
            lines.append(f"  {who:<10}{row['at_rest_kb'] / 1024:>8.1f} MB{row['idle_connection_bytes']:>16,.0f} B"
                         f"{row.get('idle_http2_connection_bytes', 0):>13,.0f} B"
                         f"{row['peak_kb'] / 1024:>8.1f} MB")
    for services, rows in report.get("start", {}).items():
        lines.append(f"start and reload with {int(services):,} services\n  {'':<10}{'start':>10}{'reload':>10}{'at rest':>11}")
        for who, row in rows.items():
            lines.append(f"  {who:<10}{row['start_s'] * 1000:>7.0f} ms{row['reload_s'] * 1000:>7.0f} ms"
                         f"{row['rest_kb'] / 1024:>8.1f} MB")
    if workers := report.get("workers"):
        lines.append(f"two workers: {workers['ratio']:.3f} of one worker's CPU per request; "
                     f"64 connections are spread {', '.join('+'.join(map(str, row)) for row in workers['connections'])}")
    return "\n".join(lines)


def ceilings(report, at_most):
    """The same ceiling for every work: (name, measured, at most)."""
    return [(f"CPU per request, {work}, beside {REFERENCE}",
             statistics.median(ratios(held["rounds"], "weir")), at_most)
            for work, held in report["works"].items() if {"weir", REFERENCE} <= set(held["rounds"])]


def targets(report):
    """Each target that this report can judge: (name, measured, at most)."""
    works, found = report["works"], []

    def beside(work, at_most, reference=REFERENCE):
        results = works.get(work, {}).get("rounds", {})
        if "weir" in results and reference in results:
            found.append((f"CPU per request, {work}, beside {reference}",
                          statistics.median(ratios(results, "weir", reference=reference)), at_most))

    for work in ("small-32", "small-256", "small-2000"):
        beside(work, 0.88)
        beside(work, 1.12, "floor")
    beside("50k", 0.85)
    beside("1m", 0.85)
    beside("per-request", 0.95)
    beside("h2", 0.80)
    beside("h2-1m", 0.85)
    beside("h2-both", 0.75)
    beside("grpc", 0.75)
    beside("gzip", 1.0, "nginx")
    sizes = works.get("gzip", {}).get("compressed_bytes", {})
    if {"weir", "nginx"} <= set(sizes):
        found.append(("bytes sent, gzip, beside nginx", sizes["weir"] / sizes["nginx"], 1.02))
    for work, held in works.items():
        latency = held.get("latency", {})
        if "weir" in latency and REFERENCE in latency:
            found.append((f"p99 at 70 %, {work}, beside haproxy",
                          statistics.median(ratios(latency, "weir", "p99_us")), 1.0))
    memory = report.get("memory", {})
    if "weir" in memory and REFERENCE in memory:
        for title, key, at_most in (("an idle connection", "idle_connection_bytes", 1.0),
                                    ("an idle HTTP/2 connection", "idle_http2_connection_bytes", 0.5)):
            if key in memory["weir"]:
                found.append((f"memory of {title} beside haproxy",
                              memory["weir"][key] / memory[REFERENCE][key], at_most))
    if workers := report.get("workers"):
        found.append(("two workers' CPU per request beside one's", workers["ratio"], 1.10))
        uneven = max((max(row) / (sum(row) / len(row)) for row in workers["connections"] if sum(row)), default=0)
        found.append(("the fuller of two workers beside their mean", uneven, 1.10))
    return found


def targets_table(judged):
    lines = ["targets"]
    for name, measured, at_most in judged:
        lines.append(f"  {'met   ' if measured <= at_most else 'MISSED'}  {measured:6.3f}  at most {at_most:.2f}  {name}")
    return "\n".join(lines)


# Told apart with colour blindness too, on light ground and on dark.
PICTURE = {"weir": "#d2691e", "haproxy": "#2f78c4", "nginx": "#58b4e0", "envoy": "#c77dab", "floor": "#868e96"}


def picture(report):
    """CPU time per request beside HAProxy's, a row for each work: SVG that needs nothing else and
    reads on light and on dark ground."""
    works = [(name, held) for name, held in report["works"].items() if REFERENCE in held.get("rounds", {})]
    row_px, left, width, top = 30, 330, 470, 96
    height = top + row_px * len(works) + 60
    most = 2.5

    def x(ratio):
        return left + min(ratio, most) / most * width

    ink = "font-family='ui-sans-serif, system-ui, Helvetica, Arial, sans-serif'"
    out = [f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {left + width + 90} {height}' {ink} font-size='13'>",
           "<style>text{fill:#212529}.faint{fill:#868e96}.rule{stroke:#ced4da}.ground{fill:#fff}"
           "@media(prefers-color-scheme:dark){text{fill:#e9ecef}.faint{fill:#909296}.rule{stroke:#495057}.ground{fill:#16191d}}</style>",
           "<rect class='ground' width='100%' height='100%' rx='6'/>",
           "<text x='20' y='30' font-size='17' font-weight='600'>CPU time per request, beside HAProxy's in the same run</text>",
           "<text x='20' y='50' class='faint'>Left is less. Median over rounds; the line spans the quartiles.</text>"]
    at = 20
    for who, colour in PICTURE.items():
        if any(who in held["rounds"] for _, held in works):
            label = f"{who} {report['versions'].get(who, '')}" if who != "floor" else "floor: epoll, copies only"
            out.append(f"<circle cx='{at + 5}' cy='70' r='5' fill='{colour}'/><text x='{at + 15}' y='74.5'>{escape(label)}</text>")
            at += 30 + 7.2 * len(label)
    for tick in (0, 0.5, 1, 1.5, 2):
        out.append(f"<line class='rule' x1='{x(tick)}' x2='{x(tick)}' y1='{top - 8}' y2='{height - 46}' "
                   f"stroke-width='{2 if tick == 1 else 1}'/>"
                   f"<text x='{x(tick)}' y='{height - 30}' text-anchor='middle' class='faint'>{tick:g}</text>")
    for row, (name, held) in enumerate(works):
        y = top + row_px * row + row_px / 2
        out.append(f"<text x='20' y='{y + 4}'>{escape(held['title'][:46])}</text>")
        beyond = 0
        for who in reversed(PICTURE):
            if who not in held["rounds"]:
                continue
            mine = ratios(held["rounds"], who)
            middle, (low, high) = statistics.median(mine), spread(mine)
            colour = PICTURE[who]
            if who != REFERENCE:
                out.append(f"<line x1='{x(low):.1f}' x2='{x(high):.1f}' y1='{y}' y2='{y}' stroke='{colour}' stroke-width='3' opacity='.45'/>")
            if middle > most:
                # Several stand beside each other.
                end = x(most) + 40 * beyond
                beyond += 1
                out.append(f"<path d='M{end - 4} {y - 6}l8 6l-8 6z' fill='{colour}'/>"
                           f"<text x='{end + 8}' y='{y + 4}' font-size='11'>{middle:.1f}</text>")
            else:
                out.append(f"<circle cx='{x(middle):.1f}' cy='{y}' r='{6 if who == 'weir' else 4.5}' fill='{colour}'>"
                           f"<title>{escape(who)} {middle:.2f}</title></circle>")
    machine = report["machine"]
    out.append(f"<text x='20' y='{height - 10}' class='faint' font-size='11'>"
               f"{escape(report['date'])}, Linux {escape(machine['kernel'])}, {escape(machine['cpu'])}, one core for each in turn</text></svg>")
    return "\n".join(out) + "\n"
