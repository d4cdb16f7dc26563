//! Passwords with a replaced verification, which is counted and held: what is shared, bounded and renewed.

use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use super::super::queue::{CLIENT_JOBS_MAX, JOBS_MAX};
use super::*;

/// Users with the password `secret`, made by `htpasswd -nbBC 4 USER secret`.
pub(crate) const USERS: &str = "ann:$2y$04$CwQcP2leVdX4hmU2oeI.R.ggy/N96dMpc.jGUz6/qp3PJfEfhJ4yG\n\
                                held:$2y$04$CwQcP2leVdX4hmU2oeI.R.ggy/N96dMpc.jGUz6/qp3PJfEfhJ4yG\n";

/// Holds verifications until it is opened, and counts them.
pub(crate) struct Gate {
    /// How many have come to it, and whether it is open.
    state: Mutex<(usize, bool)>,
    changed: Condvar,
}

impl Gate {
    const fn closed() -> Gate {
        Gate { state: Mutex::new((0, false)), changed: Condvar::new() }
    }

    fn pass(&self) {
        let mut state = self.state.lock().unwrap();
        state.0 += 1;
        self.changed.notify_all();
        drop(self.changed.wait_while(state, |(_, is_open)| !*is_open).unwrap());
    }

    pub(crate) fn open(&self) {
        self.state.lock().unwrap().1 = true;
        self.changed.notify_all();
    }

    /// Waits until so many verifications have come.
    pub(crate) fn wait_for(&self, wanted: usize) {
        let state = self.state.lock().unwrap();
        drop(self.changed.wait_while(state, |(count, _)| *count < wanted).unwrap());
    }

    fn count(&self) -> usize {
        self.state.lock().unwrap().0
    }
}

/// Holds the verifications of the user `held` in all instances that are made by [`Passwords::new`].
pub(crate) static HELD: Gate = Gate::closed();

pub(super) fn hold(user: &str) {
    if user == "held" {
        HELD.pass();
    }
}

fn users() -> Arc<Users> {
    Arc::new(Users::parse(USERS.as_bytes()).unwrap())
}

fn credentials(user: &str, password: &str) -> Credentials {
    Credentials::new(user, password.as_bytes()).unwrap()
}

fn passwords(threads: usize, verify: Verify) -> Passwords {
    let successes = SuccessCache::new([7; 32], 100, Duration::from_mins(1));
    Passwords::with(successes, threads, verify)
}

/// What verifies in these tests does not look at hashes.
fn quick(_: &Users, credentials: &Credentials) -> Verdict {
    if credentials.password() == b"secret" { Verdict::Accepted } else { Verdict::WrongPassword }
}

const HERE: Place = Place { authentication: 0, client: 1 };

fn from(client: u64) -> Place {
    Place { authentication: 0, client }
}

fn waiting(checked: Result<Checked, Refused>) -> Waiting {
    match checked.unwrap() {
        Checked::Waiting(waiting) => waiting,
        Checked::Known => panic!("known"),
    }
}

#[test]
fn equal_credentials_share_one_verification_and_its_verdict() {
    static GATE: Gate = Gate::closed();
    let passwords = passwords(2, |users, credentials| {
        GATE.pass();
        quick(users, credentials)
    });
    let users = users();
    // Each from another client, which has no influence on the verdict.
    let ask = |password, client| {
        let credentials = credentials("ann", password);
        passwords.check(&users, credentials, from(client), os::clock::now())
    };
    let right: Vec<Waiting> = (0..200).map(|client| waiting(ask("secret", client))).collect();
    let wrong: Vec<Waiting> = (0..200).map(|client| waiting(ask("secres", client))).collect();
    GATE.wait_for(2);
    GATE.open();
    for waiting in right {
        assert_eq!(waiting.blocking_recv().unwrap(), Ok(Verdict::Accepted));
    }
    for waiting in wrong {
        assert_eq!(waiting.blocking_recv().unwrap(), Ok(Verdict::WrongPassword));
    }
    assert_eq!(GATE.count(), 2);
    // Only the success is remembered.
    assert!(matches!(ask("secret", 1), Ok(Checked::Known)));
    assert_eq!(waiting(ask("secres", 1)).blocking_recv().unwrap(), Ok(Verdict::WrongPassword));
    assert_eq!(GATE.count(), 3);
    assert!(passwords.pool.lock().pending.is_empty());
}

#[test]
fn two_hundred_threads_with_one_password_compute_one_hash() {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let passwords = passwords(4, |users, credentials| {
        COUNT.fetch_add(1, SeqCst);
        users.verify(credentials.user(), credentials.password())
    });
    let (users, together) = (users(), Barrier::new(200));
    std::thread::scope(|scope| {
        for _ in 0..200 {
            scope.spawn(|| {
                let credentials = credentials("ann", "secret");
                together.wait();
                match passwords.check(&users, credentials, HERE, os::clock::now()).unwrap() {
                    Checked::Known => {}
                    Checked::Waiting(waiting) => {
                        assert_eq!(waiting.blocking_recv().unwrap(), Ok(Verdict::Accepted));
                    }
                }
            });
        }
    });
    assert_eq!(COUNT.load(SeqCst), 1);
}

#[test]
fn other_users_and_changed_hashes_are_verified_by_themselves() {
    static GATE: Gate = Gate::closed();
    let passwords = passwords(1, |users, credentials| {
        GATE.pass();
        users.verify(credentials.user(), credentials.password())
    });
    let users = users();
    let other = USERS.replace("ann:", "bob:").replace("CwQcP2", "CwQcP3");
    let changed = Arc::new(Users::parse(other.replace("held:", "ann:").as_bytes()).unwrap());
    let ask = |users, user| {
        waiting(passwords.check(users, credentials(user, "secret"), HERE, os::clock::now()))
    };
    let asked = [ask(&users, "ann"), ask(&users, "held"), ask(&changed, "ann"), ask(&users, "bob")];
    GATE.open();
    let verdicts = asked.map(|waiting| waiting.blocking_recv().unwrap().unwrap());
    let wanted =
        [Verdict::Accepted, Verdict::Accepted, Verdict::WrongPassword, Verdict::UnknownUser];
    assert_eq!((verdicts, GATE.count()), (wanted, 4));
}

#[test]
fn those_who_wait_for_one_verification_are_bounded() {
    static GATE: Gate = Gate::closed();
    let passwords = passwords(1, |users, credentials| {
        GATE.pass();
        quick(users, credentials)
    });
    let users = users();
    let ask = || passwords.check(&users, credentials("ann", "secret"), HERE, os::clock::now());
    let mut all: Vec<Waiting> = (0..WAITERS_MAX).map(|_| waiting(ask())).collect();
    assert_eq!(ask().unwrap_err(), Refused("too many requests wait for this password"));
    // Those who have gone make room.
    all.truncate(10);
    all.push(waiting(ask()));
    GATE.open();
    for waiting in all {
        assert_eq!(waiting.blocking_recv().unwrap(), Ok(Verdict::Accepted));
    }
}

#[test]
fn a_panic_ends_one_verification_and_no_thread() {
    let passwords = passwords(1, |users, credentials| {
        assert!(credentials.user() != "held", "made by a test");
        quick(users, credentials)
    });
    let users = users();
    let ask = |user| {
        waiting(passwords.check(&users, credentials(user, "secret"), HERE, os::clock::now()))
            .blocking_recv()
    };
    assert!(ask("held").is_err());
    assert!(ask("held").is_err());
    assert_eq!(ask("ann").unwrap(), Ok(Verdict::Accepted));
    assert!(passwords.pool.lock().pending.is_empty());
}

#[test]
fn a_client_that_floods_gives_way_and_clients_that_have_gone_cost_nothing() {
    static GATE: Gate = Gate::closed();
    let passwords = passwords(1, |users, credentials| {
        GATE.pass();
        quick(users, credentials)
    });
    let users = users();
    let ask = |client: u64, password: &str| {
        passwords.check(&users, credentials("ann", password), from(client), os::clock::now())
    };
    let running = waiting(ask(0, "running"));
    GATE.wait_for(1);
    let mut flood = Vec::new();
    for client in 1..=(JOBS_MAX / CLIENT_JOBS_MAX) as u64 {
        for n in 0..CLIENT_JOBS_MAX {
            flood.push(waiting(ask(client, &format!("guess {client} {n}"))));
        }
        let refused = ask(client, "one more").unwrap_err();
        assert_eq!(refused, Refused("too many passwords of this client wait"));
    }
    let served = waiting(ask(100, "secret"));
    let displaced = flood.pop().unwrap().blocking_recv().unwrap();
    assert_eq!(displaced, Err(Refused("gave way to the password of another client")));
    // Their clients go: their places are free, for the same clients, too.
    drop(flood);
    let last = waiting(ask(1, "wrong"));
    GATE.open();
    assert_eq!(running.blocking_recv().unwrap(), Ok(Verdict::WrongPassword));
    assert_eq!(served.blocking_recv().unwrap(), Ok(Verdict::Accepted));
    assert_eq!(last.blocking_recv().unwrap(), Ok(Verdict::WrongPassword));
    assert_eq!(GATE.count(), 3, "no one waited for the others");
    assert!(passwords.pool.lock().pending.is_empty());
}

#[test]
fn a_success_in_use_is_renewed_once_before_it_ends() {
    static FIRST: Gate = Gate::closed();
    static SECOND: Gate = Gate::closed();
    let passwords = passwords(1, |users, credentials| {
        if FIRST.count() == 0 {
            FIRST.pass();
        } else {
            SECOND.pass();
        }
        quick(users, credentials)
    });
    let users = users();
    let ask = |now| passwords.check(&users, credentials("ann", "secret"), HERE, now);
    FIRST.open();
    let verdict = waiting(ask(os::clock::now())).blocking_recv().unwrap();
    assert_eq!(verdict, Ok(Verdict::Accepted));
    let verified = os::clock::now();
    // In the last quarter of the minute, by the clock of the requests.
    let soon = verified + Duration::from_secs(50);
    for _ in 0..10 {
        assert!(matches!(ask(soon), Ok(Checked::Known)), "no one waits");
    }
    SECOND.wait_for(1);
    assert!(matches!(ask(soon), Ok(Checked::Known)));
    // One that comes after the end waits for the same verification.
    let late = waiting(ask(verified + Duration::from_secs(61)));
    SECOND.open();
    assert_eq!(late.blocking_recv().unwrap(), Ok(Verdict::Accepted));
    assert_eq!((FIRST.count(), SECOND.count()), (1, 1));
}

#[test]
fn guesses_that_fill_the_queue_do_not_keep_a_success_from_being_renewed() {
    static RUNNING: Gate = Gate::closed();
    static ORDER: Mutex<Vec<String>> = Mutex::new(Vec::new());
    let passwords = passwords(1, |users, credentials| {
        if credentials.password() == b"running" {
            RUNNING.pass();
        }
        ORDER.lock().unwrap().push(credentials.user().to_owned());
        quick(users, credentials)
    });
    let users = users();
    let ask = |user: &str, password: &str, client, now| {
        passwords.check(&users, credentials(user, password), from(client), now)
    };
    let verified = os::clock::now();
    let verdict = waiting(ask("ann", "secret", 0, verified)).blocking_recv().unwrap();
    assert_eq!(verdict, Ok(Verdict::Accepted));
    let running = waiting(ask("held", "running", 0, verified));
    RUNNING.wait_for(1);
    // As many clients as there are places, so that none of them gives way.
    let guess = |n: u64| waiting(ask("held", &format!("guess {n}"), n, verified));
    let guesses: Vec<_> = (1..=JOBS_MAX as u64).map(guess).collect();
    assert!(ask("held", "one more", 100, verified).is_err());
    assert!(matches!(
        ask("ann", "secret", 0, verified + Duration::from_secs(50)),
        Ok(Checked::Known)
    ));
    RUNNING.open();
    for waiting in guesses {
        assert_eq!(waiting.blocking_recv().unwrap(), Ok(Verdict::WrongPassword));
    }
    drop(running);
    let order = ORDER.lock().unwrap();
    let renewed = order.iter().skip(2).position(|user| user == "ann");
    assert!(renewed.is_some_and(|after| after <= 1), "{order:?}");
}
