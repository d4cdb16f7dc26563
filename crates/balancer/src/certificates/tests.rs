//! A panic of the thread that obtains certificates is noticed, and ends nothing else.

use std::fs::{self, File};
use std::path::PathBuf;
use std::thread;

use super::*;

/// A folder that is removed with the test.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A configuration with one certificate, of an authority that cannot be reached.
fn configured(folder: &Folder) -> Arc<Snapshot> {
    let authority = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    fs::write(folder.0.join("ca.pem"), authority.cert.pem()).unwrap();
    let state = folder.0.join("state");
    // Nothing listens on port 1; if something did, it would not be an authority.
    let text = format!(
        "[acme]\ndirectory = \"https://127.0.0.1:1/directory\"\nca = \"ca.pem\"\n\
         terms_agreed = true\nstate_directory = \"{}\"\n\
         [[listener]]\naddress = \"127.0.0.1:0\"\n\
         tls = {{ certificates = [{{ acme = \"a.example.com\" }}] }}\n\
         [[route]]\ndeny = 403\n",
        state.display()
    );
    let file = folder.0.join("weir.toml");
    fs::write(&file, text).unwrap();
    control::load::load(&file, false).outcome.unwrap().snapshot
}

#[test]
#[allow(clippy::disallowed_methods, reason = "no runtime is there to block")]
fn a_panic_of_the_thread_is_logged_once_and_ends_nothing_else() {
    let name = format!("weir-acme-panic-{}", std::process::id());
    let folder = Folder(std::env::temp_dir().join(name));
    fs::create_dir_all(&folder.0).unwrap();
    let mut snapshot = configured(&folder);
    let certificates = Certificates::open(&mut snapshot, None, false).unwrap();
    let settings = Arc::clone(snapshot.acme.as_ref().unwrap());
    let state = State::open(&settings, None).unwrap();
    let handle = acme::start(
        Arc::clone(&settings),
        state,
        certificates.challenges(),
        certificates.shared(),
        Box::new(|event| panic!("as this test wants it: {event:?}")),
    );
    let handle = handle.unwrap();
    let until = os::clock::now() + Duration::from_mins(1);
    while handle.is_running() {
        assert!(os::clock::now() < until, "the first failure is an event, and ends the thread");
        thread::sleep(Duration::from_millis(5));
    }
    let shared = certificates.shared();
    *lock(&certificates.thread) =
        Some(Thread { settings, handle: Some(handle), shared, is_logged: false });

    let file = folder.0.join("log");
    let log = tracing_subscriber::fmt().with_writer(File::create(&file).unwrap()).finish();
    tracing::subscriber::with_default(log, || {
        for _ in 0..3 {
            certificates.tend(&snapshot, true);
        }
    });
    let log = fs::read_to_string(&file).unwrap();
    assert_eq!(log.matches("the ACME thread has stopped").count(), 1, "{log}");
    let shown = report(&certificates.thread()).unwrap();
    assert!(!shown.running, "{shown:?}");
    assert_eq!(shown.certificates[0].names, ["a.example.com"]);
    // The listener keeps the certificate that it has.
    assert!(certificates.renewed(&snapshot).is_none());

    // A process that stops or hands over waits for the thread.
    certificates.stop();
    assert!(report(&certificates.thread()).is_none());
}
