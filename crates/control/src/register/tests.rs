//! Tests of entries with an agent that answers as a test says.

use std::cell::RefCell;
use std::sync::mpsc::sync_channel;

use model::{BlockingQueries, HttpPeer, Text};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::*;
use crate::testing::{DEADLINE, block_on};

/// Returns the status of an answer to a request, and for how long it is held back.
type Script = Box<dyn Fn(&str) -> (u16, Duration)>;

struct ScriptedAgent {
    url: String,
    /// Method, path and token of each request.
    requests: RefCell<Vec<String>>,
    script: RefCell<Script>,
}

impl ScriptedAgent {
    async fn start() -> Rc<ScriptedAgent> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let agent = Rc::new(ScriptedAgent {
            url: format!("http://{}", listener.local_addr().unwrap()),
            requests: RefCell::default(),
            script: RefCell::new(Box::new(|_| (200, Duration::ZERO))),
        });
        let shared = Rc::clone(&agent);
        tokio::task::spawn_local(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::task::spawn_local(Rc::clone(&shared).serve(stream));
            }
        });
        agent
    }

    async fn serve(self: Rc<Self>, mut stream: TcpStream) {
        let mut head = String::new();
        while !head.contains("\r\n\r\n") {
            let mut piece = [0; 4096];
            let count = stream.read(&mut piece).await.unwrap();
            head.push_str(&String::from_utf8_lossy(&piece[..count]));
        }
        let mut words = head.split(' ');
        let (method, target) = (words.next().unwrap(), words.next().unwrap());
        let path = target.split('?').next().unwrap();
        let token = head.lines().find_map(|line| line.strip_prefix("X-Consul-Token: "));
        let request = format!("{method} {path} {}", token.unwrap_or("-"));
        self.requests.borrow_mut().push(request.clone());
        let (status, pause) = (self.script.borrow())(&request);
        tokio::time::sleep(pause).await;
        let answer = format!("HTTP/1.1 {status} Some\r\nContent-Length: 0\r\n\r\n");
        // The client may be gone.
        let _ = stream.write_all(answer.as_bytes()).await;
    }

    /// Has requests answered with the first of these statuses whose text they contain, else with 200.
    fn answer(&self, script: &'static [(&'static str, u16)]) {
        self.hold(script, Duration::ZERO);
    }

    /// The same, and holds all answers back.
    fn hold(&self, script: &'static [(&'static str, u16)], pause: Duration) {
        *self.script.borrow_mut() = Box::new(move |request| {
            let found = script.iter().find(|(text, _)| request.contains(text));
            (found.map_or(200, |(_, status)| *status), pause)
        });
    }

    fn count(&self, text: &str) -> usize {
        self.requests.borrow().iter().filter(|one| one.contains(text)).count()
    }

    /// Waits for so many requests that contain `text`.
    async fn until(&self, text: &str, count: usize) {
        let seen = async {
            while self.count(text) < count {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        let seen = tokio::time::timeout(DEADLINE, seen).await;
        assert!(seen.is_ok(), "not {count} of {text}: {:?}", self.requests.borrow());
    }

    fn consul(&self, token: &str) -> Arc<Consul> {
        Arc::new(Consul {
            peer: HttpPeer { url: self.url.parse().unwrap(), ca: None, certificate: None },
            token: Some(Text::secret(token.to_owned())),
            datacenters: Vec::new(),
            routes: None,
            queries: BlockingQueries {
                stale: true,
                wait: Duration::from_secs(1),
                connections_max: 1,
            },
        })
    }
}

fn entry(id: &str, tag: &str) -> (Arc<str>, Arc<Registration>) {
    let entry = Registration {
        id: id.into(),
        service: "edge".into(),
        tags: vec![tag.into()],
        address: None,
        port: 80,
    };
    ("public".into(), Arc::new(entry))
}

impl Registrar {
    fn set(&mut self, entries: Vec<(Arc<str>, Arc<Registration>)>, consul: Arc<Consul>) {
        (self.configured, self.consul) = (entries, Some(consul));
        self.update();
    }
}

/// Returns the entries of a process that serves, with one at `agent`, which has accepted it.
async fn registered(agent: &ScriptedAgent) -> Registrar {
    let mut registrar = Registrar::new(Arc::default());
    registrar.set(vec![entry("a", "v1")], agent.consul("first"));
    registrar.announce(CheckStatus::Critical);
    assert!(registrar.tasks.is_empty(), "it has not served");
    registrar.announce(CheckStatus::Passing);
    agent.until("PUT /v1/agent/service/register first", 1).await;
    shown(&registrar, |state| state.registered_since.is_some()).await;
    registrar
}

/// Waits until the state of the only entry is as `is_meant` says; returns it.
async fn shown(
    registrar: &Registrar,
    is_meant: impl Fn(&RegistrationState) -> bool,
) -> RegistrationState {
    let seen = async {
        loop {
            if let [state] = &registrar.shown.all()[..]
                && is_meant(state)
            {
                return state.clone();
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    let seen = tokio::time::timeout(DEADLINE, seen).await;
    seen.unwrap_or_else(|_| panic!("{:?}", registrar.shown.all()))
}

/// Waits for a reply, while local tasks run.
async fn replied(begin: impl FnOnce(SyncSender<()>)) -> Duration {
    let (reply, replied) = sync_channel(1);
    let begun = os::clock::now();
    begin(reply);
    while replied.try_recv().is_err() {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    os::clock::now().since(begun)
}

#[test]
fn a_change_that_is_refused_keeps_the_check_of_the_earlier_entry() {
    block_on(async {
        let agent = ScriptedAgent::start().await;
        let mut registrar = registered(&agent).await;
        agent.answer(&[("/register", 403)]);
        registrar.set(vec![entry("a", "v2")], agent.consul("first"));
        agent.until("PUT /v1/agent/check/update/service:a", 2).await;
        let state = shown(&registrar, |state| state.error.is_some()).await;
        assert_eq!((state.registered_since, state.check), (None, None), "{state:?}");
        agent.answer(&[]);
        let state = shown(&registrar, |state| state.error.is_none()).await;
        assert!(state.registered_since.is_some() && state.check == Some(CheckStatus::Passing));
    });
}

#[test]
fn a_new_token_registers_again_and_equal_configurations_send_nothing() {
    block_on(async {
        let agent = ScriptedAgent::start().await;
        let mut registrar = registered(&agent).await;
        registrar.set(vec![entry("a", "v1")], agent.consul("first"));
        registrar.announce(CheckStatus::Passing);
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert_eq!(agent.requests.borrow().len(), 1);
        registrar.set(vec![entry("a", "v1")], agent.consul("second"));
        agent.until("second", 1).await;
        assert_eq!(agent.requests.borrow()[1], "PUT /v1/agent/service/register second");
    });
}

#[test]
fn another_agent_has_the_entry_before_the_first_loses_it() {
    block_on(async {
        let agent = ScriptedAgent::start().await;
        let mut registrar = registered(&agent).await;
        let other = ScriptedAgent::start().await;
        other.hold(&[], Duration::from_millis(200));
        registrar.set(vec![entry("a", "v1")], other.consul("first"));
        shown(&registrar, |state| state.registered_since.is_none()).await;
        other.until("/register", 1).await;
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert_eq!(agent.count("/deregister"), 0, "the other one has not accepted it");
        agent.until("/deregister/a", 1).await;
        shown(&registrar, |state| state.registered_since.is_some()).await;
    });
}

#[test]
fn an_entry_that_comes_back_during_its_removal_is_registered_after_it() {
    block_on(async {
        let agent = ScriptedAgent::start().await;
        let mut registrar = registered(&agent).await;
        agent.hold(&[], Duration::from_millis(700));
        registrar.set(Vec::new(), agent.consul("first"));
        agent.until("/deregister/a", 1).await;
        agent.answer(&[]);
        registrar.set(vec![entry("a", "v1")], agent.consul("first"));
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert_eq!(agent.count("/register"), 1, "the removal is in progress");
        agent.until("/register", 2).await;
        assert_eq!(agent.count("/deregister"), 1);
    });
}

#[test]
fn a_process_that_is_replaced_ends_its_requests_and_sends_no_more() {
    block_on(async {
        let agent = ScriptedAgent::start().await;
        let mut registrar = registered(&agent).await;
        registrar.set(vec![entry("a", "v1"), entry("b", "v1")], agent.consul("first"));
        agent.until("/register", 2).await;
        agent.hold(&[], Duration::from_millis(300));
        registrar.set(vec![entry("b", "v2")], agent.consul("first"));
        agent.until("/register", 3).await;
        let took = replied(|reply| registrar.hand_over(reply)).await;
        assert!(took < Duration::from_millis(1_500), "{took:?}");
        assert_eq!(agent.count("/deregister/a"), 1, "a removal is completed");
        assert!(registrar.shown.all().is_empty());
        let before = agent.requests.borrow().len();
        registrar.announce(CheckStatus::Critical);
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert_eq!(agent.requests.borrow().len(), before);
    });
}

#[test]
fn an_agent_that_hangs_holds_up_a_stop_for_a_bounded_time() {
    block_on(async {
        let agent = ScriptedAgent::start().await;
        let mut registrar = registered(&agent).await;
        agent.hold(&[], Duration::from_mins(1));
        registrar.announce(CheckStatus::Critical);
        agent.until("GET /v1/agent/service/a", 1).await;
        let max = Duration::from_secs(2);
        let took = replied(|reply| registrar.remove(max, reply)).await;
        assert!(took >= max && took < max * 2, "{took:?}");
        // The request in flight was dropped, and so was the question whose entry it is.
        agent.until("/deregister/a", 1).await;
    });
}
