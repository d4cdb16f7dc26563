//! What an operator has to know first: what is wrong, and what is not judged at all and why. A part that is
//! missing is never taken for one without trouble.

use diagnose::words::{plural, thousands};

use super::picture::Picture;
use super::troubles::{Trouble, troubles};
use crate::render::traffic::elapsed;

/// What a picture says about the balancer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Judgement {
    /// The worst first.
    pub(crate) troubles: Vec<Trouble>,
    /// Those that hide trouble first.
    pub(crate) gaps: Vec<Gap>,
}

/// Something that is not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Gap {
    pub(crate) what: String,
    pub(crate) why: String,
    /// Trouble with the traffic may go unnoticed.
    pub(crate) hides_trouble: bool,
}

impl Judgement {
    /// Judges a picture.
    pub(crate) fn of(picture: &Picture) -> Judgement {
        Judgement { troubles: troubles(picture), gaps: gaps(picture) }
    }

    /// Returns what is not known, if trouble may go unnoticed because of it.
    pub(crate) fn blind(&self) -> impl Iterator<Item = &Gap> {
        self.gaps.iter().filter(|gap| gap.hides_trouble)
    }
}

fn gaps(picture: &Picture) -> Vec<Gap> {
    let mut gaps = Vec::new();
    let mut add = |what: &str, why: &str, hides_trouble| {
        gaps.push(Gap { what: what.to_owned(), why: why.to_owned(), hides_trouble });
    };
    match (picture.findings.missing(), picture.findings.known()) {
        (Some(why), _) => add("The doctor's findings are not known", why, true),
        (None, Some(findings)) if !findings.enabled => add(
            "Slow and failing servers are not detected",
            "the doctor is off ([doctor] in the configuration)",
            true,
        ),
        _ => {}
    }
    if let Some(why) = picture.traffic.missing() {
        add("Rates, latencies and failures are not known", why, true);
    }
    match (picture.past.missing(), picture.past.known()) {
        (Some(why), _) if picture.traffic.missing() != Some(why) => {
            add("The services' last minute is not known", why, false);
        }
        (None, Some(past)) if past.left_out > 0 => {
            let services = plural(past.left_out as u64, "service");
            let shown = thousands(past.series.len() as u64);
            add(
                &format!("The last minute of {services} is not shown"),
                &format!("an answer has at most {shown}"),
                false,
            );
        }
        _ => {}
    }
    for one in picture.findings.known().iter().flat_map(|findings| &findings.could_not_check) {
        add(&format!("The doctor could not check {}", one.what), &one.reason, false);
    }
    gaps
}

/// Returns the sentence that no problem was found, and what an operator has switched off.
pub(crate) fn calm(picture: &Picture, gaps: usize) -> String {
    let services = picture.services.len() as u64;
    let servers: usize = picture.services.iter().map(|service| service.servers.len()).sum();
    let mut parts = vec![match services {
        0 => "No service is configured".to_owned(),
        _ => format!(
            "No problem found in {} with {}",
            plural(services, "service"),
            plural(servers as u64, "server")
        ),
    }];
    let all = picture.services.iter().flat_map(|service| &service.servers);
    let set = all.filter(|server| !matches!(server.state.as_str(), "ready" | "")).count();
    if set > 0 {
        parts.push(format!("{} in drain or maintenance", plural(set as u64, "server")));
    }
    match picture.status.maintenance.iter().filter(|row| row.on).count() {
        0 => {}
        1 => parts.push("1 service or route in maintenance".to_owned()),
        more => parts.push(format!("{more} services or routes in maintenance")),
    }
    if gaps > 0 {
        parts.push(format!("{gaps} not known (e)"));
    }
    let up = elapsed(picture.status.uptime_s);
    parts.push(format!("up {up}, configuration {}", picture.status.generation));
    parts.join("; ")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::top::picture::Part;

    /// A balancer of which everything is known.
    fn picture() -> Value {
        json!({
            "services": [{ "name": "a", "servers": [{ "state": "ready" }, { "state": "drain" }] }],
            "status": { "uptime_s": 7_300, "generation": 2 },
            "traffic": {}, "past": {}, "findings": { "enabled": true },
        })
    }

    fn gaps_of(picture: &Picture) -> Vec<(String, bool)> {
        let gap = |gap: Gap| (format!("{}: {}", gap.what, gap.why), gap.hides_trouble);
        gaps(picture).into_iter().map(gap).collect()
    }

    #[test]
    fn a_balancer_of_which_everything_is_known_has_no_gap() {
        let picture: Picture = serde_json::from_value(picture()).unwrap();
        assert_eq!(gaps_of(&picture), []);
        assert_eq!(
            calm(&picture, 0),
            "No problem found in 1 service with 2 servers; 1 server in drain or maintenance; \
             up 2h 1m, configuration 2"
        );
    }

    #[test]
    fn what_is_missing_is_said_with_its_reason() {
        let known: Picture = serde_json::from_value(picture()).unwrap();
        let late = || "it does not answer in time".to_owned();
        let lost = Picture { findings: Part::Unknown(late()), ..known.clone() };
        let expected = "The doctor's findings are not known: it does not answer in time";
        assert_eq!(gaps_of(&lost), [(expected.to_owned(), true)]);
        let lost = Picture {
            traffic: Part::Unknown(late()),
            past: Part::Unknown(late()),
            ..known.clone()
        };
        let expected = "Rates, latencies and failures are not known: it does not answer in time";
        assert_eq!(gaps_of(&lost), [(expected.to_owned(), true)], "one reason, once");
        let lost = Picture { past: Part::Unknown(late()), ..known };
        let expected = "The services' last minute is not known: it does not answer in time";
        assert_eq!(gaps_of(&lost), [(expected.to_owned(), false)]);
    }

    #[test]
    fn a_doctor_that_is_off_is_no_all_clear() {
        let mut picture = picture();
        picture["findings"] = json!({ "enabled": false });
        let off: Picture = serde_json::from_value(picture.clone()).unwrap();
        assert_eq!(Judgement::of(&off).blind().count(), 1);
        picture["findings"] = json!({
            "enabled": true, "could_not_check": [{ "what": "conntrack", "reason": "no file" }],
        });
        let on: Picture = serde_json::from_value(picture).unwrap();
        let judgement = Judgement::of(&on);
        assert_eq!((judgement.blind().count(), judgement.gaps.len()), (0, 1));
    }
}
