//! Minutes of full load with reloads and kills: memory and descriptors do not grow. `make soak`;
//! `SOAK_SECONDS` says how long, five minutes if it is not set.

use std::time::{Duration, Instant};

use e2e::clients::{Load, wrk};
use e2e::{App, Nginx, Scene, Weir, server_tables, wait};

/// There is a reload every second.
const LOOK_EVERY_S: u64 = 2;
/// A server that was killed returns a second later.
const KILL_EVERY_S: u64 = 5;
const CONNECTIONS: u32 = 64;
/// Clients that POST, one request at a time each.
const POSTERS: u32 = 4;

/// More than this from the first minute to the last is not flat.
const RESIDENT_GROWTH_MAX_BYTES: f64 = 6e6;
const RESIDENT_GROWTH_MAX_SHARE: f64 = 0.1;
/// Connections come and go with the kills.
const DESCRIPTORS_GROWTH_MAX: f64 = 60.0;

/// A look at the process.
struct Sample {
    resident_bytes: u64,
    descriptors: usize,
}

#[test]
#[ignore = "takes five minutes: make soak"]
fn memory_and_descriptors_stay_flat() {
    let Some(scene) = Scene::alone("soak", &["nginx", "python3", "wrk"]) else {
        return;
    };
    let seconds = std::env::var("SOAK_SECONDS").ok().and_then(|text| text.parse().ok());
    let seconds: u32 = seconds.unwrap_or(300);
    let nginx = [11, 12].map(|host| Nginx::start(&scene, host, ""));
    let mut apps = [21, 22, 23].map(|host| App::start(&scene, host, &["--work-ms", "2"]));
    let addresses = apps.each_ref().map(App::address);
    let config = |generation| configuration(&scene, &nginx, &addresses, generation);
    let mut weir = Weir::start(&scene, &config(0));
    let front = weir.front();
    let idle_descriptors = weir.process().open_descriptors();

    let gets = Load::start(&scene, front, "/app?size=20000", 8);
    let words = ["--method", "POST", "--body-bytes", "20000", "--new-connections"];
    let posts = Load::start_with(&scene, front, "/app", POSTERS, &words);
    let time = Duration::from_secs(seconds.into());
    let (full, watched) = std::thread::scope(|scope| {
        let full = scope.spawn(|| wrk(&scene, front, "/", CONNECTIONS, seconds));
        let watched = watch(&scene, &mut weir, &mut apps, &config, time);
        (full.join().expect("wrk"), watched)
    });
    let Watched { samples, reloads, kills } = watched;
    let (gets, posts) = (gets.finish(), posts.finish());
    println!(
        "{reloads} reloads, {kills} kills; {full:?}\nGETs {}\nPOSTs {}",
        gets.json, posts.json
    );

    assert_eq!(full.non_2xx_3xx + full.socket_errors, 0, "{full:?}");
    assert_eq!(gets.status(200) + gets.broken_off(), gets.requests(), "{:#}", gets.json);
    // A POST that was sent to a server which is then killed is not repeated. There may be one of
    // each client, at each kill; the last victim may not have returned.
    let lost = posts.status(502) + posts.broken_off();
    assert_eq!(posts.status(200) + lost, posts.requests(), "{:#}", posts.json);
    let lost_max = (kills as u64 + 1) * u64::from(POSTERS);
    assert!(lost <= lost_max, "{lost} POSTs lost, above {lost_max}: {:#}", posts.json);
    assert!(reloads > u64::from(seconds) / 2, "only {reloads} reloads came into force");
    assert_flat(&samples);
    wait::until("all connections to be closed", Duration::from_secs(15), || {
        (weir.process().open_descriptors() <= idle_descriptors + 8).then_some(())
    });
}

/// What was seen, and how much was done meanwhile.
struct Watched {
    samples: Vec<Sample>,
    reloads: u64,
    kills: usize,
}

/// Reloads, kills, and looks at the process, until the time is over.
fn watch(
    scene: &Scene,
    weir: &mut Weir,
    apps: &mut [App],
    config: &impl Fn(u64) -> String,
    time: Duration,
) -> Watched {
    let began = Instant::now();
    let mut watched = Watched { samples: Vec::new(), reloads: 0, kills: 0 };
    let mut generation = generation_of(weir);
    for second in 1.. {
        wait::measure_for(Duration::from_secs(second).saturating_sub(began.elapsed()));
        if began.elapsed() >= time {
            break;
        }
        let victim = &mut apps[watched.kills % 3];
        match second % KILL_EVERY_S {
            0 => victim.kill(),
            1 if second > 1 => {
                victim.restart(scene);
                watched.kills += 1;
            }
            _ => {}
        }
        scene.file("weir.toml", config(generation));
        weir.hang_up();
        let loaded = wait::within(Duration::from_secs(5), || {
            let now = generation_of(weir);
            (now > generation).then_some(now)
        });
        generation = loaded.expect("SIGHUP loads the configuration");
        watched.reloads += 1;
        if second % LOOK_EVERY_S == 0 {
            let process = weir.process();
            let (resident_bytes, descriptors) =
                (process.resident_bytes(), process.open_descriptors());
            if watched.samples.len().is_multiple_of(10) {
                println!("{second:4} s: {} kB, {descriptors} fds", resident_bytes / 1000);
            }
            watched.samples.push(Sample { resident_bytes, descriptors });
        }
    }
    watched
}

fn generation_of(weir: &Weir) -> u64 {
    weir.api("/api/v1/status")["generation"].as_u64().expect("a generation")
}

/// The first fifth is for what is taken once and kept; what comes after it is compared with the
/// end.
fn assert_flat(samples: &[Sample]) {
    let fifth = samples.len() / 5;
    assert!(fifth >= 2, "too short to say: {} samples", samples.len());
    let (early, late) = (&samples[fifth..2 * fifth], &samples[samples.len() - fifth..]);
    let mean = |of: &[Sample], what: fn(&Sample) -> f64| {
        of.iter().map(what).sum::<f64>() / of.len() as f64
    };
    let compare = |what: fn(&Sample) -> f64| (mean(early, what), mean(late, what));
    let (resident, resident_late) = compare(|sample| sample.resident_bytes as f64);
    let (open, open_late) = compare(|sample| sample.descriptors as f64);
    println!(
        "early {:.1} MB and {open:.0} descriptors, late {:.1} MB and {open_late:.0}",
        resident / 1e6,
        resident_late / 1e6
    );
    let resident_max =
        resident + (resident * RESIDENT_GROWTH_MAX_SHARE).max(RESIDENT_GROWTH_MAX_BYTES);
    assert!(resident_late <= resident_max, "{resident_late} bytes, above {resident_max}");
    let open_max = open + DESCRIPTORS_GROWTH_MAX;
    assert!(open_late <= open_max, "{open_late} descriptors, above {open_max}");
}

/// Every generation has another listener, service and route; what carries the load stays.
fn configuration(
    scene: &Scene,
    nginx: &[Nginx],
    apps: &[std::net::SocketAddr],
    generation: u64,
) -> String {
    let extra = scene.address(1, 8100 + (generation % 3) as u16);
    scene.config(
        "workers = 2\nlog = { access = \"/dev/null\" }\nreload = { watch = false }\n\
         drain_max = \"2s\"",
        &format!(
            "[[listener]]\nname = \"extra\"\naddress = \"{extra}\"\n\
             [[route]]\nservice = \"site\"\n\
             [[route]]\npath = \"/app\"\nservice = \"app\"\n\
             [[route]]\npath = \"/extra-{generation}\"\nservice = \"extra-{generation}\"\n\
             [service.site]\ntimeouts = {{ keep_alive = \"4s\" }}\n{}\
             [service.app]\ntimeouts = {{ keep_alive = \"4s\" }}\nin_flight_max = {}\n\
             check = {{ path = \"/status\", interval = \"400ms\", timeout = \"300ms\" }}\n{}\
             [service.extra-{generation}]\n{}",
            server_tables("site", nginx.iter().map(Nginx::address)),
            50 + generation % 7,
            server_tables("app", apps),
            server_tables(&format!("extra-{generation}"), apps),
        ),
    )
}
