//! Certificates that other members of a fleet order: used, stored and published, and not ordered here. Nothing listens at
//! the authority's address.

#![allow(clippy::unwrap_used, clippy::panic, reason = "test code")]

mod support;

use std::sync::Arc;
use std::time::Duration;

use acme::{Event, Source};
use model::CertificateOwner;
use rcgen::{CertificateParams, KeyPair};
use support::{Folder, Pki, Running, settings};
use tls::{Challenges, SharedCertificates, certificate_id};

/// Port 1 of loopback: nothing listens there.
const DIRECTORY: &str = "https://127.0.0.1:1/dir";
const NAME: &str = "a.example";
/// Longer than anything takes here that happens at all.
const SOON: Duration = Duration::from_secs(20);
/// Long enough to see that nothing happens.
const A_WHILE: Duration = Duration::from_millis(500);

/// A private key and a chain, valid from so many hours before now to so many after it.
fn pem(name: &str, (before, after): (i64, i64)) -> Arc<[u8]> {
    let mut params = CertificateParams::new([name.to_owned()]).unwrap();
    let now_s = os::clock::wall().as_secs().cast_signed();
    let at = |hours: i64| {
        let since = Duration::from_secs((now_s + hours * 3_600).cast_unsigned());
        rcgen::date_time_ymd(1970, 1, 1) + since
    };
    (params.not_before, params.not_after) = (at(-before), at(after));
    let key = KeyPair::generate().unwrap();
    let certificate = params.self_signed(&key).unwrap();
    (key.serialize_pem() + &certificate.pem()).into_bytes().into()
}

struct Stage {
    shared: Arc<SharedCertificates>,
    running: Running,
    id: model::CertificateId,
    settings: model::Acme,
    _folder: Folder,
}

/// A member that shares, and does not know yet who orders.
fn start(test: &str) -> Stage {
    let folder = Folder::new(test);
    let settings = settings(DIRECTORY, &Pki::new().ca, &folder.0, &[NAME]);
    let shared = Arc::new(SharedCertificates::default());
    shared.set_shared(true);
    let running = Running::in_fleet(&settings, &Arc::<Challenges>::default(), Arc::clone(&shared));
    let id = certificate_id(DIRECTORY, &[NAME.to_owned()]);
    Stage { shared, running, id, settings, _folder: folder }
}

impl Stage {
    fn set_owner(&self, owner: CertificateOwner) {
        self.shared.set_owners([(self.id, owner)].into(), 0);
    }

    /// What it publishes that it has.
    fn published(&self) -> Option<Arc<[u8]>> {
        let wanted = self.shared.wanted();
        let [(id, issued)] = &wanted[..] else { panic!("{wanted:?}") };
        assert_eq!(*id, self.id);
        issued.as_ref().map(|issued| Arc::clone(&issued.pem))
    }

    fn stored(&self) -> Option<Arc<[u8]>> {
        let stored = acme::stored(&self.settings, &[NAME.to_owned()]).unwrap();
        stored.map(|stored| stored.certificate.chain.bytes)
    }
}

#[test]
fn it_orders_only_what_is_its_own() {
    let mut stage = start("fleet-owner");
    assert!(stage.running.event(A_WHILE).is_none(), "it is not known who orders");
    assert_eq!(stage.published(), None);
    stage.set_owner(CertificateOwner::Other("b2".into()));
    assert!(stage.running.event(A_WHILE).is_none(), "another one orders");
    let now = || os::clock::now();
    assert!(!stage.shared.is_unable(now()));
    stage.set_owner(CertificateOwner::Own);
    stage.running.failure();
    assert!(stage.shared.is_unable(now()), "another one may reach the authority");
    // The next attempt is its own, when it is due.
    assert!(stage.running.event(A_WHILE).is_none());
    assert!(!stage.shared.is_ordering());
}

#[test]
fn a_newer_certificate_of_another_member_is_used_and_stored() {
    let mut stage = start("fleet-receive");
    stage.set_owner(CertificateOwner::Other("b2".into()));
    let give =
        |stage: &Stage, pem: &Arc<[u8]>| stage.shared.add_received(stage.id, Arc::clone(pem));
    let first = pem(NAME, (2, 100));
    give(&stage, &first);
    let update = stage.running.certificate();
    assert_eq!(update.source, Source::AnotherMember);
    assert_eq!(update.stored.certificate.chain.bytes, first);
    assert_eq!(stage.stored().as_ref(), Some(&first));

    // An older one that is valid for longer, and the same again.
    for older in [pem(NAME, (3, 1_000)), Arc::clone(&first)] {
        give(&stage, &older);
        assert!(stage.running.event(A_WHILE).is_none());
    }
    // A newer one that is valid for a shorter time.
    let newer = pem(NAME, (1, 50));
    give(&stage, &newer);
    assert_eq!(stage.running.certificate().stored.certificate.chain.bytes, newer);
    assert_eq!(stage.published().as_ref(), Some(&newer));
}

#[test]
fn what_cannot_be_used_is_reported_and_changes_nothing() {
    let mut stage = start("fleet-refuse");
    stage.set_owner(CertificateOwner::Other("b2".into()));
    let good = pem(NAME, (1, 50));
    let half = good.len() / 2;
    for (bad, why) in [
        (pem("b.example", (1, 50)), "other names: b.example"),
        (pem(NAME, (50, -1)), "not valid at this time"),
        (pem(NAME, (-48, 50)), "not valid at this time"),
        (good[half..].into(), ""),
        (Arc::from(*b"no PEM"), ""),
        (Arc::from(*b""), ""),
    ] {
        stage.shared.add_received(stage.id, bad);
        match stage.running.event(SOON) {
            Some(Event::NotUsed { names, why: said }) => {
                assert_eq!(names, [NAME]);
                assert!(said.contains(why) && said.lines().count() == 1, "{said}");
                assert!(!said.contains("PRIVATE"), "{said}");
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!((stage.stored(), stage.published()), (None, None));
    stage.shared.add_received(stage.id, Arc::clone(&good));
    stage.running.certificate();
}
