//! The report as JSON. Counts have tshark's names.

use serde_json::{Map, Value, json};
use trace::Trace;
use trace::summary::{Counts, Direction, Ending, Story};

use crate::events::{Event, Events, tcp_flags};
use crate::facts::{CONNECTIONS_MAX, findings};
use crate::reading::{Reading, Selection, worst};

/// The whole report; the connections that were asked for, and with `--stream` its events.
pub fn report(reading: &Reading, selected: Selection, events: &Events) -> Value {
    let trace = &reading.trace;
    let intervals = trace.intervals();
    let totals = trace.totals();
    let length_s = intervals.length_ns() as f64 / 1e9;
    let rows: Vec<Value> = intervals
        .rows()
        .iter()
        .map(|row| {
            let mut value = counts(&row.counts);
            value.insert("start_s".to_owned(), json!(row.number as f64 * length_s));
            Value::Object(value)
        })
        .collect();
    let shown: Vec<Value> = match selected.stream {
        Some(number) => trace.story(number).map(|one| story(number, one)).into_iter().collect(),
        None => worst(trace, selected.connections).map(|(n, one)| story(n, one)).collect(),
    };
    let mut report = json!({
        "file": (!reading.is_live).then_some(&reading.name),
        "interface": reading.is_live.then_some(&reading.name),
        "frames": trace.frames(),
        "duration_s": intervals.duration_ns() as f64 / 1e9,
        "first_frame_unix_s": intervals.first_ns().map(|ns| ns as f64 / 1e9),
        "totals": counts(&totals),
        "interval_s": length_s,
        "intervals": rows,
        "connections_in_all": trace.stories().len(),
        "connections": shown,
        "connections_in_one_direction": trace.stories().filter(|one| one.is_one_sided()).count(),
        "dropped_while_capturing": reading.dropped,
        "segments_not_analysed": trace.refused(),
        "fragments_dropped": trace.decoder().fragments_dropped(),
        "packets_too_deep": trace.decoder().too_deep(),
        "connections_judged": trace.stories().len().min(CONNECTIONS_MAX),
        "undecoded": undecoded(trace),
        "unknown_link_type": trace.decoder().unknown_link(),
        "stopped": reading.broken.as_ref().map(|broken| {
            json!({ "offset_bytes": broken.offset, "why": broken.what })
        }),
    });
    report["diagnosis"] = serde_json::to_value(findings(reading)).unwrap_or_default();
    if selected.stream.is_some() {
        report["events"] = events.all().iter().map(event).collect();
        report["events_left_out"] = json!(events.left_out());
    }
    report
}

/// Packets without a readable TCP segment, by what they hold.
fn undecoded(trace: &Trace) -> Vec<Value> {
    let kinds = trace.undecoded().kinds().into_iter();
    kinds
        .map(|(kind, packets, bytes)| {
            json!({ "what": kind.to_string(), "packets": packets, "bytes": bytes })
        })
        .collect()
}

fn counts(counts: &Counts) -> Map<String, Value> {
    let mut value = Map::new();
    let mut put = |name: &str, count: u64| value.insert(name.to_owned(), json!(count));
    put("frames", counts.frames);
    put("bytes", counts.bytes);
    put("segments", counts.segments);
    put("payload_bytes", counts.payload_bytes);
    put("syn_retransmissions", counts.syn_retransmissions);
    put("syn_ack_retransmissions", counts.syn_ack_retransmissions);
    for (name, count) in counts.named() {
        put(name, count);
    }
    value
}

fn story(number: u32, story: &Story) -> Value {
    let sender = |end: usize| story.ends.0[end].to_string();
    let directions = [0, 1].map(|end| direction(&sender(end), story, end));
    let (ending, by) = match story.ending() {
        Ending::Open => ("open", None),
        Ending::HalfClosed(by) => ("half_closed", Some(by)),
        Ending::Closed => ("closed", None),
        Ending::Reset(by) => ("reset", Some(by)),
    };
    json!({
        "stream": number,
        "client": story.client.map(sender),
        "first_frame": story.first_frame,
        "start_unix_s": story.first_ns as f64 / 1e9,
        "duration_s": (story.last_ns - story.first_ns) as f64 / 1e9,
        "idle_max_s": story.idle_max_ns as f64 / 1e9,
        "handshake_s": story.handshake_ns.map(|ns| ns as f64 / 1e9),
        "ending": ending,
        "ended_by": by.map(sender),
        "one_direction_only": story.is_one_sided(),
        "trouble": story.trouble(),
        "directions": directions,
    })
}

fn direction(from: &str, story: &Story, end: usize) -> Value {
    let direction: &Direction = &story.directions[end];
    let handshake = &direction.handshake;
    let mut value = counts(&direction.counts);
    // Of a direction, frames and bytes on the wire are not counted apart.
    value.shift_remove("frames");
    value.shift_remove("bytes");
    let rtt = &direction.rtt;
    let times: Vec<f64> = direction
        .opening_times_ns()
        .iter()
        .map(|ns| ns.saturating_sub(story.first_ns) as f64 / 1e9)
        .collect();
    let more = json!({
        "from": from,
        "unique_bytes": direction.unique_bytes,
        "handshake": handshake.was_seen.then(|| json!({
            "mss": handshake.mss,
            "window_scale": handshake.window_scale,
            "sack_permitted": handshake.sack_permitted,
            "timestamps": handshake.has_timestamps,
        })),
        "syn_times_s": times,
        "syns": direction.openings,
        "rtt_ms": rtt.mean_ns().map(|mean| json!({
            "samples": rtt.samples,
            "min": rtt.min_ns as f64 / 1e6,
            "mean": mean as f64 / 1e6,
            "max": rtt.max_ns as f64 / 1e6,
        })),
        "repeated_segments": direction.repeated_segments,
        "late_segments": direction.late_segments,
        "overtaken_segments": direction.overtaken_segments,
        "captured_twice": direction.captured_twice,
        "unseen_bytes": direction.unseen_bytes,
        "tail_retransmissions": direction.tail_retransmissions,
        "sacks": direction.sacks,
        "duplicate_sacks": direction.duplicate_sacks,
        "needless_segments": direction.needless_segments,
        "window_shut_s": direction.shut_ns as f64 / 1e9,
        "fin": direction.has_finished,
        "resets": direction.resets,
    });
    if let Value::Object(more) = more {
        value.extend(more);
    }
    Value::Object(value)
}

fn event(event: &Event) -> Value {
    json!({
        "frame": event.number,
        "time_unix_s": event.time_ns as f64 / 1e9,
        "from": event.from,
        "tcp": tcp_flags(event.tcp),
        "sequence": event.sequence,
        "acknowledged": event.acknowledged,
        "length": event.length,
        "window": event.window,
        "analysis": event.flags.names().collect::<Vec<_>>(),
        "captured_twice": event.was_captured,
    })
}
