//! HTTP framing, rule by rule: the cases of `e2e/cases/framing`, each over real sockets through
//! one `weir serve`, between a client that sends exactly the case's bytes and a server that
//! records exactly what it received. The format of the files is in the README beside them.

#[path = "framing/case.rs"]
#[allow(unreachable_pub, reason = "also part of another crate's test")]
mod case;
#[path = "framing/message.rs"]
#[allow(unreachable_pub, reason = "a module of this test")]
mod message;
#[path = "framing/server.rs"]
#[allow(unreachable_pub, reason = "a module of this test")]
mod server;

use std::io::{self, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::path::Path;
use std::time::Duration;

use case::{Case, Check, End, Expected, Forwarded};
use e2e::{Scene, Weir};
use message::{Message, Reader, values};
use server::{PROBE_BODY, PROBE_HOST, Seen, Server};

/// Fewer would mean that files were lost.
const CASES_MIN: usize = 130;
/// No answer and no end takes longer; less than the client's body timeout, more than lingering.
const WITHIN: Duration = Duration::from_secs(8);

#[test]
fn every_case() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("cases/framing");
    let cases = case::read_all(&folder).unwrap_or_else(|mistakes| panic!("{mistakes}"));
    assert!(cases.len() >= CASES_MIN, "{} cases", cases.len());
    let Some(scene) = Scene::new("framing", &[]) else {
        return;
    };
    let stage = Stage::set(&scene);

    // WEIR_CASE=smuggling runs the cases whose file names contain the word.
    let wanted = std::env::var("WEIR_CASE").unwrap_or_default();
    let mut run = 0;
    let mut failures = Vec::new();
    for case in cases.iter().filter(|case| case.file.contains(&wanted)) {
        run += 1;
        if let Err(why) = stage.play(case) {
            failures
                .push(format!("{}.case: {}\n    {}\n    -> {why}", case.file, case.name, case.why));
        }
    }
    println!("framing: {run} cases, {} passed, {} failed", run - failures.len(), failures.len());
    assert!(
        failures.is_empty(),
        "{} of {run} framing cases fail\n\n{}\n",
        failures.len(),
        failures.join("\n")
    );
}

/// Weir between its two listeners and the server.
struct Stage {
    server: Server,
    public: SocketAddr,
    trusted: SocketAddr,
    _weir: Weir,
}

impl Stage {
    fn set(scene: &Scene) -> Stage {
        let server = Server::start(scene.address(11, 8080)).expect("the recording server");
        let (public, trusted, admin) = (scene.front(), scene.address(1, 8081), scene.admin());
        // One worker and no second attempt: what the server sees is what the case sends.
        let config = format!(
            "workers = 1\n\
             [log]\naccess = \"off\"\n\
             [admin]\naddress = \"{admin}\"\n\
             [[listener]]\nname = \"public\"\naddress = \"{public}\"\nbody_max = 64000\nhttp2 = false\n\
             [[listener]]\nname = \"trusted\"\naddress = \"{trusted}\"\nbody_max = 64000\nhttp2 = false\n\
             trusted = [\"127.0.0.0/8\"]\n\
             [[route]]\nservice = \"server\"\n\
             [service.server]\nretries = {{ max = 0 }}\n{}",
            e2e::server_tables("server", [server.address()])
        );
        let weir = Weir::start(scene, &config);
        Stage { server, public, trusted, _weir: weir }
    }

    fn play(&self, case: &Case) -> Result<(), String> {
        self.server.begin(&case.responds);
        let listener = if case.trusted { self.trusted } else { self.public };
        let client = Client::open(listener).map_err(|e| format!("cannot connect: {e}"))?;
        let client_ip = client.ip.clone();
        let names = |text: &str| {
            text.replace("{weir}", &listener.to_string())
                .replace("{server}", &self.server.address().to_string())
                .replace("{client}", &client_ip)
        };
        let answered = client.exchange(case, &names);
        // Whatever Weir has sent to the server before it serves another is there before that.
        let fenced = self.fence();
        let seen = self.server.end(WITHIN);
        answered?;
        fenced?;
        judge(&case.forwarded, &seen?, &names)
    }

    /// A request on a connection of its own, and its answer.
    fn fence(&self) -> Result<(), String> {
        Client::open(self.public)
            .and_then(|mut client| client.probe())
            .map_err(|error| format!("Weir does not serve another connection afterwards: {error}"))
    }
}

/// Whether the server saw what it should.
fn judge(forwarded: &Forwarded, seen: &Seen, names: &dyn Fn(&str) -> String) -> Result<(), String> {
    let lines = || seen.requests.iter().map(|r| r.line.as_str()).collect::<Vec<_>>();
    if !seen.faults.is_empty() {
        return Err(format!("the server got what is not sound HTTP: {}", seen.faults.join("; ")));
    }
    match forwarded {
        Forwarded::Nothing if seen.requests.is_empty() && seen.incomplete == 0 => Ok(()),
        Forwarded::NothingComplete if seen.requests.is_empty() => Ok(()),
        Forwarded::Requests(expected) if expected.len() == seen.requests.len() => {
            for (expected, request) in expected.iter().zip(&seen.requests) {
                if request.line != expected.line {
                    let (got, wanted) = (shortened(&request.line), shortened(&expected.line));
                    return Err(format!("the server got {got:?} instead of {wanted:?}"));
                }
                verify(request, expected, names).map_err(|e| format!("the server got {e}"))?;
            }
            if seen.incomplete > 0 {
                return Err("the server also got a request that was never whole".to_owned());
            }
            Ok(())
        }
        _ => Err(format!(
            "the server got {} whole requests {:?} and {} incomplete ones",
            seen.requests.len(),
            lines(),
            seen.incomplete
        )),
    }
}

/// Whether a message is as a case says.
fn verify(
    message: &Message,
    expected: &Expected,
    names: &dyn Fn(&str) -> String,
) -> Result<(), String> {
    for check in &expected.checks {
        let holds = match check {
            Check::Has(name, None) => !message.values(name).is_empty(),
            Check::Has(name, Some(value)) => message.values(name).contains(&&*names(value)),
            Check::Once(name, value) => message.values(name) == [names(value)],
            Check::No(name) => message.values(name).is_empty(),
            Check::Not(name, value) => {
                let found = message.values(name);
                !found.is_empty() && !found.contains(&&*names(value))
            }
            Check::Body(body) => message.body == *body,
            Check::Trailer(name, value) => {
                values(&message.trailers, name).contains(&value.as_str())
            }
            Check::NoTrailer(name) => values(&message.trailers, name).is_empty(),
            // Read by the client, behind the message.
            Check::Tunnel(_) => true,
        };
        if !holds {
            let check = shortened(&format!("{check:?}"));
            let body = shortened(&String::from_utf8_lossy(&message.body));
            return Err(format!(
                "a message of which this does not hold: {check}; fields {:?}, body {body:?}, \
                 trailers {:?}",
                message.fields, message.trailers
            ));
        }
    }
    Ok(())
}

fn shortened(text: &str) -> String {
    const SHOWN: usize = 200;
    let shown: String = text.chars().take(SHOWN).collect();
    if shown.len() < text.len() { format!("{shown}… ({} bytes)", text.len()) } else { shown }
}

/// A client that sends the given bytes.
struct Client {
    reader: Reader,
    ip: String,
}

impl Client {
    fn open(address: SocketAddr) -> io::Result<Client> {
        let stream = TcpStream::connect_timeout(&address, WITHIN)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(WITHIN))?;
        stream.set_write_timeout(Some(WITHIN))?;
        let ip = stream.local_addr()?.ip().to_string();
        Ok(Client { reader: Reader::new(stream), ip })
    }

    fn exchange(mut self, case: &Case, names: &dyn Fn(&str) -> String) -> Result<(), String> {
        let mut answers = case.answers.iter();
        for send in &case.sends {
            if let Some(status) = send.after {
                loop {
                    let expected = answers.next().ok_or(format!("no {status} is expected"))?;
                    self.answer(expected, names)?;
                    if expected.line == status.to_string() {
                        break;
                    }
                }
            }
            // An answer may come, and the connection end, before everything is sent.
            let _ = self.reader.stream().write_all(&send.bytes);
        }
        if case.shut {
            let _ = self.reader.stream().shutdown(Shutdown::Write);
        }
        for expected in answers {
            self.answer(expected, names)?;
        }
        let tunnels = case.answers.iter().flat_map(|answer| &answer.checks);
        for check in tunnels {
            if let Check::Tunnel(bytes) = check {
                let got = self.reader.take(bytes.len()).map_err(|e| format!("tunnel: {e}"))?;
                if got != *bytes {
                    return Err(format!(
                        "through the tunnel came {:?}",
                        String::from_utf8_lossy(&got)
                    ));
                }
            }
        }
        match case.end {
            End::Any => Ok(()),
            End::Keep => {
                self.probe().map_err(|e| format!("the connection does not serve another: {e}"))
            }
            End::Close => match self.reader.rest() {
                Ok(rest) if rest.is_empty() => Ok(()),
                Ok(rest) => {
                    let rest = shortened(&String::from_utf8_lossy(&rest));
                    Err(format!("before the connection closed came {rest:?}"))
                }
                Err(error) => Err(format!("the connection does not close cleanly: {error}")),
            },
        }
    }

    /// Reads an answer and holds it against what is expected.
    fn answer(
        &mut self,
        expected: &Expected,
        names: &dyn Fn(&str) -> String,
    ) -> Result<(), String> {
        let wanted = &expected.line;
        let mut answer = match self.reader.head() {
            // Weir may see that it is broken before it has passed anything on.
            Err(_) if expected.broken => return Ok(()),
            head => head.map_err(|e| format!("{wanted} is expected: {e}"))?,
        };
        if answer.status() != wanted {
            return Err(format!("{wanted} is expected, {:?} came", answer.line));
        }
        if !answer.line.starts_with("HTTP/1.1 ") {
            return Err(format!("a status line that is not ours: {:?}", answer.line));
        }
        let bodyless =
            expected.bodyless || wanted.starts_with('1') || wanted == "204" || wanted == "304";
        let body = if bodyless { Ok(()) } else { self.reader.body(&mut answer, true) };
        match body {
            Ok(()) if expected.broken => {
                return Err(format!("a broken response looks whole: {:?}", answer.fields));
            }
            Err(_) if expected.broken => return Ok(()),
            Err(error) => return Err(format!("{wanted}: its body does not end: {error}")),
            Ok(()) => {}
        }
        verify(&answer, expected, names).map_err(|e| format!("the client got {e}"))
    }

    /// A request of the runner's own, which must be served.
    fn probe(&mut self) -> io::Result<()> {
        let request = format!("GET /probe HTTP/1.1\r\nHost: {PROBE_HOST}\r\n\r\n");
        self.reader.stream().write_all(request.as_bytes())?;
        let mut answer = self.reader.head()?;
        self.reader.body(&mut answer, false)?;
        if answer.status() == "200" && answer.body == PROBE_BODY {
            return Ok(());
        }
        let body = String::from_utf8_lossy(&answer.body).into_owned();
        Err(io::Error::other(format!("{:?} {body:?} came instead of the probe's", answer.line)))
    }
}
