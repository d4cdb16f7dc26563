//! The thread that forwards packets between two TUN devices.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path as FilePath;
use std::process::Command;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use os::namespace::Namespace;
use os::poll::{Interest, Poller};
use os::tun::{Packets, Tun};
use rustix::event::{EventfdFlags, eventfd};

use super::counters::{Counters, Counts, Lateness};
use super::turn::Turn;
use super::way::Way;

/// Changes that can be queued for the thread, which checks after every packet.
const ORDERS_MAX: usize = 64;
/// How long the thread waits when nothing is due.
const IDLE: Duration = Duration::from_secs(3_600);
/// Packets that wait in a device for the forwarder before its kernel drops them.
const DEVICE_PACKETS_MAX: &str = "20000";

/// What the bell is waited for by; the devices are 0 and 1.
const BELL: u64 = 2;

/// Where a link ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct End {
    /// A namespace of /run/netns.
    pub namespace: String,
    /// The device's name there, 15 bytes at most.
    pub device: String,
}

/// A message to the thread.
enum Order {
    Ways(Box<[Way; 2]>),
    Stop,
}

/// A link at work. It ends, and its devices go, when this is dropped.
#[derive(Debug)]
pub struct Forwarder {
    orders: SyncSender<Order>,
    bell: Arc<OwnedFd>,
    counters: Arc<[Counters; 2]>,
    thread: Option<JoinHandle<Lateness>>,
}

/// Makes a device in its namespace and sets it up: no address, no routes.
///
/// # Errors
/// Which device could not be made, and why.
pub fn open(end: &End, packets: Packets, mtu: u32) -> io::Result<Tun> {
    let End { namespace, device } = end;
    let described = |error: io::Error| {
        let what = format!("{device} in namespace {namespace}: {error}");
        io::Error::new(error.kind(), what)
    };
    let path = FilePath::new("/run/netns").join(namespace);
    let tun = Namespace::open(&path)
        .and_then(|namespace| namespace.inside(|| Tun::open(device, packets))?)
        .map_err(described)?;
    let mtu = mtu.to_string();
    let words = ["-n", namespace, "link", "set", device, "mtu", &mtu, "txqueuelen"];
    let output = Command::new("ip").args(words).args([DEVICE_PACKETS_MAX, "up"]).output();
    let output =
        output.map_err(|error| described(io::Error::new(error.kind(), format!("ip: {error}"))))?;
    if output.status.success() {
        Ok(tun)
    } else {
        Err(described(io::Error::other(String::from_utf8_lossy(&output.stderr).trim().to_owned())))
    }
}

impl Forwarder {
    /// Starts the thread between two devices of the same kind of packets. The first way leads from
    /// the first device to the second.
    ///
    /// # Errors
    /// When there is no thread or no descriptor to be had.
    pub fn start(
        devices: [Tun; 2],
        packets: Packets,
        ways: [Way; 2],
        seed: u64,
    ) -> io::Result<Forwarder> {
        let bell = Arc::new(eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?);
        let counters = Arc::new(<[Counters; 2]>::default());
        let (orders, taken) = sync_channel(ORDERS_MAX);
        let mut poller = Poller::new()?;
        for (token, device) in (0..).zip(&devices) {
            poller.add(device, token, Interest::Read)?;
        }
        poller.add(&*bell, BELL, Interest::Read)?;
        let turn = Turn::new(devices, packets, ways, seed, Arc::clone(&counters));
        let heard = Arc::clone(&bell);
        let thread = std::thread::Builder::new()
            .name("weir-link".to_owned())
            .spawn(move || run(turn, &mut poller, &taken, &heard))?;
        Ok(Forwarder { orders, bell, counters, thread: Some(thread) })
    }

    /// Does something else to packets from now on.
    ///
    /// # Errors
    /// When the thread has ended, or does not keep up with changes.
    pub fn set(&self, ways: [Way; 2]) -> io::Result<()> {
        self.tell(Order::Ways(Box::new(ways)))
    }

    /// Counts so far, there and back.
    pub fn counts(&self) -> [Counts; 2] {
        [self.counters[0].read(), self.counters[1].read()]
    }

    /// Ends the link; how late its packets were.
    pub fn stop(mut self) -> Lateness {
        self.end()
    }

    fn tell(&self, order: Order) -> io::Result<()> {
        self.orders.try_send(order).map_err(|error| match error {
            TrySendError::Full(_) => io::Error::from(io::ErrorKind::WouldBlock),
            TrySendError::Disconnected(_) => io::Error::from(io::ErrorKind::BrokenPipe),
        })?;
        rustix::io::write(&*self.bell, &1_u64.to_ne_bytes())?;
        Ok(())
    }

    fn end(&mut self) -> Lateness {
        // A thread that has ended already needs no order.
        let _ = self.tell(Order::Stop);
        self.thread.take().and_then(|thread| thread.join().ok()).unwrap_or_default()
    }
}

impl Drop for Forwarder {
    fn drop(&mut self) {
        if self.thread.is_some() {
            self.end();
        }
    }
}

fn run(mut turn: Turn, poller: &mut Poller, orders: &Receiver<Order>, bell: &OwnedFd) -> Lateness {
    // A machine that does not allow it has later packets, which lateness tells.
    let _ = os::threads::wake_precisely();
    loop {
        let has_more = turn.take();
        while let Ok(order) = orders.try_recv() {
            match order {
                Order::Ways(ways) => turn.set(*ways),
                Order::Stop => return turn.end(),
            }
        }
        if has_more {
            continue;
        }
        let wait = turn
            .next_ns()
            .map_or(IDLE, |at_ns| Duration::from_nanos(at_ns.saturating_sub(os::clock::nanos())));
        if !wait.is_zero() {
            if poller.wait(wait).is_err() {
                return turn.end();
            }
            if (0..poller.len()).any(|index| poller.ready(index).token == BELL) {
                // Empty when it was read before; the orders are looked at in any case.
                let _ = rustix::io::read(bell, &mut [0_u8; 8]);
            }
        }
    }
}
