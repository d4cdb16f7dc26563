//! The top of the screen: which balancer and how much traffic, what is wrong, which views there are.

use admin_api::traffic::{Ended, Quantiles};
use ratatui_core::layout::Rect;

use super::paint::{Canvas, cut, fitted};
use crate::render::traffic::{elapsed, rate, share, time};
use crate::top::judgement::calm;
use crate::top::picture::Picture;
use crate::top::state::State;
use crate::top::tone::{Tone, width};
use crate::top::view::Place;

/// What the figures are about.
const LAST: &str = "last 10 s";

/// Room for the name; with less, there are fewer figures.
const NAME_MIN: u16 = 8;

/// The name and zone, then the traffic of all services, each figure in a fixed place.
pub(super) fn headline(state: &State, area: Rect, canvas: &mut Canvas<'_>) {
    let Some(picture) = &state.picture else {
        canvas.pieces(area, [(Tone::Strong, "weir "), (Tone::Quiet, &*state.address)]);
        return;
    };
    let mut figures = figures(picture);
    let left = |figures: &[String]| {
        let taken = figures.iter().map(|text| width(text).saturating_add(2));
        area.width.saturating_sub(taken.fold(0, u16::saturating_add))
    };
    // The median is the least telling.
    while left(&figures) < NAME_MIN && figures.len() > 1 {
        figures.remove(1);
    }
    let room = left(&figures);
    let zone = picture.own_zone().map(|zone| format!(" {zone}")).unwrap_or_default();
    let name = canvas.text(area, Tone::Strong, "weir");
    let rest = Rect { x: area.x + name, width: area.width.saturating_sub(name), ..area };
    // On a wide screen the address too: there may be several balancers on one machine.
    let address = format!("{zone}  {}", state.address);
    let shown = if width(&address).saturating_add(name) <= room { address } else { zone };
    canvas.text(rest, Tone::Plain, &fitted(&shown, room.saturating_sub(name)));
    let mut x = area.right();
    for figure in figures.iter().rev() {
        let width = width(figure).min(x - area.x);
        x -= width;
        canvas.text(Rect { x, width, ..area }, Tone::Strong, figure);
        x = x.saturating_sub(2).max(area.x);
    }
}

/// Requests, latencies and failures of all services together, in the last seconds.
fn figures(picture: &Picture) -> Vec<String> {
    let Some(traffic) = picture.traffic.known() else {
        return vec!["traffic: not known".to_owned()];
    };
    let windows: Vec<_> =
        traffic.services.iter().filter_map(|service| service.windows.first()).collect();
    let per_second: f64 = windows
        .iter()
        .map(|window| window.ended.requests as f64 / window.ended.seconds.max(1) as f64)
        .sum();
    let sum = |of: fn(&Ended) -> u64| {
        windows.iter().map(|window| of(&window.ended)).fold(0, u64::saturating_add)
    };
    let (requests, failed) = (sum(|ended| ended.requests), sum(|ended| ended.failed));
    // The quantile of all requests is at most the largest of the services'.
    let bound = |of: fn(&Quantiles) -> Option<f64>| {
        let known: Vec<f64> = windows.iter().filter_map(|window| of(&window.total)).collect();
        let largest = known.iter().copied().reduce(f64::max);
        let sign = if known.len() > 1 { "≤ " } else { "" };
        largest.map_or("–".to_owned(), |ms| format!("{sign}{}", time(Some(ms))))
    };
    let per_second = rate((per_second * 100.0).round() as u64, 100);
    vec![
        format!("{per_second:>7} req/s"),
        format!("p50 {:>10}", bound(|total| total.p50_ms)),
        format!("p99 {:>10}", bound(|total| total.p99_ms)),
        format!("failed {:>7}", share(failed, requests)),
    ]
}

/// What the sentence at the top says.
struct Sentence {
    tone: Tone,
    text: String,
    /// Since when, where there is room for it.
    lasts_s: Option<u64>,
    /// How many more there are.
    more: usize,
}

/// The worst that is wrong; else what is not judged; else that no problem was found.
pub(super) fn sentence(state: &State, area: Rect, canvas: &mut Canvas<'_>) {
    let Some(Sentence { tone, mut text, lasts_s, more }) = worst(state) else { return };
    let more = if more == 0 { String::new() } else { format!("  ({more} more: e)") };
    let room = area.width.saturating_sub(width(&more));
    let lasts = lasts_s.map(|seconds| format!(", for {}", elapsed(seconds))).unwrap_or_default();
    if width(&text).saturating_add(width(&lasts)) <= room {
        text.push_str(&lasts);
    }
    canvas.text(area, tone, &format!("{}{more}", cut(&text, room)));
}

fn worst(state: &State) -> Option<Sentence> {
    let alone = |tone, text| Some(Sentence { tone, text, lasts_s: None, more: 0 });
    if let Some(lost) = &state.lost {
        let seconds = elapsed(state.now.since(lost.since).as_secs());
        // Without a picture there is room for the reason below.
        let why = state.picture.as_ref().map(|_| format!(": {}", lost.why)).unwrap_or_default();
        return alone(Tone::Trouble, format!("! No new figures for {seconds}{why}"));
    }
    let picture = state.picture.as_ref()?;
    if !picture.status.ready {
        let text = "! The balancer takes no new work: it is starting or stopping";
        return alone(Tone::Trouble, text.to_owned());
    }
    let troubles = &state.judgement.troubles;
    let more = (troubles.len() + state.judgement.blind().count()).saturating_sub(1);
    if let Some(worst) = troubles.first() {
        let (text, lasts_s) = (format!("! {}", worst.text), worst.lasts_s);
        return Some(Sentence { tone: Tone::Trouble, text, lasts_s, more });
    }
    if let Some(gap) = state.judgement.blind().next() {
        let text = format!("? {}: {}", gap.what, gap.why);
        return Some(Sentence { tone: Tone::Strong, text, lasts_s: None, more });
    }
    alone(Tone::Quiet, calm(picture, state.judgement.gaps.len()))
}

/// The views, and how old the figures are.
pub(super) fn tabs(state: &State, area: Rect, canvas: &mut Canvas<'_>) {
    let tab = state.views.first().map(|view| &view.place);
    let mut x = area.x;
    for (at, (place, name)) in Place::TABS.iter().enumerate() {
        let is_current = tab == Some(place);
        let key = format!("{}", at + 1);
        let rest = Rect { x, width: area.right().saturating_sub(x), ..area };
        // The name says which one it is, also where reversed text is not shown.
        let name = if is_current { format!("[{name}]") } else { format!(" {name} ") };
        let tone = if is_current { Tone::Strong } else { Tone::Plain };
        x += canvas.pieces(rest, [(Tone::Quiet, &*key), (tone, &*name)]);
    }
    if state.picture.is_none() {
        return;
    }
    let age = elapsed(state.age().as_secs());
    let (tone, text) = match state.paused {
        Some(_) => (Tone::Trouble, format!(" PAUSED, {age} old")),
        None if state.is_old() => (Tone::Trouble, format!(" {age} old")),
        None if width(LAST) <= area.right().saturating_sub(x) => (Tone::Quiet, LAST.to_owned()),
        None => return,
    };
    // Old figures are worth more than the last tab's name.
    canvas.right(area, tone, &text);
}
