//! Schedules: what disturbs a fleet. Each follows from its seed.

use crate::judge::SECOND;
use crate::world::{Figures, Nature, Network, World, ZONES};

/// What a schedule has of everything.
#[derive(Clone, Copy)]
pub(crate) struct Size {
    pub(crate) members: usize,
    pub(crate) servers: usize,
}

/// A schedule that has begun.
struct Plot {
    world: World,
    /// A server that one member cannot reach, and the member.
    cut: Option<(usize, usize)>,
    has_churn: bool,
    has_partitions: bool,
    loss_max: f64,
}

/// Plays a schedule of the kind that its seed has.
pub(crate) fn play(seed: u64, size: Size) -> (Nature, Figures, Option<String>) {
    let mut rng = fastrand::Rng::with_seed(seed);
    let kind = seed % 6;
    let is_calm = kind < 2;
    // One member for each zone may say what is wrong: so no liar where one cannot reach a server.
    let (may_lie, may_cut) = ([2, 3, 5].contains(&kind), kind == 4);
    let nature = Nature {
        is_calm,
        keeps_copies: kind == 0,
        liar: (may_lie && (kind == 2 || rng.bool())).then(|| rng.usize(..size.members)),
        chance_failures: if kind == 5 { rng.f64() * 0.05 } else { 0.0 },
        has_pauses: kind == 4 || kind == 5,
        is_shown: rng.bool(),
    };
    let cut = may_cut.then(|| (rng.usize(..size.servers), rng.usize(..size.members)));
    let world = World::new(rng, nature, size.members, size.servers);
    let mut plot = Plot {
        world,
        cut,
        has_churn: kind > 2,
        has_partitions: kind > 2,
        loss_max: if is_calm { 0.05 } else { 0.2 },
    };
    plot.begin();
    if is_calm {
        plot.calm();
    } else {
        plot.rough();
    }
    plot.world.end_calm();
    (nature, plot.world.figures, plot.world.failure)
}

/// Plays a calm schedule of a large fleet: some seconds, then a server dies, and some more.
pub(crate) fn play_large(seed: u64, size: Size, seconds: [u64; 2]) -> (Figures, Option<String>) {
    let rng = fastrand::Rng::with_seed(seed);
    let nature = Nature { is_calm: true, keeps_copies: true, ..Nature::default() };
    let world = World::new(rng, nature, size.members, size.servers);
    let mut plot =
        Plot { world, cut: None, has_churn: false, has_partitions: false, loss_max: 0.02 };
    plot.begin();
    let world = &mut plot.world;
    world.run(seconds[0] * SECOND);
    world.set_dead(0, true);
    world.run(seconds[1] * SECOND);
    world.end_calm();
    (world.figures, world.failure.take())
}

impl Plot {
    /// Starts the members within two seconds, but for a few that join later.
    fn begin(&mut self) {
        let members = self.world.nodes.len();
        self.draw_network();
        for at in 0..members {
            let is_late = self.has_churn && at > 2 && self.world.rng.u8(..8) == 0;
            if !is_late {
                self.world.start(at);
            }
            self.world.run(2 * SECOND / members as u64);
        }
    }

    fn draw_network(&mut self) {
        let rng = &mut self.world.rng;
        self.world.network = Network {
            loss: rng.f64() * self.loss_max,
            duplication: if rng.bool() { rng.f64() * 0.1 } else { 0.0 },
            jitter: rng.u64(..40_000),
        };
        let network = self.world.network;
        self.world.disturbed(|| format!("loss {:.3}, jitter {} µs", network.loss, network.jitter));
    }

    /// A calm stretch, then servers that die, are slow and return.
    fn calm(&mut self) {
        let world = &mut self.world;
        let slow = world.rng.usize(..world.servers.len());
        world.servers[slow].takes = world.rng.u64(1_000..480_000);
        world.run(22 * SECOND + SECOND / 2);
        let dying: Vec<usize> = (0..2).map(|_| world.rng.usize(..world.servers.len())).collect();
        for &server in &dying {
            world.set_dead(server, true);
            let pause = world.rng.u64(..SECOND);
            world.run(pause);
        }
        world.run(11 * SECOND);
        for &server in &dying {
            world.set_dead(server, false);
            let pause = world.rng.u64(..SECOND);
            world.run(pause);
        }
        world.run(9 * SECOND);
    }

    /// A good half minute of disturbances; then the fleet has time to recover.
    fn rough(&mut self) {
        self.world.run(6 * SECOND);
        let end = self.world.time + 36 * SECOND;
        while self.world.time < end && self.world.failure.is_none() {
            self.disturb();
            let pause = self.world.rng.u64(..3 * SECOND);
            self.world.run(pause);
        }
        for server in 0..self.world.servers.len() {
            if self.world.servers[server].is_dead {
                self.world.set_dead(server, false);
            }
        }
        self.heal();
        self.loss_max = 0.05;
        self.draw_network();
        self.world.run(17 * SECOND);
    }

    fn disturb(&mut self) {
        let world = &mut self.world;
        let at = world.rng.usize(..world.nodes.len());
        let server = world.rng.usize(..world.servers.len());
        match world.rng.u8(..10) {
            0 | 1 if self.has_churn => self.churn(at),
            2 if self.has_churn => {
                let absent = world.nodes.iter().position(|node| node.process.is_none());
                world.start(absent.unwrap_or(at));
            }
            3 if self.has_partitions => self.part(),
            4 if self.has_partitions => self.heal(),
            5 if world.nature.has_pauses && world.nodes[at].process.is_some() => {
                let time = world.rng.u64(SECOND / 10..6 * SECOND);
                world.pause(at, time);
            }
            6 => self.draw_network(),
            7 if let Some((server, at)) = self.cut => {
                let time = world.rng.u64(SECOND..20 * SECOND);
                world.cut(at, server, time);
            }
            _ => {
                // Few change, so that some stay as they are for as long as it takes to be known.
                let server = server % 4 * world.servers.len() / 4;
                let it = &world.servers[server];
                if world.time - it.since > 19 * SECOND || world.rng.u8(..4) == 0 {
                    let is_dead = it.is_dead;
                    world.set_dead(server, !is_dead);
                }
            }
        }
    }

    /// A process ends, and perhaps its successor starts at once.
    fn churn(&mut self, at: usize) {
        let world = &mut self.world;
        let live = world.nodes.iter().filter(|node| node.process.is_some()).count();
        if live * 2 > world.nodes.len() {
            if world.rng.bool() { world.crash(at) } else { world.leave(at) }
        }
        if world.rng.bool() {
            // Sometimes the wall clock was set back.
            let back = world.rng.i64(0..40_000) * i64::from(world.rng.u8(..4) == 0);
            world.nodes[at].wall_ms -= back;
            world.start(at);
        }
    }

    /// Cuts off a zone, or a random half.
    fn part(&mut self) {
        let world = &mut self.world;
        world.disturbed(|| "a partition".to_owned());
        let zone = world.rng.bool().then(|| world.rng.usize(..ZONES));
        for at in 0..world.nodes.len() {
            let is_off = zone.map_or_else(|| world.rng.bool(), |zone| at % ZONES == zone);
            world.nodes[at].group = u8::from(is_off);
        }
    }

    fn heal(&mut self) {
        self.world.disturbed(|| "no partition".to_owned());
        self.world.nodes.iter_mut().for_each(|node| node.group = 0);
    }
}
