//! A drawing of an incident's hosts and links, as SVG.

use std::collections::BTreeMap;
use std::fmt::Write;

use page::escaped;

use crate::incident::{Incident, Link};
use crate::link::Way;
use crate::run::record::figure;

/// Sizes in the drawing, in pixels.
const BOX_WIDTH_MIN: usize = 150;
const BOX_HEIGHT: usize = 52;
/// Between two columns, at least.
const GAP_MIN: usize = 110;
const ROW: usize = 92;
const MARGIN: usize = 12;
/// From a column to where links turn to other rows.
const TURN: usize = 18;
/// The approximate width of a letter.
const LETTER: usize = 7;

/// The layout.
struct Plan {
    places: BTreeMap<String, (usize, usize)>,
    box_width: usize,
    column: usize,
}

impl Plan {
    /// Boxes are as wide as their texts, gaps as the labels of the links.
    fn of(incident: &Incident) -> Plan {
        let widest = |texts: &mut dyn Iterator<Item = usize>| texts.max().unwrap_or(0) * LETTER;
        let said = widest(&mut incident.hosts.values().map(|host| host.what.chars().count()));
        let box_width = BOX_WIDTH_MIN.max(said + 20);
        let labels = incident.links.iter().flat_map(|link| label(link, false));
        let gap = widest(&mut labels.map(|line| line.chars().count())) + 2 * TURN;
        Plan { places: places(incident), box_width, column: box_width + GAP_MIN.max(gap) }
    }

    /// The upper left corner of a host; members of a group have their group's.
    fn corner(&self, name: &str) -> (usize, usize) {
        let group = name.trim_end_matches(|c: char| c.is_ascii_digit());
        let place = self.places.get(name).or_else(|| self.places.get(group));
        let (column, row) = place.copied().unwrap_or_default();
        (MARGIN + column * self.column, MARGIN + row * ROW)
    }

    fn size(&self) -> (usize, usize) {
        let columns = self.places.values().map(|place| place.0).max().unwrap_or(0);
        let rows = self.places.values().map(|place| place.1).max().unwrap_or(0);
        (columns * self.column + self.box_width + 2 * MARGIN, rows * ROW + BOX_HEIGHT + 2 * MARGIN)
    }
}

/// The drawing. A host's column is its distance, in links, from the host that makes the load.
pub(super) fn drawing(incident: &Incident) -> String {
    let plan = Plan::of(incident);
    let (width, height) = plan.size();
    let mut out = format!(
        "<div class=\"card plan\" tabindex=0 role=region aria-label=\"hosts and links\"><svg role=img aria-label=\"hosts and links\" width={width} height={height} viewBox=\"0 0 {width} {height}\">"
    );
    for link in &incident.links {
        // Writing into a String does not fail.
        let _ = line(&mut out, &plan, link);
    }
    for (name, host) in &incident.hosts {
        let (x, y) = plan.corner(name);
        let count = host.count.map_or_else(String::new, |count| format!(" × {count}"));
        let _ = write!(
            out,
            "<rect class=box x={x} y={y} width={} height={BOX_HEIGHT} rx=6 /><text x={tx} y={y1} font-weight=600>{}{count}</text><text class=soft x={tx} y={y2}>{}</text>",
            plan.box_width,
            escaped(name),
            escaped(&host.what),
            tx = x + 10,
            y1 = y + 21,
            y2 = y + 40,
        );
    }
    out.push_str("</svg></div>");
    out
}

/// A link, along the row of its lower host, with its label above and below it.
fn line(out: &mut String, plan: &Plan, link: &Link) -> std::fmt::Result {
    let [one, other] = link.between.each_ref().map(|name| plan.corner(name.as_ref()));
    let (left, right) = if one.0 <= other.0 { (one, other) } else { (other, one) };
    let class = if link.plain { "wire" } else { "wire lossy" };
    let (path, anchor, x, y) = if left.0 == right.0 {
        let x = left.0 + plan.box_width / 2;
        let (y1, y2) = (left.1.min(right.1) + BOX_HEIGHT, left.1.max(right.1));
        (format!("M{x} {y1} V{y2}"), "start", x + 8, usize::midpoint(y1, y2))
    } else {
        let (x1, x2) = (left.0 + plan.box_width, right.0);
        let (y1, y2) = (left.1 + BOX_HEIGHT / 2, right.1 + BOX_HEIGHT / 2);
        let turn = if y2 >= y1 { x1 + TURN } else { x2 - TURN };
        let path = format!("M{x1} {y1} H{turn} V{y2} H{x2}");
        (path, "middle", usize::midpoint(x1, x2), y1.max(y2))
    };
    write!(out, "<path class=\"{class}\" d=\"{path}\" />")?;
    for (text, y) in label(link, one.0 > other.0).iter().zip([y - 6, y + 14]) {
        let text = escaped(text);
        write!(out, "<text class=\"soft halo\" text-anchor={anchor} x={x} y={y}>{text}</text>")?;
    }
    Ok(())
}

/// What a link does, in one or two lines; `is_turned`: its first host is on the right.
fn label(link: &Link, is_turned: bool) -> Vec<String> {
    let (there, back) = if is_turned { ("←", "→") } else { ("→", "←") };
    let told =
        |arrow: &str, one: &Option<Way>| one.as_ref().map(|one| format!("{arrow} {}", way(one)));
    match &link.both {
        Some(both) => vec![way(both)],
        None => [told(there, &link.there), told(back, &link.back)].into_iter().flatten().collect(),
    }
}

fn way(way: &Way) -> String {
    let mut told = Vec::new();
    if way.cut {
        told.push("cut".to_owned());
    }
    if way.delay.as_nanos() > 0 {
        told.push(format!("{} ms", figure(way.delay.0.as_secs_f64() * 1e3)));
    }
    if way.loss.0 > 0.0 {
        told.push(format!("loses {} %", figure(way.loss.0 * 100.0)));
    }
    if way.bursts.is_some() {
        told.push("loses in bursts".to_owned());
    }
    if let Some(reorder) = way.reorder {
        told.push(format!("reorders {} %", figure(reorder.share.0 * 100.0)));
    }
    if let Some(rate) = way.rate {
        told.push(format!("{} Mb/s", figure(rate.0 / 1e6)));
    }
    if way.throttle.is_some() {
        told.push("throttles SYNs".to_owned());
    }
    told.join(", ")
}

/// Column and row of each host, groups as one.
fn places(incident: &Incident) -> BTreeMap<String, (usize, usize)> {
    let group = |name: &str| {
        let bare = name.trim_end_matches(|c: char| c.is_ascii_digit());
        if incident.hosts.contains_key(name) { name.to_owned() } else { bare.to_owned() }
    };
    let edges: Vec<[String; 2]> = incident
        .links
        .iter()
        .map(|link| link.between.each_ref().map(|name| group(name.as_ref())))
        .collect();
    let loads = incident.steps.iter().find_map(|step| step.host.as_ref());
    let first = loads.map(|host| group(host.as_ref()));
    let mut waiting: Vec<String> =
        first.into_iter().chain(incident.hosts.keys().cloned()).collect();
    waiting.reverse();
    let mut places: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    let mut rows: Vec<usize> = Vec::new();
    while let Some(begin) = waiting.pop() {
        if places.contains_key(&begin) {
            continue;
        }
        let mut layer = vec![begin];
        let mut column = 0;
        while !layer.is_empty() {
            rows.resize(rows.len().max(column + 1), 0);
            for name in &layer {
                places.insert(name.clone(), (column, rows[column]));
                rows[column] += 1;
            }
            let mut next: Vec<String> = Vec::new();
            for [one, other] in &edges {
                for (at, to) in [(one, other), (other, one)] {
                    if layer.contains(at) && !places.contains_key(to) && !next.contains(to) {
                        next.push(to.clone());
                    }
                }
            }
            (layer, column) = (next, column + 1);
        }
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_have_no_needless_digits() {
        let read = |text| way(&toml::from_str::<Way>(text).unwrap());
        let told = read("delay = \"2.2ms\"\nloss = \"0.07%\"\nrate = \"1.1Mbit\"");
        assert_eq!(told, "2.2 ms, loses 0.07 %, 1.1 Mb/s");
    }

    #[test]
    fn no_two_hosts_share_a_place() {
        for entry in crate::incident::entries() {
            let incident = Incident::read(entry.name, entry.text).unwrap();
            let places = places(&incident);
            let mut taken: Vec<_> = places.values().collect();
            taken.sort();
            taken.dedup();
            assert_eq!((places.len(), taken.len()), (incident.hosts.len(), incident.hosts.len()));
            assert!(drawing(&incident).ends_with("</svg></div>"));
        }
    }
}
