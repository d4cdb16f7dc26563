//! A worker's thread: one runtime, the tasks that run beside the connections, and the shutdown.

use std::io;
use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use decide::Published;
use tokio::runtime::LocalOptions;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

use crate::accept::{self, Acceptor};
use crate::connection_task;
use crate::in_flight;
use crate::roster::Phase;
use crate::shared::{Dealt, Handed};
use crate::worker::{Start, Worker};

/// How often idle server connections are checked for those that closed or grew too old.
const SWEEP_EVERY: Duration = Duration::from_millis(100);
/// How often newly learned server behaviour is logged.
const NEWS_EVERY: Duration = Duration::from_secs(1);
/// How often the timeouts of parked connections are checked, and so how late they may end: a timer
/// for each would take more memory than they do.
const PARKED_EVERY: Duration = Duration::from_secs(1);
/// How often memory not needed recently is freed.
const TRIM_EVERY: Duration = Duration::from_secs(5);
/// How long exchanges that are cut off may take to answer their clients.
const LAST_ANSWERS_MAX: Duration = Duration::from_millis(500);
/// The longest that an access line waits in a worker before it is handed to the writer.
const ACCESS_FLUSH_EVERY: Duration = Duration::from_millis(50);

/// Runs a worker on the calling thread until it ends. `inbox`: connections that other workers
/// accepted.
pub(crate) fn run(start: Start, inbox: mpsc::Receiver<Handed>) -> io::Result<()> {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_all().build_local(LocalOptions::default())?;
    runtime.block_on(async {
        live(Rc::new(Worker::new(start)?), inbox).await;
        Ok(())
    })
}

async fn live(worker: Rc<Worker>, inbox: mpsc::Receiver<Handed>) {
    tokio::task::spawn_local(housekeeping(Rc::clone(&worker)));
    tokio::task::spawn_local(connection_task::attend(Rc::clone(&worker)));
    tokio::task::spawn_local(Rc::clone(&worker.buffers.turns).attend());
    let mut acceptors: Vec<Acceptor> = Vec::new();
    let mut finishing = JoinSet::new();
    let (serving, leaving) = oneshot::channel();
    finishing.spawn_local(accept::take_handed(Rc::clone(&worker), inbox, leaving));
    while !worker.shared.leaving() {
        take_sockets(&worker, &mut acceptors, &mut finishing);
        handle_signal(&worker);
        worker.peer().signalled().await;
    }
    // Before this worker looks for its last connection: none may be handed to it afterwards.
    drop(serving);
    take_sockets(&worker, &mut acceptors, &mut finishing);
    for acceptor in acceptors {
        finishing.spawn_local(acceptor.finish(Rc::clone(&worker)));
    }
    while (worker.peer().connections.load(Relaxed) > 0 || !finishing.is_empty())
        && !worker.shared.stopped()
    {
        handle_signal(&worker);
        if worker.shared.draining() {
            close_idle(&worker);
        }
        tokio::select! {
            () = worker.peer().signalled() => {}
            Some(_) = finishing.join_next() => {}
        }
    }
    drop(finishing);
    worker.roster.wake_all();
    connection_task::close_last(&worker);
    let ended = async {
        while worker.peer().connections.load(Relaxed) > 0 {
            worker.peer().signalled().await;
        }
    };
    // Clients that have not received their answer by then do not receive one.
    let _ = tokio::time::timeout(LAST_ANSWERS_MAX, ended).await;
    flush(&worker);
}

/// Makes exchanges that wait for a server check whether it is still up, if any was marked down, and
/// answers requests for reports of exchanges in flight.
fn handle_signal(worker: &Rc<Worker>) {
    if worker.peer().take_servers_changed() {
        worker.roster.wake(Phase::awaits_server);
    }
    in_flight::answer(&worker.peer().reports, &worker.roster);
}

/// Starts accepting on the sockets assigned to this worker, and stops on those whose listener has
/// been removed, once what they have queued is accepted.
fn take_sockets(worker: &Rc<Worker>, acceptors: &mut Vec<Acceptor>, finishing: &mut JoinSet<()>) {
    while finishing.try_join_next().is_some() {}
    for Dealt { listener, socket } in worker.peer().take_dealt() {
        acceptors.extend(Acceptor::start(worker, listener, socket));
    }
    if worker.peer().take_listeners_gone() {
        for acceptor in acceptors.extract_if(.., |acceptor| acceptor.is_closing()) {
            finishing.spawn_local(acceptor.finish(Rc::clone(worker)));
        }
        // Their connections must not wait for another request, and tunnels may have a deadline.
        close_idle(worker);
        worker.roster.wake(|phase| phase == Phase::Tunnel);
    }
}

/// Closes idle connections that must not wait for another request.
fn close_idle(worker: &Rc<Worker>) {
    worker.roster.wake(|phase| phase == Phase::Idle);
    connection_task::close_last(worker);
}

/// Periodic work, whether or not requests arrive.
async fn housekeeping(worker: Rc<Worker>) {
    let mut sweep = tokio::time::interval(SWEEP_EVERY);
    let mut flush_due = tokio::time::interval(ACCESS_FLUSH_EVERY);
    let mut news = tokio::time::interval(NEWS_EVERY);
    let mut trim = tokio::time::interval(TRIM_EVERY);
    let mut parked_due = tokio::time::interval(PARKED_EVERY);
    loop {
        tokio::select! {
            // One worker logs what all have learned.
            _ = news.tick(), if worker.id == 0 => log_news(&worker.plane().published),
            _ = sweep.tick() => worker.pool.sweep(os::clock::now()),
            _ = flush_due.tick() => flush(&worker),
            _ = parked_due.tick() => connection_task::close_due(&worker, os::clock::now()),
            _ = trim.tick() => {
                worker.buffers.trim();
                worker.scratch.trim();
                worker.parking.trim();
            }
        }
    }
}

/// Hands over the access lines and those of traces, and counts the access lines that were dropped.
fn flush(worker: &Worker) {
    worker.access.flush();
    worker.spans.batch.flush();
    worker.shard.access_lines_dropped.add(worker.access.take_dropped());
}

/// Logs what has been learned about servers since the last call.
fn log_news(published: &Published) {
    let now = os::clock::now();
    for (service, live) in published.snapshot.services.iter().zip(&published.services) {
        for endpoint in &live.endpoints().all {
            if let Some(news) = endpoint.slots.learner.news(service.timeouts.keep_alive, now) {
                tracing::info!(server = %endpoint.row.name, "{news}");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::{TcpListener, TcpStream};

    use tokio::runtime::LocalRuntime;

    use super::*;
    use crate::ListenerSockets;
    use crate::worker::testing;

    /// Runs a worker to its end, and returns its runtime: what is left on the worker's thread.
    fn run_to_the_end(start: Start, inbox: mpsc::Receiver<Handed>) -> LocalRuntime {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        let runtime = builder.enable_all().build_local(LocalOptions::default()).unwrap();
        runtime.block_on(async { live(Rc::new(Worker::new(start).unwrap()), inbox).await });
        runtime
    }

    #[test]
    fn a_worker_that_has_ended_takes_no_connection_from_one_that_still_accepts() {
        let socket = TcpListener::bind("127.0.0.1:0").unwrap();
        socket.set_nonblocking(true).unwrap();
        let front = socket.local_addr().unwrap();
        let (shared, mut inboxes) = testing::shared(2);
        let sockets = vec![socket];
        shared.listen(vec![ListenerSockets { name: "front".into(), sockets }], &[], &[]);
        // The other worker has fewer connections by two when the third is accepted.
        let clients = [(); 3].map(|()| {
            let mut client = TcpStream::connect(front).unwrap();
            client.set_read_timeout(Some(Duration::from_mins(1))).unwrap();
            client.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
            client
        });
        shared.leave();
        let other = run_to_the_end(testing::start(1, &shared), inboxes.remove(1));
        let accepting = run_to_the_end(testing::start(0, &shared), inboxes.remove(0));
        drop((other, accepting));
        for mut client in clients {
            let mut answer = String::new();
            client.read_to_string(&mut answer).unwrap();
            assert!(answer.starts_with("HTTP/1.1 418 "), "{answer}");
        }
    }
}
