//! Faults that a real etcd cannot be made to have: the servers that are known stay, and Weir says why.

use e2e::Scene;
use e2e::etcd::{FakeEtcd, Fault};

use super::faults::{Case, Fake, survive};
use super::stage::{Server, WATCH_ETCD, etcd_at, key};

/// The longest line and the longest answer that Weir reads.
const READ_BYTES_MAX: usize = 16 << 20;
/// More keys than Weir reads.
const MORE_KEYS: &str = r#"{"header":{"revision":"9"},"more":true,"count":"99999"}"#;
/// Lines of a watch.
const NO_LEADER: &str = r#"{"error":{"grpc_code":14,"message":"etcdserver: no leader"}}"#;
const CANCELED: &str = r#"{"result":{"canceled":true,"cancel_reason":"out of mood"}}"#;

impl Fake for FakeEtcd {
    const DISCOVER: &'static str = WATCH_ETCD;

    fn start(scene: &Scene) -> FakeEtcd {
        FakeEtcd::start(scene.address(40, 2379))
    }

    fn table(&self) -> String {
        etcd_at(&[&self.url()])
    }

    fn list(&self, servers: &[&Server]) {
        let keys: Vec<String> = servers.iter().map(|&server| key(server)).collect();
        for (key, server) in keys.iter().zip(servers) {
            self.put(key, &server.address().to_string());
        }
        self.keys().iter().filter(|key| !keys.contains(key)).for_each(|key| self.delete(key));
    }

    fn heal(&mut self) {
        self.set_fault(None);
    }
}

fn watches_say(fake: &mut FakeEtcd, text: &str) {
    fake.set_fault(Some(Fault::Line(text.to_owned())));
}

fn lists_say(fake: &mut FakeEtcd, text: &str) {
    fake.set_fault(Some(Fault::Range(text.to_owned())));
}

#[test]
fn servers_stay_while_etcd_fails() {
    survive::<FakeEtcd>(&[
        Case::new(
            "500",
            |fake| {
                let text = "{\"error\":\"etcdserver: no leader\",\"code\":14}".to_owned();
                fake.set_fault(Some(Fault::Answer(500, text)));
            },
            &["500", "no leader"],
        ),
        Case::new("closes", |fake| fake.set_fault(Some(Fault::Close)), &["closed"]),
        Case::new("malformed", |fake| lists_say(fake, "{\"header\": {"), &["EOF"]),
        Case::new("no JSON", |fake| lists_say(fake, "\u{1b}[31m<html>"), &["expected value"]),
        Case::new(
            "huge answer",
            |fake| lists_say(fake, &" ".repeat(READ_BYTES_MAX + 1)),
            &["16777216 bytes"],
        ),
        Case::new("more keys than Weir reads", |fake| lists_say(fake, MORE_KEYS), &["keys"]),
    ]);
}

#[test]
fn servers_stay_while_watches_of_etcd_fail() {
    survive::<FakeEtcd>(&[
        Case::new("ends", |fake| fake.set_fault(Some(Fault::Ends)), &[]),
        Case::new("compacted", |fake| fake.set_fault(Some(Fault::compacted(2))), &[]),
        Case::new(
            "garbage later",
            |fake| fake.set_fault(Some(Fault::LaterLine("garbage".to_owned()))),
            &[],
        ),
        Case::new("garbage", |fake| watches_say(fake, "\u{1b}[31mgarbage"), &["expected value"]),
        Case::new("error", |fake| watches_say(fake, NO_LEADER), &["no leader"]),
        Case::new("canceled", |fake| watches_say(fake, CANCELED), &["out of mood"]),
        Case::new(
            "oversized line",
            |fake| fake.set_fault(Some(Fault::LongLine(READ_BYTES_MAX + 1))),
            &["longer than 16777216 bytes"],
        ),
    ]);
}

#[test]
fn servers_stay_while_etcd_hangs() {
    survive::<FakeEtcd>(&[Case::new("hangs", |fake| fake.set_fault(Some(Fault::Hang)), &["time"])]);
}
