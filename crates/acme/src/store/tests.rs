//! Tests of the state directory, with files that are whole, damaged or someone else's.

use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use model::{AcmeChallenge, AcmeRenewal};

use super::*;

/// A folder that is removed with its test.
struct Folder(PathBuf);

impl Folder {
    fn new(test: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("weir-acme-{test}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        Folder(path)
    }

    fn settings(&self, directory: &str) -> Acme {
        Acme {
            directory: directory.into(),
            ca: Material { path: "ca.pem".into(), bytes: b""[..].into() },
            contacts: Vec::new(),
            terms_agreed: true,
            external_account: None,
            certificates: Vec::new(),
            challenge: AcmeChallenge::Http01,
            profile: None,
            renewal: AcmeRenewal::default(),
            state: self.0.join("state"),
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

const URL: &str = "https://acme.example/directory";

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(ToString::to_string).collect()
}

/// Returns key and chain of a certificate.
fn pem(names: &[String]) -> String {
    let made = crate::placeholder(names).unwrap();
    let text = |material: &Material| String::from_utf8(material.bytes.to_vec()).unwrap();
    text(&made.key) + &text(&made.chain)
}

fn locked(state: &State) -> Lock {
    state.lock().unwrap().unwrap()
}

#[test]
fn a_certificate_is_found_by_its_names_in_any_order_and_for_its_authority_only() {
    let folder = Folder::new("found");
    let settings = folder.settings(URL);
    let both = names(&["a.example", "b.example"]);
    assert!(stored(&settings, &both).unwrap().is_none());
    assert!(!settings.state.exists());

    let state = State::open(&settings, None).unwrap();
    let pem = pem(&both);
    state.put_certificate(&locked(&state), &both, pem.as_bytes()).unwrap();
    let found = stored(&settings, &both).unwrap().unwrap();
    assert_eq!(&*found.certificate.key.bytes, pem.as_bytes());
    assert!((os::clock::wall().as_secs().cast_signed() - found.stored_s).abs() < 60);
    // The first name stands in the file's name, so the order matters there; it does not elsewhere.
    assert!(stored(&settings, &names(&["a.example", "b.example", "a.example"])).unwrap().is_some());
    for other in [&["a.example"][..], &["a.example", "c.example"]] {
        assert!(stored(&settings, &names(other)).unwrap().is_none());
    }
    let staging = folder.settings("https://acme.example/staging");
    assert!(stored(&staging, &both).unwrap().is_none());

    let mode = |path: &Path| std::fs::metadata(path).unwrap().mode() & 0o777;
    assert_eq!(mode(&state.folder), 0o700);
    for entry in std::fs::read_dir(&state.folder).unwrap() {
        assert_eq!(mode(&entry.unwrap().path()), 0o600);
    }
}

#[test]
fn damaged_files_are_reported_in_one_line_and_never_used() {
    let folder = Folder::new("damaged");
    let settings = folder.settings(URL);
    let state = State::open(&settings, None).unwrap();
    let own = names(&["a.example"]);
    let path = state.path(&own, "pem");
    let whole = pem(&own);
    let other_key = pem(&own);
    let mixed = other_key.split("-----BEGIN CERTIFICATE").next().unwrap().to_owned()
        + &whole[whole.find("-----BEGIN CERTIFICATE").unwrap()..];
    let cases = [
        String::new(),
        "\0\u{1}\u{2}".to_owned(),
        mixed,
        pem(&names(&["b.example"])),
        "x".repeat(FILE_MAX_BYTES as usize + 1),
    ];
    let cut = (1..20).map(|part| whole[..whole.len() * part / 20].to_owned());
    for contents in cases.into_iter().chain(cut) {
        put(&path, contents.as_bytes()).unwrap();
        let error = stored(&settings, &own).unwrap_err().to_string();
        assert_eq!(error.lines().count(), 1, "{error}");
        assert!(error.contains("a.example-") && !error.contains("PRIVATE"), "{error}");
    }
    std::fs::remove_file(&path).unwrap();
    symlink("/etc/passwd", &path).unwrap();
    assert!(stored(&settings, &own).unwrap_err().to_string().contains("symbolic link"));
    std::fs::remove_file(&path).unwrap();
    std::fs::create_dir(&path).unwrap();
    stored(&settings, &own).unwrap_err();

    put(&state.account_path(), b"{\"credentials\":{\"key_pkcs8\":\"c2VjcmV0\"").unwrap();
    let error = state.account().err().unwrap().to_string();
    assert!(error.contains("line 1") && !error.contains("c2Vjcm"), "{error}");
}

#[test]
fn a_file_that_others_may_read_is_refused() {
    let folder = Folder::new("mode");
    let settings = folder.settings(URL);
    let state = State::open(&settings, None).unwrap();
    let own = names(&["a.example"]);
    state.put_certificate(&locked(&state), &own, pem(&own).as_bytes()).unwrap();
    let path = state.path(&own, "pem");
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o644)).unwrap();
    assert!(stored(&settings, &own).unwrap_err().to_string().contains("chmod 600"));
}

#[test]
fn what_a_crash_leaves_is_replaced_and_a_link_is_not_followed() {
    let folder = Folder::new("crash");
    let state = State::open(&folder.settings(URL), None).unwrap();
    let own = names(&["a.example"]);
    let path = state.path(&own, "pem");
    let elsewhere = folder.0.join("elsewhere");
    std::fs::write(&elsewhere, "precious").unwrap();
    symlink(&elsewhere, path.with_added_extension("new")).unwrap();
    state.put_certificate(&locked(&state), &own, pem(&own).as_bytes()).unwrap();
    assert_eq!(std::fs::read_to_string(&elsewhere).unwrap(), "precious");
    assert!(state.certificate(&own).unwrap().is_some());
    assert!(!path.with_added_extension("new").exists());
}

#[test]
fn links_where_others_can_write_are_not_followed_for_a_user() {
    let folder = Folder::new("links");
    let settings = folder.settings("https://acme.example.com/dir");
    let user = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    let (mode, open) = (|path: &Path| std::fs::metadata(path).unwrap().mode() & 0o777, 0o755);
    let target = folder.0.join("target");
    for directory in [&settings.state, &target] {
        std::fs::create_dir_all(directory).unwrap();
    }
    std::fs::set_permissions(&target, PermissionsExt::from_mode(open)).unwrap();
    std::fs::set_permissions(&settings.state, PermissionsExt::from_mode(0o777)).unwrap();
    symlink(&target, super::folder(&settings)).unwrap();
    let refused = State::open(&settings, Some(user)).unwrap_err().to_string();
    assert!(refused.contains("is a link"), "{refused}");
    assert_eq!((mode(&target), target.join("lock").exists()), (open, false));
    // Without a switch of users, a link leads nowhere that the process could not go itself.
    State::open(&settings, None).unwrap();
    assert_eq!((mode(&target), target.join("lock").exists()), (0o700, true));
    // A lock that is a link is never opened.
    std::fs::remove_file(target.join("lock")).unwrap();
    symlink("/etc/passwd", target.join("lock")).unwrap();
    assert!(State::open(&settings, None).is_err());
}

#[test]
fn one_at_a_time_holds_the_lock() {
    let folder = Folder::new("lock");
    let settings = folder.settings(URL);
    let (first, second) =
        (State::open(&settings, None).unwrap(), State::open(&settings, None).unwrap());
    let held = locked(&first);
    assert!(second.lock().unwrap().is_none());
    assert!(first.lock().unwrap().is_none());
    drop(held);
    let _held = locked(&second);
    assert!(first.lock().unwrap().is_none());
    // Other authorities are not concerned.
    let other = folder.settings("https://other.example/directory");
    let _other = locked(&State::open(&other, None).unwrap());
}

#[test]
fn names_make_harmless_file_names() {
    for (shown, expected) in [
        ("example.org", "example.org-"),
        ("../../etc/passwd", "_._.._etc_passwd-"),
        (".hidden", "_hidden-"),
        ("2001:db8::1", "2001_db8__1-"),
        ("*.example.org\0", "_.example.org_-"),
        ("", "-"),
    ] {
        let name = file_name(shown, shown);
        assert!(name.starts_with(expected), "{name}");
        assert_eq!(name.len(), expected.len() + 16, "{name}");
    }
    assert!(file_name(&"x".repeat(500), "").len() < 100);
}

#[test]
fn a_directory_that_cannot_be_made_is_said_with_the_remedy() {
    let folder = Folder::new("refused");
    std::fs::create_dir_all(&folder.0).unwrap();
    std::fs::write(folder.0.join("state"), "a file").unwrap();
    let error = State::open(&folder.settings(URL), None).unwrap_err().to_string();
    assert!(error.contains("must be able to write there"), "{error}");
}
