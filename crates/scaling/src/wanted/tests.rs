//! Single answers, and short sequences of them. Whole services are simulated in `tests/sim`.

use std::time::Duration;

use super::wanted;
use crate::{Capacity, Load, Memory, Reason, Terms, Wanted, wire};

/// A service whose servers have 10 slots.
struct Service {
    terms: Terms,
    memory: Memory,
    now: Duration,
}

impl Service {
    fn new(servers_min: u32, servers_max: u32) -> Service {
        let terms = Terms::new(Capacity::Limit(10), servers_min, servers_max);
        Service { terms, memory: Memory::default(), now: Duration::from_secs(1_000) }
    }

    /// The answer 15 s later.
    fn next(&mut self, load: Load, servers: u32) -> Wanted {
        self.now += Duration::from_secs(15);
        wanted(&load, servers, &self.terms, &mut self.memory, self.now)
    }

    fn repeat(&mut self, times: usize, load: Load, servers: u32) -> Wanted {
        for _ in 1..times {
            self.next(load, servers);
        }
        self.next(load, servers)
    }
}

/// So many requests per second of 95 ms, all served.
fn served(rate: f64) -> Load {
    let worked = rate * 0.095;
    Load { arrivals: rate, completions: rate, worked, in_flight: worked, ..Load::default() }
}

fn answer(wanted: &Wanted) -> (Option<u32>, Reason) {
    (wanted.servers, wanted.reason)
}

#[test]
fn the_text_has_the_figures() {
    let mut service = Service::new(1, 100);
    let more = service.next(served(840.0), 10);
    assert_eq!(answer(&more), (Some(13), Reason::MoreLoad));
    assert_eq!(
        more.to_string(),
        "840 requests/s × 95 ms need 80 slots; with 70 % utilization and a queueing reserve of 11: \
         13 servers of 10 slots"
    );
    assert_eq!(answer(&service.next(served(840.0), 13)), (Some(13), Reason::Steady));
}

#[test]
fn servers_within_the_tolerance_are_kept() {
    let mut service = Service::new(1, 100);
    // 750 requests/s need 11.2 servers, 12.3 with the tolerance; 700 need 10.5, 11.5 with the tolerance.
    assert_eq!(answer(&service.repeat(50, served(750.0), 13)), (Some(13), Reason::Steady));
    let near = service.repeat(50, served(750.0), 13);
    assert!(near.to_string().ends_with("12 servers of 10 slots; 13 are close enough"), "{near}");
    assert_eq!(answer(&service.repeat(50, served(700.0), 13)), (Some(11), Reason::LessLoad));
    // More servers are wanted at once.
    let refused = Load { refusals: 10.0, arrivals: 910.0, ..served(900.0) };
    assert_eq!(answer(&service.next(refused, 13)), (Some(14), Reason::Refusals));
}

#[test]
fn refusals_count_up_to_a_multiple_of_what_is_served() {
    let mut service = Service::new(1, 1_000);
    service.terms.growth_max = 10.0;
    let load = Load { arrivals: 10_000.0, refusals: 9_160.0, ..served(840.0) };
    let wanted = service.next(load, 10);
    // As for 1,680 requests/s: 228 slots at the utilization, and 15.
    assert_eq!(answer(&wanted), (Some(25), Reason::Refusals));
    let text = wanted.to_string();
    assert!(
        text.ends_with("(840 of 9160 refusals/s are counted, others may be retries)"),
        "{text}"
    );
}

#[test]
fn refusals_count_up_to_what_one_server_serves_if_nothing_is_served() {
    let mut service = Service::new(1, 1_000);
    service.next(served(840.0), 13);
    let outage = Load { arrivals: 5_000.0, refusals: 5_000.0, ..Load::default() };
    let figures = service.next(outage, 13).figures;
    // 70 % of 10 slots, each for 95 ms.
    assert!((figures.refusals_counted - 7.0 / 0.095).abs() < 1e-6, "{figures:?}");
    assert_eq!(figures.servers_needed, 2);
}

#[test]
fn growth_is_bounded_by_the_current_servers() {
    let mut service = Service::new(1, 1_000);
    let wanted = service.next(served(8_400.0), 10);
    assert_eq!(answer(&wanted), (Some(20), Reason::StepLimited));
    assert!(wanted.to_string().ends_with("; 20 in one step from 10"), "{wanted}");
    assert_eq!(answer(&service.next(served(8_400.0), 10)), (Some(20), Reason::StepLimited));
    assert_eq!(answer(&service.next(served(8_400.0), 20)), (Some(40), Reason::StepLimited));
    assert_eq!(service.next(served(8_400.0), 1).servers, Some(40));
}

#[test]
fn fewer_servers_are_wanted_after_the_window() {
    let mut service = Service::new(1, 100);
    assert_eq!(service.next(served(840.0), 13).servers, Some(13));
    let held = service.repeat(20, served(420.0), 13);
    assert_eq!(answer(&held), (Some(13), Reason::ScaleInHeld));
    assert!(held.to_string().ends_with("held at 13, the highest number of the last 300 s"));
    assert_eq!(answer(&service.repeat(2, served(420.0), 13)), (Some(7), Reason::LessLoad));
    assert_eq!(answer(&service.next(served(420.0), 7)), (Some(7), Reason::Steady));
}

#[test]
fn an_instance_that_has_just_started_asks_for_no_fewer() {
    let mut service = Service::new(1, 100);
    assert_eq!(answer(&service.next(served(84.0), 10)), (Some(10), Reason::ScaleInHeld));
}

#[test]
fn refusals_and_requests_in_flight_hold_the_servers() {
    let mut service = Service::new(1, 100);
    let outage = Load { arrivals: 500.0, refusals: 500.0, ..Load::default() };
    service.next(served(840.0), 13);
    let held = service.repeat(100, outage, 13);
    assert_eq!(answer(&held), (Some(13), Reason::ScaleInHeld));
    assert!(held.to_string().contains("held at 13 while 500 requests/s are refused"), "{held}");
    // All servers are gone: what was wanted before stays wanted.
    assert_eq!(answer(&service.repeat(100, outage, 0)), (Some(13), Reason::ScaleInHeld));
    let long = Load { in_flight: 95.0, ..served(10.0) };
    assert_eq!(service.repeat(100, long, 13).servers, Some(10));
    // One refusal in two thousand holds nothing.
    let one = Load { arrivals: 400.2, refusals: 0.2, ..served(400.0) };
    assert_eq!(service.repeat(100, one, 10).servers, Some(7));
}

#[test]
fn requests_that_wait_are_drained_in_time() {
    let mut service = Service::new(1, 100);
    let queue = Load { waiting: 9_500.0, ..served(840.0) };
    let wanted = service.next(queue, 13);
    // 9,500 × 95 ms / 30 s = 30 slots more.
    assert_eq!(answer(&wanted), (Some(16), Reason::Queue));
    let text = wanted.to_string();
    assert!(
        text.contains("and 30 to serve 9500 waiting requests within 30 s: 16 servers"),
        "{text}"
    );
}

#[test]
fn the_bounds_are_kept() {
    let mut service = Service::new(5, 8);
    let most = service.next(served(840.0), 7);
    assert_eq!(answer(&most), (Some(8), Reason::AtMax));
    assert!(most.to_string().ends_with("13 servers of 10 slots; the maximum is 8"), "{most}");
    let least = service.repeat(40, served(10.0), 8);
    assert_eq!(answer(&least), (Some(5), Reason::AtMin));
    assert!(least.to_string().ends_with("; the minimum is 5"), "{least}");
    assert_eq!(Service::new(5, 8).next(served(10.0), 50).servers, Some(8));
}

#[test]
fn zero_servers_need_a_minimum_of_zero_and_an_idle_service() {
    for (least, expected) in [(0, 0), (2, 2)] {
        let mut service = Service::new(least, 10);
        service.next(served(84.0), 4);
        // 600 s without load.
        let before = service.repeat(39, Load::default(), 4);
        assert_eq!(before.servers, Some(least.max(1)), "{before}");
        let idle = service.next(Load::default(), 4);
        assert_eq!(answer(&idle), (Some(expected), Reason::NoLoad));
        assert!(idle.to_string().starts_with("no requests for 600 s: "), "{idle}");
    }
    let mut service = Service::new(0, 10);
    assert_eq!(service.next(Load::default(), 0).servers, Some(0));
    let first = Load { arrivals: 0.01, waiting: 1.0, ..Load::default() };
    assert_eq!(service.next(first, 0).servers, Some(1));
    let refused = Load { arrivals: 0.01, refusals: 0.01, ..Load::default() };
    assert_eq!(Service::new(0, 10).next(refused, 0).servers, Some(1));
}

#[test]
fn before_a_request_has_ended_those_in_flight_count() {
    let mut service = Service::new(1, 100);
    let load = Load { arrivals: 5.0, in_flight: 40.0, waiting: 300.0, ..Load::default() };
    let wanted = service.next(load, 4);
    assert_eq!(answer(&wanted), (Some(8), Reason::UnknownServiceTime));
    let text = "no request has ended yet; 40 in flight and 300 waiting: 8 servers";
    assert_eq!(wanted.to_string(), text);
    // The service time stays known while nothing ends.
    service.next(served(10.0), 8);
    assert_eq!(
        service.next(load, 8).figures.service_seconds.map(|s| (s * 1e3).round() as u32),
        Some(95)
    );
}

#[test]
fn without_a_limit_a_target_of_requests_in_flight_is_needed() {
    let mut service = Service::new(1, 100);
    service.terms.capacity = Capacity::Unknown;
    let none = service.next(served(840.0), 3);
    assert_eq!(answer(&none), (None, Reason::NoLimit));
    assert!(none.to_string().starts_with("no number: "), "{none}");
    // 80 in flight, 8 on each server, and the reserve of 11 of the 11.4 slots that each then has.
    service.terms.capacity = Capacity::InFlightTarget(8.0);
    assert_eq!(service.next(served(840.0), 10).figures.servers_needed, 11);
}

#[test]
fn loads_that_are_not_numbers_do_no_harm() {
    let odd = Load {
        arrivals: f64::NAN,
        refusals: f64::INFINITY,
        completions: -3.0,
        worked: f64::NAN,
        in_flight: f64::MAX,
        waiting: f64::NEG_INFINITY,
    };
    // As a load of nothing but `LOAD_MAX` requests in flight. A millionth of the servers is within rounding.
    let mut service = Service::new(1, u32::MAX);
    let most = service.next(odd, 4);
    assert_eq!(answer(&most), (Some(8), Reason::UnknownServiceTime));
    assert_eq!(most.figures.servers_needed, 99_999_900);
    assert_eq!(answer(&service.next(served(84.0), 2)), (Some(8), Reason::ScaleInHeld));
    // The same as without the odd numbers.
    let odd = Load { refusals: f64::NAN, waiting: -7.0, ..served(840.0) };
    let mut service = Service::new(1, 100);
    assert_eq!(answer(&service.next(odd, 10)), (Some(13), Reason::MoreLoad));
    assert_eq!(answer(&service.next(odd, 13)), (Some(13), Reason::Steady));
}

#[test]
fn any_number_of_servers_is_brought_within_the_bounds() {
    let mut service = Service::new(1, 100);
    assert_eq!(answer(&service.next(served(840.0), u32::MAX)), (Some(100), Reason::LessLoad));
    assert_eq!(service.repeat(22, served(840.0), 100).servers, Some(13));
}

#[test]
fn loads_in_single_precision_need_no_server_more() {
    // 10,000 slots are full. Each share is rounded, nine of them up: the sum becomes 10,000.0002.
    let one = Load { in_flight: 10_000.0, ..served(100.0) };
    let share = |in_flight: f64| Load { in_flight, ..served(10.0) };
    let mut shares = vec![share(1_000.000_04); 9];
    shares.push(share(999.999_64));
    let sent = |loads: Vec<Load>| -> Load {
        let read = |load| wire::read(&wire::write([("web", load)])[0]).unwrap()[0].1;
        loads.into_iter().map(read).sum()
    };
    let many = sent(shares.clone());
    assert!(many.in_flight > 10_000.000_1, "{many:?}");
    for (servers, expected) in
        [(1_000, (Some(1_000), Reason::Steady)), (999, (Some(1_000), Reason::MoreLoad))]
    {
        for load in [one, many] {
            let wanted = Service::new(1, 2_000).next(load, servers);
            assert_eq!(answer(&wanted), expected, "{wanted}");
            assert_eq!(wanted.figures.servers_needed, 1_000, "{wanted}");
        }
    }
    // The reason does not depend on rounding either: the slots are full, and more servers are for the queue.
    let shares = shares.iter().map(|load| Load { waiting: 320_000.0, ..*load });
    for load in [Load { waiting: 3_200_000.0, ..one }, sent(shares.collect())] {
        let wanted = Service::new(1, 2_000).next(load, 1_000);
        assert_eq!(answer(&wanted), (Some(1_429), Reason::Queue), "{wanted}");
    }
    // A need that is really higher does count.
    let more = Load { in_flight: 10_000.1, ..one };
    assert_eq!(Service::new(1, 2_000).next(more, 1_000).servers, Some(1_001));
}

#[test]
fn long_requests_that_fill_all_slots_need_more_servers_once_others_wait() {
    // Tunnels of hours occupy 20 slots, and a few short requests end.
    let quiet =
        Load { in_flight: 20.0, arrivals: 0.5, completions: 0.5, worked: 0.01, ..Load::default() };
    assert_eq!(answer(&Service::new(1, 9).next(quiet, 2)), (Some(2), Reason::Steady));
    let refused = Load { arrivals: 2.0, refusals: 1.5, ..quiet };
    assert_eq!(answer(&Service::new(1, 9).next(refused, 2)), (Some(3), Reason::Refusals));
    let waiting = Load { waiting: 1.0, ..quiet };
    assert_eq!(Service::new(1, 9).next(waiting, 2).servers, Some(3));
}
