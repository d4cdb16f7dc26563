//! Policies of Kubernetes: each case of `policies.json` has what it changes, or its mistakes, in `policies.expected`
//! (`UPDATE_EXPECT=1` rewrites it: review the changes). Random policies never panic, and their texts stay texts
//! (`WEIR_SEED=n` replays one seed).

#![allow(clippy::unwrap_used, clippy::panic, reason = "a helper that fails fails its test")]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use config::policy::{Kind, Mistake, Reference, RouteTerms, ServiceTerms, schema};
use model::{
    Affinity, AffinityKey, AffinityKeyFile, AuthenticationId, AuthenticationScheme, Balance,
    CheckKind, HashKey, HashOn, HttpVersion, Material, RequestFilter, Service, ServiceId,
};
use serde_json::{Map, Value, json};

const USERS: &str = "ada:$2y$05$abcdefghijklmnopqrstuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuu\n";
const COSTLY: &str = "ada:$2y$13$abcdefghijklmnopqrstuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuu\n\
    bob:$argon2id$v=19$m=131072,t=1,p=1$c2FsdCBvZiBhIHVzZXIuLg$wkk0SOIzhVZmVOfVYx7cbQuLhpODW/cuU4d6fwKAjWk\n";
const KEYS: &str =
    r#"{"keys":[{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}"#;

fn here(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// What the cluster and the system have.
fn material(reference: Reference<'_>) -> Result<Material, String> {
    let authorities = || {
        let key = rcgen::generate_simple_self_signed(["a.example".to_owned()]).unwrap();
        // Signatures differ in length.
        format!("{:\n<1000}", key.cert.pem())
    };
    let text = match reference {
        Reference::UsersSecret("staff") => USERS.to_owned(),
        Reference::UsersSecret("costly") => COSTLY.to_owned(),
        Reference::KeysConfigMap("keys") => KEYS.to_owned(),
        Reference::UsersSecret("broken") | Reference::KeysConfigMap("broken") => "?".to_owned(),
        Reference::SystemAuthorities => authorities(),
        _ => return Err("it does not exist".to_owned()),
    };
    Ok(Material { path: "material".into(), bytes: text.into_bytes().into() })
}

/// A service as the balancer has it without policies, with servers that use `http`.
fn service(http: &str) -> Service {
    let text = format!(
        "[[listener]]\naddress = \"127.0.0.1:1\"\n[[route]]\nservice = \"a\"\n\
         [service.a]\nhttp = \"{http}\"\nserver = [{{ address = \"127.0.0.1:2\" }}]\n"
    );
    let checked = config::check(&text, "weir.toml", &()).unwrap_or_else(|_| panic!("{text}"));
    Service::clone(&checked.snapshot.services[0])
}

/// Returns the fields of a value as its `Debug` shows them, one line each.
fn fields(shown: &str) -> Vec<String> {
    let mut fields: Vec<String> = Vec::new();
    for line in shown.lines() {
        let rest = line.strip_prefix("    ").unwrap_or(line);
        let goes_on = line.len() > rest.len() && rest.starts_with([' ', '}', ')', ']']);
        match (fields.last_mut(), goes_on) {
            (Some(field), true) => {
                field.push(' ');
                field.push_str(line.trim());
            }
            _ => fields.push(line.trim().to_owned()),
        }
    }
    fields
}

fn lines(all: impl IntoIterator<Item = String>) -> String {
    all.into_iter().flat_map(|line| [line, "\n".to_owned()]).collect()
}

fn mistakes_of(mistakes: &[Mistake]) -> String {
    lines(mistakes.iter().map(|one| format!("{}: {}", one.path, one.problem)))
}

fn outcome(kind: &str, spec: &Map<String, Value>) -> Result<String, Vec<Mistake>> {
    if kind == "Route" {
        let terms = RouteTerms::read(spec, &material)?;
        let shown = fields(&format!("{terms:#?}"));
        return Ok(lines(shown[1..shown.len() - 1].iter().cloned()));
    }
    let (terms, before) = (ServiceTerms::read(spec)?, service("1.1"));
    let mut after = before.clone();
    terms.set(&mut after);
    let (before, after) = (fields(&format!("{before:#?}")), fields(&format!("{after:#?}")));
    let changed = before.iter().zip(&after).filter(|(before, after)| before != after);
    Ok(lines(changed.map(|(_, after)| after.clone())))
}

fn cases() -> Vec<Value> {
    let text = std::fs::read_to_string(here("tests/policies.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

#[test]
fn each_policy_changes_what_it_states_or_has_its_mistakes() {
    let mut shown = String::new();
    for case in cases() {
        let (kind, spec) = (case["kind"].as_str().unwrap(), case["spec"].as_object().unwrap());
        let _ = writeln!(shown, "--- {} ({kind})", case["about"].as_str().unwrap());
        match outcome(kind, spec) {
            Ok(changes) => shown.push_str(&changes),
            Err(mistakes) => {
                in_words_of_policies(&mistakes);
                let _ = write!(shown, "refused\n{}", mistakes_of(&mistakes));
            }
        }
    }
    let expected = here("tests/policies.expected");
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(expected, shown).unwrap();
    } else {
        let expected = std::fs::read_to_string(expected).unwrap_or_default();
        assert!(shown == expected, "not as expected (UPDATE_EXPECT=1 rewrites):\n{shown}");
    }
}

/// Asserts that mistakes are single lines without the words and the syntax of files. Quoted texts may be anything.
fn in_words_of_policies(mistakes: &[Mistake]) {
    assert!(!mistakes.is_empty());
    for mistake in mistakes {
        let problem = mistake.problem.replace("\\\"", "");
        assert!(!problem.contains('\n') && !mistake.path.contains('\n'), "{mistake:?}");
        assert!(mistake.path.starts_with("spec") && !problem.is_empty(), "{mistake:?}");
        let outside: String = problem.split('"').step_by(2).collect();
        for word in [" = ", "TOML", "toml", "[[", "[service", "[auth", " table", "192.0.2", "bug"] {
            assert!(!outside.contains(word), "{word:?} in {mistake:?}");
        }
        let is_file = |word: &str| word == "file" || word == "files";
        let names_files = outside.split(|c: char| !c.is_alphanumeric()).any(is_file);
        assert!(!names_files || outside.contains("policies name no files"), "{mistake:?}");
        let mut words = outside.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
        let snake = words.find(|word| word.len() > 2 && word.trim_matches('_').contains('_'));
        assert!(snake.is_none() || outside.contains("stands twice"), "{snake:?} in {mistake:?}");
    }
}

fn spec(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

#[test]
fn an_affinity_keeps_the_key_file_and_http2_gets_no_proxy_header() {
    let terms = spec(json!({ "affinity": { "cookie": "new" }, "sendProxy": "v2" }));
    let terms = ServiceTerms::read(&terms).unwrap();
    let mut service = service("2");
    let key_file = AffinityKeyFile { path: "a.key".into(), key: AffinityKey::new([7; 16]) };
    service.affinity =
        Some(Affinity { cookie: "old".into(), max_age: None, key_file: Some(key_file.clone()) });
    terms.set(&mut service);
    let affinity = service.affinity.as_ref().unwrap();
    assert_eq!((&*affinity.cookie, affinity.key_file.as_ref()), ("new", Some(&key_file)));
    assert_eq!(service.send_proxy, None);
    assert_eq!(terms.misfit(&service).unwrap().path, "spec.sendProxy");
    service.http = HttpVersion::Http11;
    assert_eq!(terms.misfit(&service), None);
    terms.set(&mut service);
    assert!(service.send_proxy.is_some());
    assert_eq!(terms, terms.clone());
    assert_eq!(terms.in_flight_max(), None);
}

#[test]
fn authorities_that_are_missing_are_a_mistake_of_the_balancer() {
    let fetched =
        json!({ "authentication": { "jwt": { "keysUrl": "https://login.example.com/keys" } } });
    let none = |_: Reference<'_>| Err("none".to_owned());
    let mistakes = RouteTerms::read(&spec(fetched), &none).unwrap_err();
    in_words_of_policies(&mistakes);
    assert_eq!(
        mistakes_of(&mistakes),
        "spec.authentication.jwt: this system's authorities are not found: no certificate can be verified\n"
    );
}

#[test]
fn filters_of_a_route_keep_their_order() {
    let stated = json!({
        "rateLimit": [{ "requests": 1, "by": "user" }, { "requests": 2 }],
        "authentication": { "basic": { "usersSecret": "staff" } },
    });
    let terms = RouteTerms::read(&spec(stated), &material).unwrap();
    let nothing = RouteTerms::read(&Map::new(), &material).unwrap();
    let mut filters = Vec::new();
    terms.set_filters(&mut filters, Some(AuthenticationId(3)));
    let [
        RequestFilter::RateLimits(early),
        RequestFilter::Authenticate(id),
        RequestFilter::RateLimits(late),
    ] = filters.as_slice()
    else {
        panic!("{filters:?}")
    };
    assert_eq!((early[0].requests, *id, late[0].requests), (2, AuthenticationId(3), 1));
    let before = filters.clone();
    nothing.set_filters(&mut filters, None);
    assert_eq!(filters, before);
}

#[test]
fn a_service_that_hashes_keeps_its_key_unless_another_is_stated() {
    let own = Balance::Hash(HashKey { on: HashOn::Path, load_factor: 3.0 });
    let hash = json!({ "balance": "hash" });
    let keyed = json!({ "balance": "hash", "hash": { "on": "client" } });
    for (stated, is_kept) in [(hash, true), (keyed, false)] {
        let mut service = service("1.1");
        service.balance = own.clone();
        ServiceTerms::read(&spec(stated)).unwrap().set(&mut service);
        assert_eq!(service.balance == own, is_kept);
    }
}

#[test]
fn references_are_found_in_policies_with_mistakes() {
    let of = |value: Value| {
        let spec = spec(value);
        RouteTerms::references(&spec).iter().map(|one| format!("{one:?}")).collect::<Vec<_>>()
    };
    let both = json!({ "x": 1, "authentication": { "basic": { "usersSecret": "a", "y": 1 }, "jwt": { "keysConfigMap": "b" } } });
    assert_eq!(of(both), ["UsersSecret(\"a\")", "KeysConfigMap(\"b\")"]);
    assert!(
        of(json!({ "authentication": { "basic": 1, "jwt": { "keysConfigMap": [] } } })).is_empty()
    );
    assert!(of(json!({ "authentication": null })).is_empty());
}

#[test]
fn an_authentication_gets_its_name_and_service() {
    let name: Arc<str> = "shop/sso".into();
    let stated = json!({ "authentication": { "realm": "R", "forward": { "backendRef": { "name": "a", "port": 1 }, "path": "/" } } });
    let terms = RouteTerms::read(&spec(stated), &material).unwrap().authentication.unwrap();
    let named = terms.named(&name, ServiceId(7));
    assert_eq!((&*named.name, &*named.realm), ("shop/sso", "R"));
    assert!(format!("{:?}", named.scheme).contains("ServiceId(7)"), "{named:?}");
    let unnamed = json!({ "authentication": { "basic": { "usersSecret": "staff" } } });
    let terms = RouteTerms::read(&spec(unnamed), &material).unwrap().authentication.unwrap();
    assert_eq!(terms.named(&name, ServiceId(0)).realm, "shop/sso");
    assert!(!format!("{terms:?}").contains("ada"), "no secrets");
}

/// A small generator (xorshift64*), so that a seed gives the same sequence everywhere.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }

    fn of<'t>(&mut self, all: &[&'t str]) -> &'t str {
        all[self.below(all.len())]
    }

    fn text(&mut self) -> String {
        let mut text = String::new();
        for _ in 0..self.below(12) {
            match self.below(4) {
                0 => text.push(char::from_u32(self.below(0x300) as u32).unwrap_or('x')),
                1 => {
                    let c = self.next() as u32 % 0x11_0000;
                    text.push(char::from_u32(c).unwrap_or('\u{feff}'));
                }
                _ => text.push_str(self.of(PIECES)),
            }
        }
        text
    }

    fn value(&mut self, depth: usize) -> Value {
        match self.below(if depth == 0 { 6 } else { 9 }) {
            0 => Value::Null,
            1 => json!(self.below(2) == 0),
            2 => json!(self.next().cast_signed() >> self.below(64)),
            3 => json!(self.next()),
            4 => json!(f64::from_bits(self.next())),
            5 => json!(self.text()),
            6 => (0..self.below(4)).map(|_| self.value(depth - 1)).collect(),
            _ => Value::Object(self.object(depth - 1)),
        }
    }

    fn object(&mut self, depth: usize) -> Map<String, Value> {
        let entry = |random: &mut Random| {
            let name = match random.below(4) {
                0 => random.text(),
                _ => random.of(NAMES).to_owned(),
            };
            (name, random.value(depth))
        };
        (0..self.below(6)).map(|_| entry(self)).collect()
    }
}

/// Prints the seed if the test panics while this is held.
struct Seed(u64);

impl Drop for Seed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("replay with WEIR_SEED={}", self.0);
        }
    }
}

const PIECES: &[&str] = &[
    "\"",
    "'",
    "\"\"\"",
    "'''",
    "\\",
    "\\\"",
    "\\u0022",
    "\n",
    "\r\n",
    "\0",
    "\u{7f}",
    "\u{85}",
    " = ",
    ", ",
    " }",
    "{ ",
    "]",
    "[",
    "[[route]]",
    "\ntls = { verify = false }\n",
    "\", expect = 500, x = \"",
    "${HOME}",
    "${file:/etc/passwd}",
    "$${",
    "#",
    "\u{2028}",
    "😀",
    "a",
];

const NAMES: &[&str] = &[
    "balance",
    "hash",
    "on",
    "inFlightMax",
    "queue",
    "lengthMax",
    "waitMax",
    "check",
    "header",
    "expectJson",
    "expect",
    "kind",
    "passive",
    "affinity",
    "cookie",
    "scaling",
    "serversMax",
    "timeouts",
    "retries",
    "maintenance",
    "rateLimit",
    "requests",
    "by",
    "scope",
    "compress",
    "types",
    "authentication",
    "basic",
    "usersSecret",
    "jwt",
    "keysConfigMap",
    "keysUrl",
    "claims",
    "claimHeaders",
    "forward",
    "backendRef",
    "path",
    "name",
    "port",
    "realm",
    "issuer",
    "tls",
    "http",
];

fn seeds(count: u64) -> std::ops::RangeInclusive<u64> {
    let replayed = std::env::var("WEIR_SEED").ok().map(|seed| seed.parse::<u64>().unwrap());
    replayed.map_or(1..=count, |seed| seed..=seed)
}

#[test]
fn texts_stay_texts_whatever_is_in_them() {
    for seed in seeds(400) {
        let _guard = Seed(seed);
        let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        let (name, value) = (format!("k{}", random.text()), random.text());
        let check = json!({ "check": { "path": "/x", "expectJson": { name.as_str(): value.as_str(), "~": "last" }, "interval": "3s" }, "whenFull": 429 });
        let terms = ServiceTerms::read(&spec(check))
            .unwrap_or_else(|mistakes| panic!("{name:?} {value:?} {mistakes:?}"));
        let (before, mut after) = (service("1.1"), service("1.1"));
        terms.set(&mut after);
        let check = after.check.take().unwrap();
        let CheckKind::Http { path, body, .. } = check.kind else { panic!("{check:?}") };
        assert_eq!(path, "/x");
        assert_eq!(body.json, [(name.clone(), value.clone()), ("~".to_owned(), "last".to_owned())]);
        assert_eq!(check.interval.as_secs(), 3);
        assert_eq!(std::mem::replace(&mut after.when_full, before.when_full), 429);
        assert_eq!(after, before, "nothing else is set");

        let jwt = json!({ "authentication": { "jwt": { "keysConfigMap": "keys", "issuer": ["first", format!("i{value}")], "claims": { name.as_str(): format!("v{value}") } } } });
        let terms = RouteTerms::read(&spec(jwt), &material).unwrap_or_else(|m| panic!("{m:?}"));
        let AuthenticationScheme::Token(rules) =
            terms.authentication.unwrap().authentication.scheme
        else {
            panic!("a token")
        };
        assert_eq!(rules.issuers, ["first".to_owned(), format!("i{value}")]);
        assert_eq!(rules.claims, [(name, format!("v{value}"))]);
        assert!(terms.limits.is_empty() && !rules.symmetric_keys);
    }
}

#[test]
fn no_policy_panics_and_no_mistake_speaks_of_files() {
    for seed in seeds(2000) {
        let _guard = Seed(seed);
        let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        let spec = random.object(5);
        let _ = RouteTerms::references(&spec);
        if let Err(mistakes) = ServiceTerms::read(&spec) {
            in_words_of_policies(&mistakes);
        }
        if let Err(mistakes) = RouteTerms::read(&spec, &material) {
            in_words_of_policies(&mistakes);
        }
    }
}

#[test]
fn long_and_deep_policies_are_refused() {
    let mut deep = json!({});
    for _ in 0..200 {
        deep = json!({ "header": deep, "check": [deep] });
        if let Value::Object(map) = &mut deep {
            map.remove("check");
        }
    }
    let mistakes = ServiceTerms::read(&spec(json!({ "check": deep }))).unwrap_err();
    in_words_of_policies(&mistakes);
    let too_long = "spec: the policy is too long: at most 4096 entries of lists and objects, and 64 KiB of text\n";
    for check in [
        json!({ "expectBody": "x".repeat(1_500_000) }),
        json!({ "expect": vec![200; 5000] }),
        json!({ "expect": vec![vec![200; 50]; 100] }),
    ] {
        let long = spec(json!({ "check": check }));
        assert_eq!(mistakes_of(&ServiceTerms::read(&long).unwrap_err()), too_long);
        assert_eq!(mistakes_of(&RouteTerms::read(&long, &material).unwrap_err()), too_long);
    }
    let check = json!({
        "expectBody": "x".repeat(4097),
        "expect": vec![200; 65],
        "header": (0..65).map(|n| (format!("X-{n}"), json!("a"))).collect::<Map<_, _>>(),
    });
    let mistakes = ServiceTerms::read(&spec(json!({ "check": check }))).unwrap_err();
    in_words_of_policies(&mistakes);
    let shown = "spec.check.expectBody: too long: at most 4096 characters\n\
         spec.check.expect: at most 64 entries, not 65\n\
         spec.check.header: at most 64 entries, not 65\n";
    assert_eq!(mistakes_of(&mistakes), shown);
    let name = json!({ "check": { "expectJson": { "y".repeat(4097): "a" } } });
    let shown = format!(
        "spec.check.expectJson[\"{}…\"]: too long: at most 4096 characters\n",
        "y".repeat(60)
    );
    assert_eq!(mistakes_of(&ServiceTerms::read(&spec(name)).unwrap_err()), shown);
}

/// Every key is wrong: how many mistakes are found must not depend on how many there are.
#[test]
fn reading_stops_at_a_bounded_number_of_mistakes() {
    let wrong = |name: &str| (format!("{name}{}", "x".repeat(9)), json!({ "a": [1] }));
    let many = (0..1000).map(|n| wrong(&format!("k{n}"))).collect::<Map<_, _>>();
    let limits: Vec<_> = (0..64).map(|_| json!({ "requests": 0, "per": "0s", "by": 1 })).collect();
    let of_limits = spec(json!({ "rateLimit": limits, "compress": many.clone() }));
    for mistakes in [
        ServiceTerms::read(&many).unwrap_err(),
        RouteTerms::read(&many, &material).unwrap_err(),
        RouteTerms::read(&of_limits, &material).unwrap_err(),
    ] {
        in_words_of_policies(&mistakes);
        assert!(mistakes.len() <= 16, "{}", mistakes.len());
    }
    let no_material = |reference: Reference<'_>| -> Result<Material, String> {
        panic!("{reference:?} is read although reading has stopped")
    };
    let mut stopped = many;
    stopped.insert("authentication".to_owned(), json!({ "basic": { "usersSecret": "staff" } }));
    assert_eq!(RouteTerms::read(&stopped, &no_material).unwrap_err().len(), 16);
}

/// Asserts that a schema is structural.
fn is_structural(node: &Value, at: &str) {
    let node = node.as_object().unwrap_or_else(|| panic!("{at}: {node}"));
    let is_open = node.get("x-kubernetes-preserve-unknown-fields") == Some(&json!(true));
    let is_either = node.get("x-kubernetes-int-or-string") == Some(&json!(true));
    assert!(node.contains_key("type") != (is_open || is_either), "{at}");
    for (key, value) in node {
        match key.as_str() {
            "properties" => {
                for (name, node) in value.as_object().unwrap() {
                    assert!(!name.contains('_'), "{at}.{name}");
                    assert!(
                        node["description"].as_str().is_some_and(|text| text.ends_with('.')),
                        "{at}.{name}"
                    );
                    is_structural(node, &format!("{at}.{name}"));
                }
            }
            "items" | "additionalProperties" => is_structural(value, &format!("{at}[]")),
            "required" => {
                let is_known =
                    |name: &Value| node["properties"].get(name.as_str().unwrap()).is_some();
                assert!(value.as_array().unwrap().iter().all(is_known), "{at}: {value}");
            }
            "type"
            | "format"
            | "enum"
            | "minimum"
            | "maximum"
            | "minLength"
            | "maxLength"
            | "maxItems"
            | "maxProperties"
            | "pattern"
            | "description"
            | "x-kubernetes-preserve-unknown-fields"
            | "x-kubernetes-int-or-string" => {}
            other => panic!("{at}: {other} is not in structural schemas"),
        }
    }
}

/// Returns whether a structural schema accepts a value (patterns aside) and declares each of its keys, so that the API server
/// prunes none.
fn accepts(node: &Value, value: &Value) -> bool {
    let number = value.as_f64().unwrap_or_default();
    let is_within = node["minimum"].as_f64().is_none_or(|min| min <= number)
        && node["maximum"].as_f64().is_none_or(|max| number <= max);
    let has_at_most =
        |bound: &str, length: usize| node[bound].as_u64().is_none_or(|max| length as u64 <= max);
    let is_listed = node["enum"].as_array().is_none_or(|all| all.contains(value));
    let has_required = |value: &Map<String, Value>| {
        let required = node["required"].as_array().into_iter().flatten();
        required.into_iter().all(|name| value.contains_key(name.as_str().unwrap()))
    };
    is_listed
        && match (node["type"].as_str(), value) {
            (None, Value::String(_)) => true,
            (None, Value::Number(_)) => is_within,
            (None, _) => node.get("x-kubernetes-preserve-unknown-fields").is_some(),
            (Some("boolean"), value) => value.is_boolean(),
            (Some("string"), Value::String(text)) => has_at_most("maxLength", text.chars().count()),
            (Some("integer"), value) => number.fract() == 0.0 && value.is_number() && is_within,
            (Some("number"), value) => value.is_number() && is_within,
            (Some("array"), Value::Array(items)) => {
                has_at_most("maxItems", items.len())
                    && items.iter().all(|item| accepts(&node["items"], item))
            }
            (Some("object"), Value::Object(entries)) => {
                let of =
                    |name: &str| node["properties"].get(name).or(node.get("additionalProperties"));
                has_required(entries)
                    && has_at_most("maxProperties", entries.len())
                    && entries.iter().all(|(name, value)| {
                        of(name).is_some_and(|node| value.is_null() || accepts(node, value))
                    })
            }
            _ => false,
        }
}

#[test]
fn schemas_are_structural_and_accept_what_is_read() {
    let (service, route) = (schema(Kind::Service), schema(Kind::Route));
    is_structural(&service, "spec");
    is_structural(&route, "spec");
    for case in cases() {
        let of_service = case["kind"] == "Service";
        let node = if of_service { &service } else { &route };
        let is_read =
            outcome(case["kind"].as_str().unwrap(), case["spec"].as_object().unwrap()).is_ok();
        // What the schema accepts may still have mistakes; what is read must be accepted.
        assert!(accepts(node, &case["spec"]) || !is_read, "{case}");
    }
    let bytes = service.to_string().len() + route.to_string().len();
    assert!(bytes < 40_000, "{bytes} bytes: descriptions are to be short");
}

/// Returns a value that a schema accepts; `None` if it does not tell which.
fn example(node: &Value) -> Option<Value> {
    if let Some(words) = node["enum"].as_array() {
        return words.last().cloned();
    }
    match node["type"].as_str() {
        Some("boolean") => Some(json!(true)),
        Some("integer") => Some(node["minimum"].clone()),
        Some("number") => Some(node["maximum"].clone()),
        Some("string") => match node["pattern"].as_str() {
            Some(pattern) if pattern.contains("ms|s") => Some(json!("30s")),
            Some("^/") => Some(json!("/x")),
            _ => None,
        },
        None if node.get("x-kubernetes-int-or-string").is_some() => Some(json!(1024)),
        _ => None,
    }
}

#[test]
fn examples_of_the_schema_are_read() {
    let node = schema(Kind::Service);
    let mut tried = 0;
    for (name, node) in node["properties"].as_object().unwrap() {
        let singles = example(node).map(|value| json!({ name.as_str(): value }));
        let below = node["properties"].as_object().into_iter().flatten();
        let below = below.filter_map(|(key, node)| {
            let mut value = json!({ key.as_str(): example(node)? });
            match name.as_str() {
                "affinity" => value["cookie"] = json!("a"),
                "scaling" if value["serversMax"].is_null() => value["serversMax"] = json!(5),
                _ => {}
            }
            if (name.as_str(), key.as_str()) == ("check", "http") {
                value["kind"] = json!("http");
            }
            Some(json!({ name.as_str(): value, "balance": "hash", "inFlightMax": 3 }))
        });
        for spec in singles.into_iter().chain(below) {
            tried += 1;
            if let Err(mistakes) = ServiceTerms::read(spec.as_object().unwrap()) {
                panic!("{spec}: {mistakes:?}");
            }
        }
    }
    assert!(tried > 30, "{tried}");
}
