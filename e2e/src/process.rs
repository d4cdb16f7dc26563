//! A process started by a test: its output goes to files, and it is stopped by its pid at the test's end.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::{Scene, find, wait};

/// How much of each output a failed test prints.
const SHOWN_BYTES_MAX: usize = 12_000;

/// A running program.
pub struct Process {
    name: String,
    child: Child,
    stdout: PathBuf,
    stderr: PathBuf,
}

/// How a program ended and what it wrote.
#[derive(Debug)]
pub struct Finished {
    /// Exit code; `None` if a signal ended it.
    pub code: Option<i32>,
    /// What it wrote to standard output.
    pub stdout: String,
    /// What it wrote to standard error.
    pub stderr: String,
}

impl Process {
    /// Starts `program` with `words`. Its outputs are `NAME.out` and `NAME.err` in the scene's
    /// folder, appended to when a program of that name is started again.
    pub fn start<W: AsRef<std::ffi::OsStr>>(
        scene: &Scene,
        name: &str,
        program: &Path,
        words: impl IntoIterator<Item = W>,
    ) -> Process {
        let stdout = scene.folder().join(format!("{name}.out"));
        let stderr = scene.folder().join(format!("{name}.err"));
        let output = |path: &Path| {
            File::options().create(true).append(true).open(path).expect("a file for the output")
        };
        // setpriv asks the kernel to kill the program should this thread end without having done
        // so, and becomes the program: the pid is the same.
        let child = Command::new(find("setpriv").expect("setpriv, of util-linux"))
            .args(["--pdeathsig", "KILL", "--"])
            .arg(program)
            .args(words)
            .stdin(Stdio::null())
            .stdout(output(&stdout))
            .stderr(output(&stderr))
            .env_remove("NOTIFY_SOCKET")
            .env("NO_COLOR", "1")
            .spawn()
            .unwrap_or_else(|error| panic!("{name}: cannot start {}: {error}", program.display()));
        Process { name: name.to_owned(), child, stdout, stderr }
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What it has written to standard output so far.
    pub fn stdout(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(&self.stdout).unwrap_or_default()).into_owned()
    }

    /// What it has written to standard error so far.
    pub fn stderr(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(&self.stderr).unwrap_or_default()).into_owned()
    }

    /// Whether it has not ended yet.
    pub fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Sends `signal`.
    pub fn signal(&self, signal: Signal) {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, signal).unwrap_or_else(|e| panic!("{}: {signal:?}: {e}", self.name));
    }

    /// SIGKILL, and waits for the end.
    pub fn kill(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }

    /// Waits for it to end by itself.
    pub fn wait(&mut self, bound: Duration) -> Finished {
        let status: ExitStatus = wait::until(&format!("{} to end", self.name), bound, || {
            self.child.try_wait().ok().flatten()
        });
        Finished { code: status.code(), stdout: self.stdout(), stderr: self.stderr() }
    }

    /// SIGTERM, and waits for it to end.
    pub fn terminate(&mut self, bound: Duration) -> Finished {
        self.signal(Signal::TERM);
        self.wait(bound)
    }

    /// CPU time it has used, user and system, all threads.
    pub fn cpu_time(&self) -> Duration {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.pid())).expect("stat");
        // The name in parentheses may hold anything, so count from behind it: utime and stime
        // are fields 14 and 15 of all, 12 and 13 of these.
        let fields: Vec<&str> =
            stat[stat.rfind(')').unwrap_or(0) + 1..].split_whitespace().collect();
        let ticks: u64 = [11, 12].iter().map(|&i| fields[i].parse::<u64>().unwrap_or(0)).sum();
        Duration::from_secs_f64(ticks as f64 / rustix::param::clock_ticks_per_second() as f64)
    }

    /// Whether none of its threads runs or wants to, at this moment.
    pub fn is_asleep(&self) -> bool {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.pid())).expect("its threads");
        let is_running = |task: std::fs::DirEntry| {
            // A thread that has just ended does not run.
            let stat = std::fs::read_to_string(task.path().join("stat")).unwrap_or_default();
            stat[stat.rfind(')').unwrap_or(0)..].starts_with(") R")
        };
        !tasks.flatten().any(is_running)
    }

    /// What the kernel keeps for its TCP sockets, received and not read or written and not sent,
    /// in bytes.
    pub fn tcp_memory_bytes(&self) -> u64 {
        let ss = find("ss").expect("ss");
        let words = ["--tcp", "--memory", "--processes", "--numeric", "--no-header", "--oneline"];
        let output = Command::new(ss).args(words).output().expect("ss");
        let owner = format!("pid={},", self.pid());
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let memory = text.lines().filter(|line| line.contains(&owner)).filter_map(|line| {
            // skmem:(r0,rb131072,t0,tb2626560,f0,w0,…): r is received, w is to be sent.
            let memory = line.split("skmem:(").nth(1)?.split(')').next()?;
            let number = |name: char| -> u64 {
                let parts = memory.split(',').filter_map(|part| part.strip_prefix(name));
                parts.filter_map(|number| number.parse::<u64>().ok()).sum()
            };
            Some(number('r') + number('w'))
        });
        memory.sum()
    }

    /// How many descriptors it has open.
    pub fn open_descriptors(&self) -> usize {
        std::fs::read_dir(format!("/proc/{}/fd", self.pid())).expect("its descriptors").count()
    }

    /// Resident memory, in bytes.
    pub fn resident_bytes(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("VmRSS");
        let kib = line.trim().trim_end_matches("kB").trim();
        kib.parse::<u64>().expect("a number of KiB") * 1024
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
        if std::thread::panicking() {
            for (stream, text) in [("stdout", self.stdout()), ("stderr", self.stderr())] {
                let from = text.floor_char_boundary(text.len().saturating_sub(SHOWN_BYTES_MAX));
                let shown = &text[from..];
                if !shown.is_empty() {
                    eprintln!("--- {} {stream} (end)\n{shown}", self.name);
                }
            }
        }
    }
}
