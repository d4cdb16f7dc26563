//! SRV records (RFC 2782): the targets of the lowest priority are primary servers, the others backups.

use std::cmp::Reverse;
use std::collections::HashMap;

use config::{ServerTexts, listed_server};

use crate::merged::Distinct;
use crate::row::{check_count, object_name, reason};
use crate::{Answer, Readiness, Refused, Row};

/// The largest weight of a server; larger ones are scaled down together.
const WEIGHT_MAX: u32 = 1_000;

/// A record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The lowest is used first.
    pub priority: u16,
    /// Relative to the other records of the same priority; 0: as small as possible.
    pub weight: u16,
    /// The port.
    pub port: u16,
    /// The host's name; `.` or empty: the service is not available at this name.
    pub target: String,
}

/// Returns the servers of an answer. `port` replaces that of each record.
///
/// # Errors
/// There are no records, they say that there is no such service, none is valid, or they are too many. One line,
/// bounded and escaped.
pub fn servers(records: &[Record], port: Option<u16>) -> Result<Answer, String> {
    check_count(records.len())?;
    let is_target = |record: &&Record| !matches!(&*record.target, "" | ".");
    let mut targets: Vec<&Record> = records.iter().filter(is_target).collect();
    let Some(first) = targets.iter().map(|record| record.priority).min() else {
        return Err("the SRV records name no host".to_owned());
    };
    // DNS has no order. A target that occurs twice counts as what it is first.
    targets.sort_by(|one, other| one.cmp_key().cmp(&other.cmp_key()));
    let mut heaviest: HashMap<u16, u16> = HashMap::new();
    for record in &targets {
        let most = heaviest.entry(record.priority).or_default();
        *most = record.weight.max(*most);
    }
    let mut answer = Answer::default();
    let mut distinct = Distinct::default();
    for record in targets {
        let object = record.target.trim_end_matches('.').to_ascii_lowercase();
        let address = format!("{object}:{}", port.unwrap_or(record.port));
        let most = heaviest.get(&record.priority).copied().unwrap_or(record.weight);
        let texts = ServerTexts {
            address: &address,
            zone: None,
            weight: Some(&scaled(record.weight, most)),
            backup: (record.priority > first).then_some("true"),
            in_flight_max: None,
            version: None,
        };
        let added = match listed_server(&texts) {
            Ok(server) => {
                let row = Row {
                    server,
                    readiness: Readiness::Ready,
                    object: object_name(&object).into(),
                };
                distinct.add(row, &mut answer)
            }
            Err(why) => Err(why),
        };
        if let Err(why) = added {
            answer.refuse(&object, &why);
        }
    }
    match answer.refused.first() {
        Some(refused) if answer.rows.is_empty() => {
            let Refused { object, why } = refused;
            Err(reason(&format!("no record is a valid server: {object}: {why}")))
        }
        _ => Ok(answer),
    }
}

impl Record {
    /// Records in this order are in the same order in every answer.
    fn cmp_key(&self) -> (u16, Reverse<u16>, &str, u16) {
        (self.priority, Reverse(self.weight), &self.target, self.port)
    }
}

/// Returns a weight within Weir's bounds; `most` is the largest of the same priority.
fn scaled(weight: u16, most: u16) -> String {
    let (weight, most) = (u32::from(weight), u32::from(most));
    let weight = if most > WEIGHT_MAX { weight * WEIGHT_MAX / most } else { weight };
    weight.max(1).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(priority: u16, weight: u16, port: u16, target: &str) -> Record {
        Record { priority, weight, port, target: target.to_owned() }
    }

    fn shown(records: &[Record], port: Option<u16>) -> Result<String, String> {
        let answer = servers(records, port)?;
        let rows = answer.rows.iter().map(|row| {
            let backup = if row.server.backup { " backup" } else { "" };
            format!("{} {}{backup}", row.server.target, row.server.weight)
        });
        Ok(rows.collect::<Vec<_>>().join(", "))
    }

    #[test]
    fn priorities_weights_and_ports() {
        let a = record(10, 60, 8080, "A.test.");
        let b = record(10, 0, 8081, "b.test.");
        let c = record(20, 5, 8082, "c.test.");
        let all = [a.clone(), b.clone(), c];
        let wanted = "a.test:8080 60, b.test:8081 1, c.test:8082 5 backup";
        assert_eq!(shown(&all, None).as_deref(), Ok(wanted));
        assert_eq!(shown(std::slice::from_ref(&a), Some(9000)).as_deref(), Ok("a.test:9000 60"));
        let heavy = record(10, 60_000, 8083, "d.test.");
        assert_eq!(
            shown(&[a.clone(), heavy], None).as_deref(),
            Ok("d.test:8083 1000, a.test:8080 1")
        );
        // Twice the same target: the first counts.
        let again = record(20, 1, 8080, "a.test.");
        assert_eq!(shown(&[a, again], None).as_deref(), Ok("a.test:8080 60"));
        assert!(shown(&[], None).is_err());
        assert!(shown(&[record(0, 0, 0, ".")], None).is_err());
        let odd = servers(&[b, record(10, 1, 80, "a b.test."), record(10, 1, 0, "e.test.")], None);
        assert_eq!(odd.map(|answer| (answer.rows.len(), answer.refused_count)), Ok((1, 2)));
    }
}
