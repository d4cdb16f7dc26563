//! A program in a pseudo-terminal: what it shows, and keys for it.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, Command};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};

use crate::grid::Grid;
use crate::{find, wait, weir};

/// `weir` in a pseudo-terminal.
pub struct Terminal {
    child: Child,
    master: File,
    grid: Arc<Mutex<Grid>>,
}

impl Terminal {
    /// Starts `weir WORDS` on a screen of `columns` and `lines`.
    pub fn start(words: &[&str], columns: u16, lines: u16) -> Terminal {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY;
        let master = openpt(flags).expect("a pseudo-terminal");
        grantpt(&master).and_then(|()| unlockpt(&master)).expect("its other end");
        let slave = ioctl_tiocgptpeer(&master, flags).expect("its other end");
        let end = || slave.try_clone().expect("a descriptor");
        tcsetwinsize(&master, size(columns, lines)).expect("its size");
        // setsid makes it the program's controlling terminal, so that it learns of a new size; both
        // programs become the next one, and the pid is the same.
        let child = Command::new(find("setpriv").expect("setpriv, of util-linux"))
            .args(["--pdeathsig", "KILL", "--", "setsid", "--ctty"])
            .arg(weir::binary())
            .args(words)
            .stdin(end())
            .stdout(end())
            .stderr(end())
            .env("TERM", "xterm-256color")
            .env_remove("NO_COLOR")
            .spawn()
            .expect("setsid, of util-linux");
        let grid = Arc::new(Mutex::new(Grid::new(columns, lines)));
        read(master.try_clone().expect("a descriptor"), grid.clone());
        Terminal { child, master: master.into(), grid }
    }

    /// What is on the screen.
    pub fn text(&self) -> String {
        self.grid().text()
    }

    /// Waits until all of `texts` are on the screen.
    pub fn wait_for(&self, texts: &[&str], bound: Duration) {
        let shows = || {
            let text = self.text();
            texts.iter().all(|part| text.contains(part)).then_some(())
        };
        let shown = wait::within(bound, shows).is_some();
        assert!(shown, "waited {bound:?} for {texts:?}; the screen:\n{}", self.text());
    }

    /// Presses keys.
    pub fn press(&mut self, keys: &str) {
        self.master.write_all(keys.as_bytes()).expect("a terminal");
    }

    /// Pastes text, marked as a terminal does if the program asked for it.
    pub fn paste(&mut self, text: &str) {
        let is_marked = self.grid().marks_pastes;
        let (start, end) = if is_marked { ("\u{1b}[200~", "\u{1b}[201~") } else { ("", "") };
        self.press(&format!("{start}{text}{end}"));
    }

    /// Changes the size of the window.
    pub fn resize(&mut self, columns: u16, lines: u16) {
        self.grid().resize(columns, lines);
        tcsetwinsize(&self.master, size(columns, lines)).expect("its size");
    }

    /// Overwrites the screen, as a message of the kernel on a console does.
    pub fn scribble(&self) {
        self.grid().fill('#');
    }

    /// How many bytes were written to the screen so far.
    pub fn bytes(&self) -> usize {
        self.grid().bytes
    }

    /// Sequences that no program of ours should write.
    pub fn unknown(&self) -> Vec<String> {
        self.grid().unknown.clone()
    }

    /// Whether the terminal is as a shell needs it: its own screen, a cursor, and lines with an echo.
    pub fn is_restored(&self) -> bool {
        let modes = tcgetattr(&self.master).expect("its modes").local_modes;
        let grid = self.grid();
        modes.contains(LocalModes::ICANON | LocalModes::ECHO)
            && !grid.is_alternate
            && !grid.marks_pastes
            && grid.has_cursor
    }

    /// Sends a signal to the program.
    pub fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw).expect("a pid");
        kill_process(pid, signal).expect("a running program");
    }

    /// Waits for its end; its exit code.
    pub fn wait(&mut self, bound: Duration) -> Option<i32> {
        wait::until("the program's end", bound, || self.child.try_wait().expect("a child")).code()
    }

    fn grid(&self) -> MutexGuard<'_, Grid> {
        self.grid.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Puts on the screen what the program writes, until it and its terminal are gone.
fn read(master: OwnedFd, grid: Arc<Mutex<Grid>>) {
    let mut master = File::from(master);
    std::thread::spawn(move || {
        let mut buffer = vec![0; 64 * 1024];
        while let Ok(count) = master.read(&mut buffer) {
            if count == 0 {
                return;
            }
            grid.lock().unwrap_or_else(PoisonError::into_inner).write(&buffer[..count]);
        }
    });
}

fn size(columns: u16, lines: u16) -> Winsize {
    Winsize { ws_row: lines, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }
}
