//! The promises of the lab's links that take the machine for themselves: `make measure`.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::process::Command;
use std::time::{Duration, Instant};

use e2e::{Linked, NAMESPACES, Promises, Scene, Zones, find, wait};

/// How long packets take on the links that are measured.
const DELAY: Duration = Duration::from_millis(20);
/// Packets whose time is taken, one a millisecond.
const PROBES: u32 = 4_000;
/// What a link may add, on the median, beyond what an empty timer loop shows.
const ADDED_MAX_MS: f64 = 0.2;

/// Lateness in milliseconds, in order.
struct Late(Vec<f64>);

impl Late {
    fn of(times: impl Iterator<Item = Duration>) -> Late {
        let mut late: Vec<f64> = times.map(|time| time.as_secs_f64() * 1e3).collect();
        late.sort_by(f64::total_cmp);
        Late(late)
    }

    fn at(&self, quantile: f64) -> f64 {
        self.0[((self.0.len() - 1) as f64 * quantile) as usize]
    }
}

/// A thread that does nothing but wait a millisecond: what this machine adds to any wait.
fn empty_timer_loop(stretch: Duration) -> Late {
    let end = Instant::now() + stretch;
    let tick = Duration::from_millis(1);
    let mut late = Vec::new();
    while Instant::now() < end {
        let begun = Instant::now();
        wait::measure_for(tick);
        late.push(begun.elapsed().saturating_sub(tick));
    }
    Late::of(late.into_iter())
}

/// How long packets take from `from` to `to`, beyond [`DELAY`].
fn one_way(from: UdpSocket, to: UdpSocket) -> Late {
    let begun = Instant::now();
    let address = to.local_addr().expect("its address");
    to.set_read_timeout(Some(Duration::from_secs(5))).expect("a time limit");
    let sender = std::thread::spawn(move || {
        for number in 0..PROBES {
            let due = begun + Duration::from_millis(number.into());
            wait::measure_for(due.saturating_duration_since(Instant::now()));
            let now = begun.elapsed().as_nanos() as u64;
            from.send_to(&now.to_ne_bytes(), address).expect("a packet sent");
        }
    });
    let mut took = Vec::new();
    let mut buffer = [0; 8];
    while took.len() < PROBES as usize && to.recv(&mut buffer).is_ok() {
        let sent = Duration::from_nanos(u64::from_ne_bytes(buffer));
        took.push(begun.elapsed().saturating_sub(sent));
    }
    sender.join().expect("the sender");
    assert!(took.len() as u32 > PROBES * 99 / 100, "{} came of {PROBES}", took.len());
    Late::of(took.into_iter().map(|time| time.saturating_sub(DELAY)))
}

#[test]
#[ignore = "takes the machine for itself: make measure"]
fn a_delay_is_kept_to_a_fifth_of_a_millisecond() {
    let Some(scene) = Scene::alone("measure-lab-delay", &[NAMESPACES]) else { return };
    Linked::run(&scene, "both = { delay = \"20ms\" }", &[], |linked| {
        let near = UdpSocket::bind(linked.near(0)).expect("a socket");
        let far = linked.inside_far(|| UdpSocket::bind(linked.far(5_000)).expect("a socket"));
        let timer = std::thread::spawn(|| empty_timer_loop(Duration::from_secs(4)));
        let link = one_way(near, far);
        let timer = timer.join().expect("the timer loop");
        let told = linked.end();
        for (what, late) in [("the link", &link), ("an empty timer loop", &timer)] {
            println!("{what}: {:.3} ms late, p99 {:.3} ms", late.at(0.5), late.at(0.99));
        }
        println!("the link's own account: {}", told["late"]);
        let mut promises = Promises::of("measure_lab");
        let added = link.at(0.5) - timer.at(0.5);
        promises.at_most(
            "a link's delay beyond an empty timer loop, median",
            added,
            ADDED_MAX_MS,
            "ms",
        );
        promises.hold();
    });
}

#[test]
#[ignore = "takes the machine for itself: make measure"]
fn a_link_and_netem_delay_alike() {
    let Some(scene) = Scene::alone("measure-lab-netem", &[NAMESPACES, "tc"]) else { return };
    let netem = Zones::run(&["far"], |zones| {
        let words = "qdisc add dev zone1 root netem delay 20ms";
        let set = Command::new(find("tc").unwrap()).args(words.split(' ')).output().unwrap();
        set.status.success().then(|| {
            let near = UdpSocket::bind("10.99.1.1:0").expect("a socket");
            let at = zones.address("far", 11, 5_000);
            one_way(near, zones.inside("far", || UdpSocket::bind(at).expect("a socket")))
        })
    });
    let Some(netem) = netem else {
        Promises::of("measure_lab").left_out("a link's delay beside netem's", "no sch_netem here");
        return;
    };
    let link = Linked::run(&scene, "both = { delay = \"20ms\" }", &[], |linked| {
        let near = UdpSocket::bind(linked.near(0)).expect("a socket");
        one_way(near, linked.inside_far(|| UdpSocket::bind(linked.far(5_000)).expect("a socket")))
    });
    println!("late by {:.3} ms, netem by {:.3} ms", link.at(0.5), netem.at(0.5));
    let mut promises = Promises::of("measure_lab");
    let added = link.at(0.5) - netem.at(0.5);
    promises.at_most("a link's delay beside netem's, median", added, ADDED_MAX_MS, "ms");
    promises.hold();
}

/// What a second of the link's CPU time must carry. Time by the clock is shared with the sender's
/// kernel and the receiver's, which on two processors take more than the link; it is printed, not
/// judged.
const BITS_PER_CPU_S_MIN: f64 = 1e9;
const PACKETS_PER_CPU_S_MIN: f64 = 100_000.0;
/// A link that carries nothing for so long is broken.
const QUIET_MAX: Duration = Duration::from_secs(10);

/// Bits of TCP per second of the CPU time of a link that `lab link` makes with `words`.
fn tcp_per_cpu_second(scene: &Scene, kind: &str, words: &[&str]) -> f64 {
    Linked::run(scene, "both = { delay = \"1ms\" }", words, |linked| {
        let far = linked.inside_far(|| TcpListener::bind(linked.far(5_000)).expect("a listener"));
        let receiver = std::thread::spawn(move || {
            let (mut stream, _) = far.accept().expect("a connection");
            stream.set_read_timeout(Some(QUIET_MAX)).expect("a time limit");
            let (mut piece, mut sum) = (vec![0; 256 * 1024], 0);
            while let count @ 1.. = stream.read(&mut piece).expect("what is sent") {
                sum += count;
            }
            sum
        });
        let before = linked.process().cpu_time();
        let begun = Instant::now();
        let at = linked.far(5_000);
        let mut near = TcpStream::connect_timeout(&at, QUIET_MAX).expect("a connection");
        near.set_write_timeout(Some(QUIET_MAX)).expect("a time limit");
        let piece = vec![0; 128 * 1024];
        while begun.elapsed() < Duration::from_secs(5) {
            near.write_all(&piece).expect("bytes taken");
        }
        drop(near);
        let bits = receiver.join().expect("the receiver") as f64 * 8.0;
        let took = begun.elapsed().as_secs_f64();
        let cpu = linked.process().cpu_time().saturating_sub(before).as_secs_f64();
        let told = linked.end();
        let delivered = |way: &str| told[way]["delivered"].as_f64().unwrap();
        println!(
            "{kind}: {:.2} Gb and {:.0} packets per second of the link's CPU; {:.2} Gb/s by the clock",
            bits / cpu / 1e9,
            (delivered("there") + delivered("back")) / cpu,
            bits / took / 1e9
        );
        bits / cpu
    })
}

#[test]
#[ignore = "takes the machine for itself: make measure"]
fn a_link_carries_a_gigabit_on_one_processor() {
    let Some(scene) = Scene::alone("measure-lab-gigabit", &[NAMESPACES]) else { return };
    let large = tcp_per_cpu_second(&scene, "large packets", &["--large"]);
    let mut promises = Promises::of("measure_lab");
    let (gigabits, least) = (large / 1e9, BITS_PER_CPU_S_MIN / 1e9);
    promises.at_least("large packets per second of a link's CPU", gigabits, least, "Gb");
    // Printed, not judged: most of it is the receiving kernel's TCP, which works inside the link's
    // writes.
    tcp_per_cpu_second(&scene, "packet by packet", &[]);
    promises.hold();
}

#[test]
#[ignore = "takes the machine for itself: make measure"]
fn a_link_carries_a_hundred_thousand_packets_a_second_on_one_processor() {
    let Some(scene) = Scene::alone("measure-lab-packets", &[NAMESPACES]) else { return };
    let ways = "both = { delay = \"1ms\", loss = \"0.1%\" }";
    Linked::run(&scene, ways, &[], |linked| {
        let near = UdpSocket::bind(linked.near(0)).expect("a socket");
        let far = linked.inside_far(|| UdpSocket::bind(linked.far(5_000)).expect("a socket"));
        near.connect(far.local_addr().unwrap()).unwrap();
        let before = linked.process().cpu_time();
        let begun = Instant::now();
        let mut sent = 0_u64;
        while begun.elapsed() < Duration::from_secs(4) {
            // A hundred at a time, at 150,000 a second: more than is asked for.
            for _ in 0..100 {
                near.send(&[0; 100]).expect("a packet sent");
                sent += 1;
            }
            let due = begun + Duration::from_secs_f64(sent as f64 / 150_000.0);
            wait::measure_for(due.saturating_duration_since(Instant::now()));
        }
        let took = begun.elapsed().as_secs_f64();
        let cpu = linked.process().cpu_time().saturating_sub(before).as_secs_f64();
        let told = linked.end();
        let delivered = told["there"]["delivered"].as_u64().unwrap() as f64;
        println!(
            "{:.0} packets per second of the link's CPU; by the clock {:.0} a second of {:.0} sent",
            delivered / cpu,
            delivered / took,
            sent as f64 / took
        );
        let mut promises = Promises::of("measure_lab");
        let what = "small packets per second of a link's CPU";
        promises.at_least(what, delivered / cpu, PACKETS_PER_CPU_S_MIN, "");
        promises.hold();
    });
}
