//! `weir top`: the terminal, the keys, the clock and the admin API around [`crate::top`].
//!
//! Four threads: this one takes events and draws; one reads the keyboard, one waits for signals, one asks
//! the balancer. So a slow answer does not hold up the keys. A terminal that takes no output does hold up
//! this thread; a signal ends the program all the same.

mod ask;
mod screen;

use std::io::{self, IsTerminal};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use balancer::signals::Signals;
use tokio::signal::unix::SignalKind;

use self::ask::Asker;
use self::screen::Screen;
use crate::api_client::Client;
use crate::flags::{Common, Exit, TopArgs};
use crate::top::{Effect, Event, Palette, State};

/// Events in the queue, and taken for one frame; a thread with more waits.
const EVENTS_MAX: usize = 64;

/// How long the program may take to end after a signal. It takes longer only while the terminal takes no
/// output.
const END_MAX: Duration = Duration::from_secs(1);

/// How often the screen is drawn although nothing happened: it shows how old the figures are.
const TICK: Duration = Duration::from_secs(1);

/// What reaches the loop.
enum Message {
    Event(Event),
    /// A signal, or the end of the keyboard.
    Stop,
    /// A thread has panicked, and the terminal has been restored.
    Broken,
}

pub(crate) fn run(args: &TopArgs, common: Common) -> Exit {
    if let Some(missing) = missing_terminal() {
        eprintln!(
            "weir: `weir top` {missing}; `weir status` prints the same figures as text, with \
             --watch every two seconds"
        );
        return Exit::Mistake;
    }
    let client = match Client::new(&args.admin) {
        Ok(client) => client,
        Err(error) => return error.tell(),
    };
    let ended = watch(client, args.admin.address.to_string(), common.colours_stdout());
    if let Err(error) = ended {
        eprintln!("weir: the terminal: {error}");
        return Exit::Failed;
    }
    Exit::Done
}

/// Returns what is missing if standard input and output are no terminal that can be drawn on.
fn missing_terminal() -> Option<&'static str> {
    if !io::stdout().is_terminal() || !io::stdin().is_terminal() {
        return Some("needs a terminal");
    }
    match std::env::var("TERM").as_deref() {
        Err(_) | Ok("") => Some("needs a terminal: TERM is not set"),
        Ok("dumb") => Some("needs a terminal that can move its cursor: TERM is dumb"),
        Ok(_) => None,
    }
}

fn watch(client: Client, address: String, has_colours: bool) -> io::Result<()> {
    let (events, received) = sync_channel(EVENTS_MAX);
    stop_on_signals(&events)?;
    let mut screen = Screen::open(Palette { has_colours })?;
    let asker = Asker::start(client, events.clone())?;
    let size = screen.size()?;
    read_keys(&events)?;
    let mut state = State::new(address, size, os::clock::now());
    loop {
        let has_question = screen.draw(&state)?;
        state.drawn(has_question, os::clock::now());
        // What has come in the meantime is shown in one frame.
        let first = next(&received)?;
        for message in std::iter::once(first).chain(received.try_iter().take(EVENTS_MAX)) {
            let event = match message {
                Message::Event(event) => event,
                Message::Stop => return Ok(()),
                Message::Broken => return Err(broken()),
            };
            match state.update(event, os::clock::now()) {
                Some(Effect::Quit) => return Ok(()),
                Some(Effect::Redraw) => screen.clear()?,
                Some(Effect::Change(change)) => asker.change(change)?,
                None => {}
            }
        }
        asker.need(state.needs());
    }
}

/// Waits for a message, or for the next tick.
fn next(received: &Receiver<Message>) -> io::Result<Message> {
    match received.recv_timeout(TICK) {
        Err(RecvTimeoutError::Timeout) => Ok(Message::Event(Event::Tick)),
        Err(RecvTimeoutError::Disconnected) => Err(broken()),
        Ok(message) => Ok(message),
    }
}

fn broken() -> io::Error {
    io::Error::other("a thread of the program has ended early")
}

/// Starts a thread that has events for the loop. If it panics, the loop ends too.
fn start(
    name: &str,
    events: &SyncSender<Message>,
    work: impl FnOnce(&SyncSender<Message>) + Send + 'static,
) -> io::Result<()> {
    struct Guard(SyncSender<Message>);
    impl Drop for Guard {
        fn drop(&mut self) {
            if thread::panicking() {
                let _ = self.0.send(Message::Broken);
            }
        }
    }
    let guard = Guard(events.clone());
    thread::Builder::new().name(name.to_owned()).spawn(move || {
        let guard = guard;
        work(&guard.0);
    })?;
    Ok(())
}

/// Ends the loop on SIGTERM, SIGINT and SIGHUP, so that the terminal is left as it was.
fn stop_on_signals(events: &SyncSender<Message>) -> io::Result<()> {
    let mut signals = Signals::catch()?;
    let mut hangup = signals.also(SignalKind::hangup())?;
    start("signals", events, move |events| {
        // Which of them it was makes no difference.
        let _ = signals.run(hangup.recv());
        // If the queue is full, the loop is not taking messages.
        let _ = events.try_send(Message::Stop);
        let _ = signals.wait_at_most(END_MAX);
        screen::abandon();
    })
}

/// Reads keys and sizes until the terminal is gone.
fn read_keys(events: &SyncSender<Message>) -> io::Result<()> {
    start("keys", events, |events| {
        loop {
            let message = match screen::read() {
                Ok(Some(event)) => Message::Event(event),
                Ok(None) => continue,
                Err(_) => Message::Stop,
            };
            let is_last = matches!(message, Message::Stop);
            if events.send(message).is_err() || is_last {
                return;
            }
        }
    })
}
