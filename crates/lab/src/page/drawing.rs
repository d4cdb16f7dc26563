//! A drawing of an incident's hosts and links.

use std::collections::BTreeMap;
use std::fmt::Write;

use wire::html::escaped;

use crate::incident::{Incident, Link};
use crate::link::Way;

/// Measures of the drawing, in pixels.
const BOX: (usize, usize) = (190, 52);
const COLUMN: usize = 310;
const ROW: usize = 92;
const MARGIN: usize = 12;

/// The drawing as SVG: columns by how many links away a host is from where the load comes from.
pub(super) fn drawing(incident: &Incident) -> String {
    let places = places(incident);
    let columns = places.values().map(|place| place.0).max().unwrap_or(0) + 1;
    let rows = places.values().map(|place| place.1).max().unwrap_or(0) + 1;
    let width = columns * COLUMN - (COLUMN - BOX.0) + 2 * MARGIN;
    let height = rows * ROW - (ROW - BOX.1) + 2 * MARGIN;
    let mut out = format!(
        "<figure><svg role=img aria-label=\"hosts and links\" width={width} height={height} viewBox=\"0 0 {width} {height}\">"
    );
    let corner = |name: &str| {
        let (column, row) = places.get(name).copied().unwrap_or_default();
        (MARGIN + column * COLUMN, MARGIN + row * ROW)
    };
    for link in &incident.links {
        // Writing into a String does not fail.
        let _ = wire(&mut out, incident, link, &corner);
    }
    for (name, host) in &incident.hosts {
        let (x, y) = corner(name);
        let count = host.count.map_or_else(String::new, |count| format!(" × {count}"));
        let _ = write!(
            out,
            "<rect class=box x={x} y={y} width={} height={} rx=6 /><text x={tx} y={y1} font-weight=600>{}{count}</text><text class=soft x={tx} y={y2}>{}</text>",
            BOX.0,
            BOX.1,
            escaped(name),
            escaped(&host.what),
            tx = x + 10,
            y1 = y + 21,
            y2 = y + 40,
        );
    }
    out.push_str("</svg></figure>");
    out
}

fn wire(
    out: &mut String,
    incident: &Incident,
    link: &Link,
    corner: &dyn Fn(&str) -> (usize, usize),
) -> std::fmt::Result {
    // A member of a group stands where its group does.
    let place = |name: &str| {
        let group = name.trim_end_matches(|c: char| c.is_ascii_digit());
        corner(if incident.hosts.contains_key(name) { name } else { group })
    };
    let [(x1, y1), (x2, y2)] = link.between.each_ref().map(|name| place(name.as_ref()));
    let ((x1, y1), (x2, y2)) = if x1 <= x2 { ((x1, y1), (x2, y2)) } else { ((x2, y2), (x1, y1)) };
    let (from, to) = ((x1 + BOX.0, y1 + BOX.1 / 2), (x2, y2 + BOX.1 / 2));
    let from = if x1 == x2 { (x1 + BOX.0 / 2, y1 + BOX.1) } else { from };
    let to = if x1 == x2 { (x2 + BOX.0 / 2, y2) } else { to };
    let class = if link.plain { "wire" } else { "wire lossy" };
    write!(out, "<path class=\"{class}\" d=\"M{} {} L{} {}\" />", from.0, from.1, to.0, to.1)?;
    let lines = label(link);
    let (x, y) = (usize::midpoint(from.0, to.0), usize::midpoint(from.1, to.1));
    for (line, shift) in lines.iter().zip([-6_i64, 14, 28]) {
        let y = i64::try_from(y).unwrap_or(0) + shift;
        write!(
            out,
            "<text class=\"soft halo\" text-anchor=middle x={x} y={y}>{}</text>",
            escaped(line)
        )?;
    }
    Ok(())
}

/// What a link does, in a line or two.
fn label(link: &Link) -> Vec<String> {
    match (&link.both, &link.there, &link.back) {
        (Some(both), ..) => vec![way(both)],
        (None, None, None) => Vec::new(),
        (None, there, back) => {
            let told = |arrow: &str, one: &Option<Way>| {
                one.as_ref().map(|one| format!("{arrow} {}", way(one)))
            };
            [told("→", there), told("←", back)].into_iter().flatten().collect()
        }
    }
}

fn way(way: &Way) -> String {
    let mut told = Vec::new();
    if way.cut {
        told.push("cut".to_owned());
    }
    if way.delay.as_nanos() > 0 {
        told.push(format!("{} ms", way.delay.0.as_secs_f64() * 1e3));
    }
    if way.loss.0 > 0.0 {
        told.push(format!("loses {} %", way.loss.0 * 100.0));
    }
    if way.bursts.is_some() {
        told.push("loses in bursts".to_owned());
    }
    if let Some(reorder) = way.reorder {
        told.push(format!("reorders {} %", reorder.share.0 * 100.0));
    }
    if let Some(rate) = way.rate {
        told.push(format!("{} Mb/s", rate.0 / 1e6));
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
    fn every_host_has_a_place_of_its_own() {
        for entry in crate::incident::entries() {
            let incident = Incident::read(entry.name, entry.text).unwrap();
            let places = places(&incident);
            let mut taken: Vec<_> = places.values().collect();
            taken.sort();
            taken.dedup();
            assert_eq!((places.len(), taken.len()), (incident.hosts.len(), incident.hosts.len()));
            assert!(drawing(&incident).ends_with("</svg></figure>"));
        }
    }
}
