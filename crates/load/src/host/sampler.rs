//! A thread that reads the kernel's counters once a second during a run.

use std::fs;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use os::poll::Poller;

use super::counters::{Counters, interface_towards};
use load_report::run::{Host, HostSecond};

/// Seconds that wait to be taken.
const SECONDS_MAX: usize = 4_096;
/// How often it looks whether it is over.
const STEP: Duration = Duration::from_millis(100);

/// The thread.
#[derive(Debug)]
pub struct Sampler {
    host: Host,
    is_over: Arc<AtomicBool>,
    seconds: Receiver<HostSecond>,
    thread: Option<JoinHandle<()>>,
}

impl Sampler {
    /// Looks at the end of each second that began at `begins`, in nanoseconds of the process's
    /// clock; at the interface towards `server`.
    pub fn start(begins: u64, server: IpAddr) -> Sampler {
        let routes = |file: &str| fs::read_to_string(file).unwrap_or_default();
        let interface =
            interface_towards(server, &routes("/proc/net/route"), &routes("/proc/net/ipv6_route"));
        let is_over = Arc::new(AtomicBool::new(false));
        let (sender, seconds) = sync_channel(SECONDS_MAX);
        let over = Arc::clone(&is_over);
        let of = interface.clone();
        let body = move || {
            let Ok(mut poller) = Poller::new() else { return };
            let mut due = begins;
            let mut before: Option<(Counters, u64)> = None;
            while !over.load(Ordering::Relaxed) {
                let now = os::clock::nanos();
                if now < due {
                    if poller.wait(STEP.min(Duration::from_nanos(due - now))).is_err() {
                        return;
                    }
                    continue;
                }
                let cpu = os::process::cpu_time();
                let own = (cpu.user + cpu.system).as_nanos() as u64;
                let counters = read(&of);
                if let Some((earlier, own_before)) = before.replace((counters.clone(), own)) {
                    let at_s = (due - begins) as f64 / 1e9 - 1.0;
                    let percent = own.saturating_sub(own_before) as f64 / 1e7;
                    // It is dropped once the reader is gone.
                    let _ = sender.try_send(counters.since(&earlier, at_s, percent));
                }
                due += 1_000_000_000;
            }
        };
        let thread = Builder::new().name("weir-host".to_owned()).spawn(body).ok();
        Sampler { host: this_host(interface), is_over, seconds, thread }
    }

    /// What machine this is.
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// The seconds since the last call.
    pub fn seconds(&self) -> Vec<HostSecond> {
        self.seconds.try_iter().collect()
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn read(interface: &str) -> Counters {
    let text = |path: &str| fs::read_to_string(path).unwrap_or_default();
    Counters::read(
        &text("/proc/stat"),
        &text("/proc/net/snmp"),
        &text("/proc/net/netstat"),
        &text("/proc/net/dev"),
        interface,
    )
}

/// This machine, as figures name it; `interface` is the one that the load leaves by, empty when it
/// is not known.
pub fn this_host(interface: String) -> Host {
    let cpus = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpus.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    Host {
        name: os::process::host_name(),
        kernel: os::process::kernel_release(),
        cpus: os::cpu::cores() as u32,
        cpu_model: model.map(|(_, name)| name.trim().to_owned()).unwrap_or_default(),
        interface,
    }
}
