//! A set over time: each case is a row of answers, failures and moments, in `cases.txt`.

use super::*;

use model::{Hold, ListedLimits, ServerSource};

fn policy(share: f64, hold_s: u64, kept_s: Option<u64>) -> Discover {
    Discover {
        source: ServerSource::Consul { service: "web".into(), tag: None },
        port: None,
        limits: ListedLimits::Each,
        hold: Hold { share, max: Duration::from_secs(hold_s) },
        saved: true,
        kept_max: kept_s.map(Duration::from_secs),
    }
}

/// Returns the rows of `a b! c-`.
fn rows(picture: &str) -> Vec<Row> {
    let row = |word: &str| {
        let letter = word.as_bytes()[0];
        let address = std::net::SocketAddr::from(([10, 0, 0, letter], 80));
        Row {
            server: ServerSpec {
                target: ServerTarget::Address(address.into()),
                zone: None,
                weight: 1,
                backup: false,
                in_flight_max: None,
                version: None,
            },
            readiness: match &word[1..] {
                "!" => Readiness::Critical,
                "-" => Readiness::Maintenance,
                _ => Readiness::Ready,
            },
            object: word[..1].into(),
        }
    };
    picture.split_whitespace().map(row).collect()
}

fn picture(set: &Set) -> String {
    let word = |one: &Listed| {
        let letter = &*one.listing.object;
        match one.listing.standing {
            Standing::Listed | Standing::Overridden => letter.to_owned(),
            Standing::Held => letter.to_uppercase(),
            Standing::Flapping => format!("{letter}~"),
            Standing::Critical => format!("{letter}!"),
            Standing::Maintenance => format!("{letter}-"),
        }
    };
    set.servers().map(word).collect::<Vec<_>>().join(" ")
}

/// Returns the policy of `share 0.5, hold 60, kept 100`.
fn policy_of(line: &str) -> Discover {
    let value = |name: &str| {
        let part = line.split(", ").find_map(|part| part.strip_prefix(name));
        part.map(|text| text.trim().parse::<f64>().expect("a number"))
    };
    let kept_s = value("kept").map(|seconds| seconds as u64);
    policy(value("share").unwrap(), value("hold").unwrap() as u64, kept_s)
}

/// Performs the steps of each case in `cases.txt`, and compares the set after each.
#[test]
fn sets_over_time() {
    let text = include_str!("cases.txt");
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let cases = lines.collect::<Vec<_>>();
    let cases = cases.split(|line| line.is_empty()).filter(|case| !case.is_empty());
    let mut count = 0;
    for case in cases {
        let [name, policy, steps @ ..] = case else { panic!("an incomplete case: {case:?}") };
        perform(name, &policy_of(policy.trim()), steps);
        count += 1;
    }
    assert!(count >= 13, "{count} cases");
}

fn perform(name: &str, policy: &Discover, steps: &[&str]) {
    let mut set = Set::new(policy.source.kind());
    let (mut now, mut failing) = (Moment::ZERO, None);
    for line in steps {
        let place = format!("{name}: {line}");
        let (step, wanted) = line.split_once("->").expect("an arrow");
        let (step, wanted) = (step.trim(), wanted.trim());
        let before = picture(&set);
        let changed = match step.split_once(' ').unwrap_or((step, "")) {
            ("lists", listed) => {
                failing = None;
                let answer = Answer { rows: rows(listed), ..Answer::default() };
                set.on_answer(answer, Some(7), policy, now).changed
            }
            ("fails", _) => {
                let since = *failing.get_or_insert(now);
                set.on_failure("no answer".to_owned(), since, Some(since));
                false
            }
            ("at", second) => {
                now = Moment::from_millis(second.parse::<u64>().expect("a second") * 1000);
                set.tick(policy, now)
            }
            _ => panic!("{place}: no step"),
        };
        assert_eq!(picture(&set), wanted, "{place}");
        assert_eq!(changed, before != wanted, "{place}: changed");
        assert!(set.next_due(policy).is_none_or(|due| due > now), "{place}: nothing is overdue");
    }
}

#[test]
fn a_listing_says_since_when_and_by_which_answer() {
    let policy = policy(0.5, 60, None);
    let mut set = Set::new(policy.source.kind());
    let at = |ms| Moment::from_millis(ms);
    let answer = |listed: &str| Answer { rows: rows(listed), ..Answer::default() };
    set.on_answer(answer("a b"), Some(7), &policy, at(10));
    set.on_answer(answer("a b!"), Some(9), &policy, at(20));
    let listings: Vec<_> =
        set.servers().map(|one| (one.listing.index, one.listing.since)).collect();
    assert_eq!(listings, [(Some(7), at(10)), (Some(9), at(20))]);
    let state = set.state();
    assert_eq!((state.listed, state.not_ready, state.index), (1, 1, Some(9)));
    assert_eq!((state.answered_at, state.changed_at), (Some(at(20)), Some(at(20))));
    set.on_failure("gone".into(), at(30), None);
    let state = set.state();
    assert_eq!((state.failing_since, state.error.as_deref()), (Some(at(30)), Some("gone")));
}

/// Whatever a source does, a set that had ready servers is never empty while it may be held.
#[test]
fn a_set_is_never_empty_soon_after_it_had_ready_servers() {
    let seed = fastrand::u64(..);
    let mut rng = fastrand::Rng::with_seed(seed);
    let policy = policy(0.5, 60, None);
    for _ in 0..2_000 {
        let mut set = Set::new(policy.source.kind());
        let mut now = 0;
        for _ in 0..30 {
            let had_ready = set.servers().any(|one| one.listing.standing == Standing::Listed);
            let letters = "abcdefgh".chars().filter(|_| rng.bool());
            let listed: Vec<_> = letters.map(String::from).collect();
            let answer = Answer { rows: rows(&listed.join(" ")), ..Answer::default() };
            set.on_answer(answer, None, &policy, Moment::from_millis(now));
            assert!(!had_ready || set.servers().next().is_some(), "seed {seed}");
            now += rng.u64(0..20_000);
            set.tick(&policy, Moment::from_millis(now));
        }
    }
}
