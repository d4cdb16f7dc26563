//! The problems of the fleet, as this member sees it, and since when each has lasted.

use std::collections::{BTreeMap, HashSet};
use std::net::SocketAddr;
use std::sync::Arc;

use model::{FleetProblemKind, Moment};

use super::state::{FleetProblem, FleetState};

type Key = (FleetProblemKind, Arc<str>);

/// At most this many missing addresses are reported: a source may list thousands.
const MISSING_MAX: usize = 64;

/// Since when each problem has lasted.
#[derive(Debug, Default)]
pub(super) struct Problems(BTreeMap<Key, Moment>);

impl Problems {
    /// Returns the problems in a state, and notes since when each has lasted. `listed` are the addresses
    /// where members should be.
    pub(super) fn update(
        &mut self,
        state: &FleetState,
        listed: &[SocketAddr],
        now: Moment,
    ) -> Vec<FleetProblem> {
        let problem = |(key, why): (Key, Option<String>)| {
            let since = self.0.get(&key).copied().unwrap_or(now);
            FleetProblem { kind: key.0, subject: key.1, why, since }
        };
        let problems: Vec<FleetProblem> = found(state, listed).into_iter().map(problem).collect();
        let key = |one: &FleetProblem| (one.kind, Arc::clone(&one.subject));
        self.0 = problems.iter().map(|one| (key(one), one.since)).collect();
        problems
    }
}

/// Returns what is wrong now, and why where it is known.
fn found(state: &FleetState, listed: &[SocketAddr]) -> BTreeMap<Key, Option<String>> {
    use FleetProblemKind as Kind;
    let about = |kind: Kind, subject: &Arc<str>| ((kind, Arc::clone(subject)), None);
    let mut found = BTreeMap::new();
    if let Some(error) = &state.error {
        found.insert((Kind::NotJoined, "".into()), Some(error.clone()));
    }
    let Some(own) = &state.own else { return found };
    if state.has_name_conflict {
        found.extend([about(Kind::NameConflict, &own.name)]);
    }
    let live: HashSet<SocketAddr> =
        state.others.iter().chain([own]).map(|member| member.address).collect();
    let missing = listed.iter().filter(|address| !live.contains(address)).take(MISSING_MAX);
    found.extend(missing.map(|address| ((Kind::Missing, address.to_string().into()), None)));
    found.extend(state.ignored.iter().map(|(name, _)| about(Kind::Ignored, name)));
    if let Some(tickets) = &state.tickets {
        found.extend(tickets.silent.iter().map(|name| about(Kind::NotSharing, name)));
        if let Some(error) = &tickets.error {
            found.insert((Kind::NotExchanged, "".into()), Some(error.clone()));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::{FleetMember, TicketsState};
    use super::*;

    fn member(number: u8) -> FleetMember {
        FleetMember {
            name: format!("b{number}").into(),
            address: ([10, 0, 0, number], 7946).into(),
            zone: None,
            host: "host".into(),
        }
    }

    fn seconds(problems: &[FleetProblem], now: Moment) -> Vec<(&'static str, &str, u64)> {
        let rows = problems.iter();
        rows.map(|one| (one.kind.as_str(), &*one.subject, now.since(one.since).as_secs())).collect()
    }

    #[test]
    fn each_problem_is_shown_with_its_duration_until_it_ends() {
        let at = |second: u64| Moment::from_millis(second * 1_000);
        let listed = [1, 2, 3].map(|number| member(number).address);
        let mut problems = Problems::default();
        let mut state = FleetState { error: Some("in use".into()), ..FleetState::default() };
        let shown = problems.update(&state, &listed, at(1));
        assert_eq!(seconds(&shown, at(1)), [("not_joined", "", 0)]);
        assert_eq!(shown[0].why.as_deref(), Some("in use"));

        state = FleetState { own: Some(member(1)), ..FleetState::default() };
        problems.update(&state, &listed, at(2));
        state.others = vec![member(3)];
        state.ignored = vec![("b3".into(), 4)];
        let tickets = |error: &str| TicketsState {
            silent: vec!["b3".into()],
            error: Some(error.into()),
            ..TicketsState::default()
        };
        state.tickets = Some(tickets("refused"));
        problems.update(&state, &listed, at(5));
        state.has_name_conflict = true;
        // Another reason is no other problem.
        state.tickets = Some(tickets("timed out"));
        let shown = problems.update(&state, &listed, at(9));
        let expected = [
            ("name_conflict", "b1", 0),
            ("missing", "10.0.0.2:7946", 7),
            ("ignored", "b3", 4),
            ("not_sharing", "b3", 4),
            ("not_exchanged", "", 4),
        ];
        assert_eq!(seconds(&shown, at(9)), expected);
        assert_eq!(shown[4].why.as_deref(), Some("timed out"));

        state = FleetState { own: Some(member(1)), ..FleetState::default() };
        state.others = vec![member(2), member(3)];
        assert_eq!(problems.update(&state, &listed, at(10)), []);
        state.others.clear();
        let shown = problems.update(&state, &listed, at(11));
        let expected = [("missing", "10.0.0.2:7946", 0), ("missing", "10.0.0.3:7946", 0)];
        assert_eq!(seconds(&shown, at(11)), expected);
    }
}
