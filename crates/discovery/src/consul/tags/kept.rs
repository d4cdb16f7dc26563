//! The routes that services publish, over time: which stay although an answer lacks them.
//!
//! A tag that is removed takes its route along at once. A service that Consul no longer lists at all may have failed,
//! or the catalogue may have restarted empty: its servers are held for some time then, and so are its routes. No other
//! service can have them in that time: it could otherwise take over whatever restarts.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use config::quote;
use model::{Moment, PublishedRoute, TagRoutes};

use super::route::{Published, ROUTES_MAX, RefusedTags, order};
use super::saved::SavedRoute;
use super::settle;

/// The routes that services publish, over time.
#[derive(Clone, Debug, Default)]
pub struct Kept {
    /// By service, host and path; each host and path once; at most [`ROUTES_MAX`].
    routes: Arc<[KeptRoute]>,
    state: KeptState,
}

/// A route, and what is known of it.
#[derive(Clone, Debug, PartialEq)]
pub struct KeptRoute {
    /// The route.
    pub route: PublishedRoute,
    /// When it was published as it is; `None`: by an earlier process.
    pub since: Option<Moment>,
    /// The index of the answer that published it.
    pub index: Option<u64>,
    /// Until when it stays although Consul no longer lists its service; `None`: it is listed.
    pub held_until: Option<Moment>,
}

/// How the source of the routes is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KeptState {
    /// The tags of the last answer that publish no route.
    pub refused: RefusedTags,
    /// When Consul last answered; `None`: not since this process started.
    pub answered_at: Option<Moment>,
    /// When the routes last changed.
    pub changed_at: Option<Moment>,
    /// Since when it fails; `None`: the last answer was good.
    pub failing_since: Option<Moment>,
    /// Why it fails. One line.
    pub error: Option<String>,
    /// The index of the last answer.
    pub index: Option<u64>,
}

impl Kept {
    /// Returns the routes of an earlier process: those that `settings` still allow.
    pub fn restored(saved: &[SavedRoute], settings: &TagRoutes, now: Moment) -> Kept {
        let hold_max = settings.hold_max;
        let read = |saved: &SavedRoute| {
            let route = saved.route().filter(|route| route.is_allowed(settings))?;
            let held =
                saved.held_s.map(|seconds| Duration::from_secs(seconds.into()).min(hold_max));
            let held_until = held.map(|time| now + time);
            Some(KeptRoute { route, since: None, index: None, held_until })
        };
        let mut routes: Vec<KeptRoute> = Vec::new();
        let mut places = HashSet::new();
        for one in saved.iter().take(ROUTES_MAX).filter_map(read) {
            let (host, path) = one.route.place();
            if places.insert((host.clone(), path.clone())) {
                routes.push(one);
            }
        }
        routes.sort_by_cached_key(|one| (one.route.service.clone(), order(&one.route)));
        Kept { routes: routes.into(), state: KeptState::default() }
    }

    /// Applies an answer, and returns whether the routes are different.
    pub fn on_answer(
        &mut self,
        answer: Published,
        index: Option<u64>,
        hold_max: Duration,
        now: Moment,
    ) -> bool {
        let before = std::mem::take(&mut self.routes);
        let is_listed = |one: &&KeptRoute| answer.listed.contains(&*one.route.service);
        let of_listed: Vec<_> =
            before.iter().filter(is_listed).map(|one| one.route.clone()).collect();
        // While Consul fails, time does not count.
        let outage = self.state.failing_since.map_or(Duration::ZERO, |since| now.since(since));
        let mut held: Vec<_> = before
            .iter()
            .filter(|one| !is_listed(one))
            .map(|one| {
                let until = one.held_until.map_or(now + hold_max, |until| until + outage);
                KeptRoute { held_until: Some(until), ..one.clone() }
            })
            .filter(|one| one.held_until > Some(now))
            .collect();
        let Published { mut routes, listed: _, mut refused } = settle(&of_listed, answer);
        // Those that have been held for longest come first: what comes and goes all the time displaces nothing.
        held.sort_by_key(|one| one.held_until);
        held.truncate(ROUTES_MAX.saturating_sub(routes.len()));
        let owners: HashMap<_, _> =
            held.iter().map(|one| (one.route.place(), &one.route.service)).collect();
        routes.retain(|route| {
            let owner = owners.get(&route.place());
            if let Some(owner) = owner {
                let why = format!(
                    "{route} is held for the service {}, which is no longer listed",
                    quote(owner)
                );
                refused.refuse(&route.service, &route.tag, &why);
            }
            owner.is_none()
        });
        let known: HashMap<_, _> =
            before.iter().map(|one| ((&one.route.service, one.route.place()), one)).collect();
        let current = routes.iter().map(|route| {
            let had = known.get(&(&route.service, route.place()));
            match had.filter(|had| had.route == *route) {
                Some(had) => KeptRoute { held_until: None, ..KeptRoute::clone(had) },
                None => {
                    KeptRoute { route: route.clone(), since: Some(now), index, held_until: None }
                }
            }
        });
        let mut all: Vec<_> = current.chain(held.iter().cloned()).collect();
        all.sort_by_cached_key(|one| (one.route.service.clone(), order(&one.route)));
        let changed = !all.iter().map(|one| &one.route).eq(before.iter().map(|one| &one.route));
        self.routes = if all == *before { before } else { all.into() };
        self.state = KeptState {
            refused,
            answered_at: Some(now),
            changed_at: if changed { Some(now) } else { self.state.changed_at },
            failing_since: None,
            error: None,
            index,
        };
        changed
    }

    /// Notes that Consul fails since `since`: the routes stay.
    pub fn on_failure(&mut self, why: String, since: Moment) {
        self.state.failing_since.get_or_insert(since);
        self.state.error = Some(why);
    }

    /// Drops what was held for long enough, unless Consul fails. Returns the services whose routes those were.
    pub fn tick(&mut self, now: Moment) -> BTreeSet<String> {
        if self.state.failing_since.is_some() {
            return BTreeSet::new();
        }
        let (over, rest): (Vec<_>, Vec<_>) =
            self.routes.iter().partition(|one| one.held_until.is_some_and(|until| until <= now));
        if over.is_empty() {
            return BTreeSet::new();
        }
        let services = over.iter().map(|one| one.route.service.to_string()).collect();
        self.routes = rest.into_iter().cloned().collect();
        self.state.changed_at = Some(now);
        services
    }

    /// Returns when [`Kept::tick`] next has work to do.
    pub fn next_due(&self) -> Option<Moment> {
        if self.state.failing_since.is_some() {
            return None;
        }
        self.routes.iter().filter_map(|one| one.held_until).min()
    }

    /// Returns the routes, by service, host and path.
    pub fn routes(&self) -> &Arc<[KeptRoute]> {
        &self.routes
    }

    /// Returns how the source is.
    pub fn state(&self) -> &KeptState {
        &self.state
    }

    /// Returns all routes, for a file.
    pub fn saved(&self, now: Moment) -> Vec<SavedRoute> {
        let save = |one: &KeptRoute| {
            let held = one.held_until.map(|until| until.since(now).as_secs());
            SavedRoute::of(&one.route, held.map(|seconds| seconds.try_into().unwrap_or(u32::MAX)))
        };
        self.routes.iter().map(save).collect()
    }

    /// Drops the routes that other settings do not allow, and what is known of the source, which may be another one.
    pub fn restrict(&mut self, settings: &TagRoutes) {
        self.routes =
            self.routes.iter().filter(|one| one.route.is_allowed(settings)).cloned().collect();
        self.state = KeptState::default();
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use model::{HostPattern, RouteTagFormat};

    use super::super::published;
    use super::*;

    const HOLD: Duration = Duration::from_secs(600);

    fn settings() -> TagRoutes {
        TagRoutes {
            hosts: vec![HostPattern::Wildcard("apps.example".to_owned())],
            formats: RouteTagFormat::ALL.to_vec(),
            listeners: Vec::new(),
            hold_max: HOLD,
        }
    }

    fn at(seconds: u64) -> Moment {
        Moment::ZERO + Duration::from_secs(seconds)
    }

    /// Applies an answer, and returns whether something changed and what there is then.
    fn answer_with(kept: &mut Kept, seconds: u64, body: &str, hold: Duration) -> (bool, String) {
        let TagRoutes { hosts, formats, .. } = settings();
        let before: Vec<_> = kept.routes().iter().map(|one| one.route.clone()).collect();
        let read = published(body.as_bytes(), &formats, &hosts, &before).unwrap();
        let changed = kept.on_answer(read, Some(seconds), hold, at(seconds));
        (changed, shown(kept))
    }

    fn answer(kept: &mut Kept, seconds: u64, services: &[(&str, &[&str])]) -> (bool, String) {
        answer_with(kept, seconds, &tags(services), HOLD)
    }

    /// Returns the routes: `SERVICE:HOST`, with a star while it is held.
    fn shown(kept: &Kept) -> String {
        let show = |one: &KeptRoute| {
            let star = if one.held_until.is_some() { "*" } else { "" };
            let host = one.route.host.to_string();
            format!("{}:{}{star}", &*one.route.service, host.trim_end_matches(".apps.example"))
        };
        kept.routes().iter().map(show).collect::<Vec<_>>().join(" ")
    }

    fn tags(services: &[(&str, &[&str])]) -> String {
        let tags = |hosts: &[&str]| -> Vec<String> {
            hosts.iter().map(|host| format!("weir.route={host}.apps.example")).collect()
        };
        let all: BTreeMap<_, _> =
            services.iter().map(|(name, hosts)| (name, tags(hosts))).collect();
        serde_json::to_string(&all).unwrap()
    }

    #[test]
    fn a_removed_tag_takes_its_route_along_and_a_vanished_service_does_not() {
        let mut kept = Kept::default();
        let all = answer(&mut kept, 1, &[("a", &["x", "y"]), ("b", &["z"])]);
        assert_eq!(all, (true, "a:x a:y b:z".to_owned()));
        let (changed, _) = answer(&mut kept, 2, &[("a", &["y", "x"]), ("b", &["z"])]);
        assert!(!changed, "the same in another order");
        assert_eq!(kept.routes()[0].since, Some(at(1)));
        let all = answer(&mut kept, 3, &[("a", &["y"])]);
        assert_eq!(all, (true, "a:y b:z*".to_owned()));
        // It is held from the first answer without it on.
        answer(&mut kept, 60, &[("a", &["y"])]);
        assert_eq!(kept.next_due(), Some(at(603)));
        assert!(kept.tick(at(602)).is_empty());
        let all = answer(&mut kept, 100, &[("a", &["y"]), ("b", &["z"])]);
        assert_eq!(all, (false, "a:y b:z".to_owned()), "it is back");
        answer(&mut kept, 200, &[("consul", &[])]);
        assert_eq!(shown(&kept), "a:y* b:z*", "an empty catalogue");
        assert_eq!(kept.tick(at(800)).into_iter().collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!((shown(&kept), kept.next_due()), (String::new(), None));
        answer(&mut kept, 900, &[("a", &["y"])]);
        let (changed, all) = answer_with(&mut kept, 901, "{}", Duration::ZERO);
        assert!(changed && all.is_empty(), "nothing is held: {all}");
    }

    #[test]
    fn a_route_stays_with_its_owner_until_that_gives_it_up() {
        let mut kept = Kept::default();
        answer(&mut kept, 1, &[("m", &["x"])]);
        let both: &[(&str, &[&str])] = &[("a", &["x"]), ("m", &["x"])];
        assert_eq!(answer(&mut kept, 2, both), (false, "m:x".to_owned()));
        assert_eq!(kept.state().refused.count, 1);
        // Not even while it is not listed.
        assert_eq!(answer(&mut kept, 3, &[("a", &["x"])]), (false, "m:x*".to_owned()));
        let why = &kept.state().refused.examples[0].why;
        assert!(why.contains("is held for the service \"m\""), "{why}");
        assert_eq!(answer(&mut kept, 4, both), (false, "m:x".to_owned()));
        assert_eq!(answer(&mut kept, 5, &[("a", &["x"]), ("m", &[])]), (true, "a:x".to_owned()));
        assert_eq!(answer(&mut kept, 6, both), (false, "a:x".to_owned()));
        // Held for too long, it is free.
        answer(&mut kept, 7, &[("m", &["x"])]);
        assert_eq!(answer(&mut kept, 608, &[("m", &["x"])]), (true, "m:x".to_owned()));
    }

    #[test]
    fn saved_routes_come_back_with_their_owners_as_far_as_they_are_allowed() {
        let mut kept = Kept::default();
        answer(&mut kept, 1, &[("m", &["x", "y"]), ("n", &["z"])]);
        // One tag with two hosts, of which another service has one.
        let body = r#"{"a": ["traefik.http.routers.r.rule=Host(`x.apps.example`, `w.apps.example`)"],
            "m": ["weir.route=x.apps.example", "weir.route=y.apps.example"]}"#;
        answer_with(&mut kept, 2, body, HOLD);
        assert_eq!(shown(&kept), "a:w m:x m:y n:z*");
        let saved = kept.saved(at(302));
        let restored = Kept::restored(&saved, &settings(), at(1000));
        assert_eq!(shown(&restored), shown(&kept));
        assert_eq!(restored.next_due(), Some(at(1300)), "the rest of its time");
        assert!(restored.routes().iter().all(|one| one.since.is_none()));
        let only_y = TagRoutes {
            hosts: vec![HostPattern::Exact("y.apps.example".to_owned())],
            ..settings()
        };
        assert_eq!(shown(&Kept::restored(&saved, &only_y, at(1))), "m:y");
        let without_weir = TagRoutes { formats: vec![RouteTagFormat::Traefik], ..settings() };
        kept.restrict(&without_weir);
        assert_eq!(shown(&kept), "a:w");
        assert_eq!(kept.state(), &KeptState::default());
    }

    #[test]
    fn many_services_displace_no_others() {
        let mut kept = Kept::default();
        answer(&mut kept, 1, &[("m", &["x"]), ("n", &["y"])]);
        let hosts: Vec<_> = (0..64).map(|number| format!("h{number}")).collect();
        let flood = |from: u32| -> BTreeMap<String, Vec<String>> {
            let tags = |service: u32| {
                let tag = |host: &String| format!("weir.route={host}-{service}.apps.example");
                hosts.iter().map(tag).collect()
            };
            (from..from + 200).map(|number| (format!("a{number}"), tags(number))).collect()
        };
        let mut all = flood(1000);
        all.insert("m".to_owned(), vec!["weir.route=x.apps.example".to_owned()]);
        for (second, from) in [(2, 1000), (3, 2000), (4, 3000)] {
            let mut all = flood(from);
            all.insert("m".to_owned(), vec!["weir.route=x.apps.example".to_owned()]);
            answer_with(&mut kept, second, &serde_json::to_string(&all).unwrap(), HOLD);
            assert_eq!(kept.routes().len(), ROUTES_MAX);
            let is_there =
                |service: &str| kept.routes().iter().any(|one| *one.route.service == *service);
            assert!(is_there("m"), "listed all the time");
        }
    }

    #[test]
    fn a_failure_keeps_everything() {
        let mut kept = Kept::default();
        answer(&mut kept, 1, &[("a", &["x"])]);
        kept.on_failure("Consul answers 500".to_owned(), at(5));
        kept.on_failure("Consul answers 503".to_owned(), at(9));
        kept.on_failure("Consul answers 503".to_owned(), at(9));
        assert!(kept.tick(at(100_000)).is_empty());
        let state = kept.state();
        assert_eq!(state.failing_since, Some(at(5)));
        assert_eq!(state.error.as_deref(), Some("Consul answers 503"));
        assert_eq!(shown(&kept), "a:x");
        answer(&mut kept, 200_000, &[("a", &["x"])]);
        assert_eq!((kept.state().failing_since, kept.state().changed_at), (None, Some(at(1))));
        // What was held when a failure began is held for the rest of its time after it.
        answer(&mut kept, 200_001, &[]);
        kept.on_failure("Consul answers 500".to_owned(), at(200_101));
        assert_eq!((kept.next_due(), kept.tick(at(300_000)).len()), (None, 0));
        assert_eq!(answer(&mut kept, 300_101, &[]), (false, "a:x*".to_owned()));
        assert_eq!(kept.next_due(), Some(at(300_601)));
    }
}
