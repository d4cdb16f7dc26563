//! The promises of the lab's links that take the machine for themselves: `make prove`.

use std::net::UdpSocket;
use std::process::Command;
use std::time::{Duration, Instant};

use e2e::{Linked, NAMESPACES, Process, Scene, Zones, find, wait};
use serde_json::Value;

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
#[ignore = "takes the machine for itself: make prove"]
fn a_delay_is_kept_to_a_fifth_of_a_millisecond() {
    let Some(scene) = Scene::alone("prove-lab-delay", &[NAMESPACES]) else { return };
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
        assert!(link.at(0.5) - timer.at(0.5) <= ADDED_MAX_MS);
    });
}

#[test]
#[ignore = "takes the machine for itself: make prove"]
fn a_link_and_netem_delay_alike() {
    let Some(scene) = Scene::alone("prove-lab-netem", &[NAMESPACES, "tc"]) else { return };
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
        println!("left out: this kernel has no sch_netem to compare with");
        return;
    };
    let link = Linked::run(&scene, "both = { delay = \"20ms\" }", &[], |linked| {
        let near = UdpSocket::bind(linked.near(0)).expect("a socket");
        one_way(near, linked.inside_far(|| UdpSocket::bind(linked.far(5_000)).expect("a socket")))
    });
    println!("late by {:.3} ms, netem by {:.3} ms", link.at(0.5), netem.at(0.5));
    assert!(link.at(0.5) - netem.at(0.5) <= ADDED_MAX_MS);
}

#[test]
#[ignore = "takes the machine for itself: make prove"]
fn unproven_a_link_carries_a_gigabit_packet_by_packet_and_much_more_in_large_ones() {
    let Some(scene) = Scene::alone("prove-lab-gigabit", &[NAMESPACES, "iperf3"]) else { return };
    for (kind, words) in [("packet by packet", &[][..]), ("large packets", &["--large"])] {
        let ways = "both = { delay = \"1ms\" }";
        let gigabits = Linked::run(&scene, ways, words, |linked| {
            let iperf = find("iperf3").unwrap();
            let at = linked.far(5_201).ip().to_string();
            let server = linked.inside_far(|| {
                Process::start(&scene, "iperf3", &iperf, ["-s", "-1", "--forceflush"])
            });
            wait::until("iperf3", Duration::from_secs(5), || {
                server.stdout().contains("listening").then_some(())
            });
            let words = ["-c", &at, "-t", "5", "-O", "1", "-J"];
            let client = Command::new(&iperf).args(words).output().unwrap();
            let ran: Value = serde_json::from_slice(&client.stdout).expect("iperf3's JSON");
            let cpu = linked.process().cpu_time().as_secs_f64();
            let told = linked.end();
            let packets = told["there"]["delivered"].as_u64().unwrap()
                + told["back"]["delivered"].as_u64().unwrap();
            let gigabits = ran["end"]["sum_received"]["bits_per_second"].as_f64().unwrap() / 1e9;
            println!(
                "{kind}: {gigabits:.2} Gb/s; {:.0} packets per second of the link's CPU",
                packets as f64 / cpu
            );
            gigabits
        });
        // TCP's own work for each packet of 1,500 bytes takes most of a processor.
        assert!(gigabits >= 1.0 || words.is_empty(), "{kind}: {gigabits}");
    }
}

#[test]
#[ignore = "takes the machine for itself: make prove"]
fn unproven_a_link_carries_a_hundred_thousand_packets_a_second_on_one_processor() {
    let Some(scene) = Scene::alone("prove-lab-packets", &[NAMESPACES]) else { return };
    let ways = "both = { delay = \"1ms\", loss = \"0.1%\" }";
    Linked::run(&scene, ways, &[], |linked| {
        let near = UdpSocket::bind(linked.near(0)).expect("a socket");
        let far = linked.inside_far(|| UdpSocket::bind(linked.far(5_000)).expect("a socket"));
        near.connect(far.local_addr().unwrap()).unwrap();
        let before = linked.process().cpu_time();
        let begun = Instant::now();
        let mut sent = 0_u64;
        while begun.elapsed() < Duration::from_secs(4) {
            // A thousand at a time, at 150,000 a second: more than is asked for.
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
        let delivered = told["there"]["delivered"].as_u64().unwrap();
        let per_second = delivered as f64 / took;
        let per_cpu_second = delivered as f64 / cpu;
        println!(
            "{per_second:.0} packets/s of {:.0} sent; {per_cpu_second:.0} per CPU second of the link",
            sent as f64 / took
        );
        assert!(per_second >= 100_000.0 && per_cpu_second >= 100_000.0);
    });
}
