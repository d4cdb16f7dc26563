//! The results of uploads: the JSON file of `weir bench upload --json`. Names end in their unit.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

/// The version of the file's format.
pub const FORMAT: u32 = 1;

/// All of one run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Figures {
    /// Version of this format: [`FORMAT`].
    pub format: u32,
    /// `upload`.
    pub kind: String,
    /// The version of Weir that made it.
    pub weir: String,
    /// When it began: `2026-11-22T01:24:05Z`.
    pub started_at: String,
    /// Where the uploads came from.
    pub host: load_report::run::Host,
    /// Bytes of the object.
    pub size_bytes: u64,
    /// Bytes of a part.
    pub part_bytes: u64,
    /// Parts under way at once.
    pub parallel: u64,
    /// In the order in which they were measured, one after the other.
    pub endpoints: Vec<Endpoint>,
}

/// The upload to one endpoint.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Endpoint {
    /// Its region, or the name it was given.
    pub name: String,
    /// Where it is.
    pub url: String,
    /// The bucket.
    pub bucket: String,
    /// The object's key.
    pub key: String,
    /// Bytes that were to be uploaded.
    pub bytes: u64,
    /// CPU time in user mode, s.
    pub user_s: f64,
    /// CPU time in the kernel, s.
    pub system_s: f64,
    /// Both together, s.
    pub total_s: f64,
    /// From the first request to the last response, s: create, all parts, complete.
    pub real_s: f64,
    /// Bytes of the parts that arrived, per second of `real_s`.
    pub bytes_per_s: f64,
    /// Attempts beyond the first, of all parts.
    pub retries: u64,
    /// Parts that arrived, in their order.
    pub parts: Vec<Part>,
    /// Why it failed; `None`: the object was complete.
    pub error: Option<String>,
    /// What could not be removed from the bucket, and why.
    pub left_behind: Option<String>,
}

/// One part that arrived.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Part {
    /// Its number, from 1.
    pub number: u64,
    /// Its size.
    pub bytes: u64,
    /// When its first attempt began, counted from the beginning of the first part, s.
    pub at_s: f64,
    /// From the beginning of the first attempt to the end of the last, s.
    pub took_s: f64,
    /// How long the last attempt took alone, s.
    pub last_attempt_s: f64,
    /// How long connecting took in the last attempt, TLS included, s; `None`: it went over a kept
    /// connection.
    pub connect_s: Option<f64>,
    /// Attempts beyond the first.
    pub retries: u32,
    /// The status of the last response.
    pub status: u16,
    /// TCP segments that the kernel sent again during the last attempt.
    pub retransmissions: Option<u32>,
}

impl Endpoint {
    /// Fills in what follows from the parts.
    pub(super) fn sum_up(&mut self) {
        let arrived: u64 = self.parts.iter().map(|part| part.bytes).sum();
        self.bytes_per_s = if self.real_s > 0.0 { arrived as f64 / self.real_s } else { 0.0 };
        self.retries = self.parts.iter().map(|part| u64::from(part.retries)).sum();
    }

    /// The times of its parts in ascending order, s.
    pub fn part_times(&self) -> Vec<f64> {
        let mut times: Vec<f64> = self.parts.iter().map(|part| part.took_s).collect();
        times.sort_by(f64::total_cmp);
        times
    }
}

impl Figures {
    /// As indented JSON.
    pub fn to_json(&self) -> String {
        // Plain structs always have a JSON.
        let mut text = serde_json::to_string_pretty(self).unwrap_or_default();
        text.push('\n');
        text
    }

    /// The parts as CSV (RFC 4180), a line each under a heading.
    pub fn parts_csv(&self) -> String {
        let mut text = String::from(
            "endpoint,part,bytes,at_s,took_s,last_attempt_s,connect_s,retries,status,\
             retransmissions\r\n",
        );
        for endpoint in &self.endpoints {
            for part in &endpoint.parts {
                let connect = part.connect_s.map(|s| format!("{s:.6}")).unwrap_or_default();
                let again = part.retransmissions.map(|n| n.to_string()).unwrap_or_default();
                // Writing to a String cannot fail.
                let _ = write!(
                    text,
                    "{},{},{},{:.6},{:.6},{:.6},{connect},{},{},{again}\r\n",
                    csv(&endpoint.name),
                    part.number,
                    part.bytes,
                    part.at_s,
                    part.took_s,
                    part.last_attempt_s,
                    part.retries,
                    part.status,
                );
            }
        }
        text
    }
}

/// A field of CSV. One that a spreadsheet would take for a formula is made text.
fn csv(text: &str) -> String {
    let text = match text.as_bytes().first() {
        Some(b'=' | b'+' | b'-' | b'@' | b'\t' | b'\r') => format!("'{text}"),
        _ => text.to_owned(),
    };
    if text.contains(['"', ',', '\r', '\n']) {
        return format!("\"{}\"", text.replace('"', "\"\""));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn csv_is_quoted_and_no_formula() {
        assert_eq!(csv("us-east-1"), "us-east-1");
        assert_eq!(csv("a,\"b\""), "\"a,\"\"b\"\"\"");
        assert_eq!(csv("=cmd()"), "'=cmd()");
    }

    #[test]
    fn sums_follow_from_the_parts() {
        let part = |number, took_s, retries| Part {
            number,
            bytes: 500,
            took_s,
            retries,
            ..Part::default()
        };
        let mut endpoint = Endpoint {
            real_s: 2.0,
            parts: vec![part(1, 0.5, 0), part(2, 0.25, 3)],
            ..Endpoint::default()
        };
        endpoint.sum_up();
        assert_eq!(endpoint.retries, 3);
        assert!((endpoint.bytes_per_s - 500.0).abs() < 1e-9);
        assert_eq!(endpoint.part_times(), [0.25, 0.5]);
    }
}
