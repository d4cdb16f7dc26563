//! Checks that no sequence of client actions ejects a working server, and that a broken one is
//! ejected soon.

mod simulation;

/// Returns a first seed and prints it: with `WEIR_SEED` the same sequences run again.
fn first_seed() -> u64 {
    let given = std::env::var("WEIR_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = given.unwrap_or_else(|| fastrand::u64(..));
    println!("WEIR_SEED={seed}");
    seed
}

#[test]
fn no_client_ejects_a_server_that_works() {
    let first = first_seed();
    for n in 0..20_000 {
        simulation::attack(first.wrapping_add(n));
    }
}

#[test]
fn a_server_that_fails_everything_is_ejected_soon() {
    let first = first_seed();
    let runs = (0..500).map(|n| simulation::requests_until_ejected(first.wrapping_add(n)));
    let mut needed: Vec<usize> = runs.map(|run| run.unwrap_or(usize::MAX)).collect();
    needed.sort_unstable();
    let (median, most) = (needed[needed.len() / 2], needed[needed.len() - 1]);
    println!("requests until ejected, of all servers: median {median}, at most {most}");
    assert!(most < 400, "{most}");
}

#[test]
#[ignore = "a million sequences take a minute: make prove"]
fn no_client_ejects_a_server_that_works_in_a_million_sequences() {
    let first = first_seed();
    for n in 0..1_000_000 {
        simulation::attack(first.wrapping_add(n));
    }
}
