//! Zone-aware failover: decides which servers are eligible: those of the local zone, then other
//! zones', then backups, each with the reason.
//!
//! Traffic fails over when too little capacity is left nearer by, and fails back only when clearly
//! enough of it has returned, so that a flapping server does not move the traffic of a whole zone
//! with it. `pick` chooses among the eligible servers.

use model::{WhenAllDown, ZonePolicy};

model::words! {
    /// How far traffic has failed over. Ordered: later ones include the earlier.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Tier {
        /// The local zone's primary servers.
        OwnZone = "own_zone",
        /// Every zone's primary servers.
        AllZones = "all_zones",
        /// Backups too.
        Backups = "backups",
        /// No server is ready; every server not in drain or maintenance is tried as if it were.
        TryAll = "try_all",
        /// No server.
        Nobody = "none",
    }
}

model::words! {
    /// Why the tier applies.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Reason {
        /// Weir has no zone configured, so no server is nearer than another.
        NoZoneConfigured = "no_zone_configured",
        /// Enough of the local zone is ready.
        OwnZoneReady = "own_zone_ready",
        /// The service has no server in the local zone.
        OwnZoneAbsent = "own_zone_absent",
        /// No server of the local zone is ready.
        OwnZoneDown = "own_zone_down",
        /// Less than `ready_min` of the local zone is ready.
        OwnZoneTooFew = "own_zone_too_few",
        /// The local zone is recovering, but less than `ready_recovered` of it is ready.
        OwnZoneRecovering = "own_zone_recovering",
        /// The service has only backups.
        OnlyBackups = "only_backups",
        /// Only backups are ready.
        PrimariesDown = "primaries_down",
        /// Less than `ready_min` of the primary servers is ready.
        PrimariesTooFew = "primaries_too_few",
        /// They are recovering, but less than `ready_recovered` of them is ready.
        PrimariesRecovering = "primaries_recovering",
        /// No server is ready.
        AllDown = "all_down",
        /// No server receives new requests: none is known, or every weight is 0.
        NoServers = "no_servers",
    }
}

impl Reason {
    /// Returns the reason as the end of a sentence: "… because *no server of the own zone is
    /// ready*".
    pub fn text(self) -> &'static str {
        match self {
            Reason::NoZoneConfigured => "the balancer has no zone configured",
            Reason::OwnZoneReady => "enough of the own zone is ready",
            Reason::OwnZoneAbsent => "the service has no server in the own zone",
            Reason::OwnZoneDown => "no server of the own zone is ready",
            Reason::OwnZoneTooFew => "less than ready_min of the own zone is ready",
            Reason::OwnZoneRecovering => "less than ready_recovered of the own zone is back",
            Reason::OnlyBackups => "the service has only backups",
            Reason::PrimariesDown => "no primary server is ready",
            Reason::PrimariesTooFew => "less than ready_min of the primary servers is ready",
            Reason::PrimariesRecovering => {
                "less than ready_recovered of the primary servers is back"
            }
            Reason::AllDown => "no server is ready",
            Reason::NoServers => "no server takes new work",
        }
    }
}

/// A server's properties that determine its eligibility.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    /// It is in Weir's zone. Also true if Weir has no zone, and for a server whose zone is unknown:
    /// nothing says that it is far away.
    pub own: bool,
    /// It is a backup.
    pub backup: bool,
    /// It may receive new requests.
    pub ready: bool,
    /// An operator has taken it out (drain, maintenance): not even tried when all are down.
    pub set_aside: bool,
    /// Its configured weight. Servers of weight 0 are never eligible and do not count.
    pub weight: u16,
}

/// Which servers are eligible, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The tier.
    pub tier: Tier,
    /// The reason.
    pub reason: Reason,
    /// For each member, in order, whether it is eligible.
    pub eligible: Vec<bool>,
}

/// Ready and total weight of some members.
#[derive(Clone, Copy)]
struct Share {
    ready: u64,
    total: u64,
}

impl Share {
    fn of<'a>(members: impl Iterator<Item = &'a Member>) -> Share {
        members.fold(Share { ready: 0, total: 0 }, |sum, member| {
            let weight = u64::from(member.weight);
            Share {
                ready: sum.ready + if member.ready { weight } else { 0 },
                total: sum.total + weight,
            }
        })
    }

    /// Returns whether too little is ready, given whether it was too little before; nothing ready
    /// is always too little.
    fn too_little(self, was_too_little: bool, policy: &ZonePolicy) -> bool {
        let enough = if was_too_little {
            policy.ready_recovered.max(policy.ready_min)
        } else {
            policy.ready_min
        };
        self.ready == 0 || (self.ready as f64) < enough * self.total as f64
    }

    /// Returns which of the four reasons for failing over applies.
    fn why(self, policy: &ZonePolicy, reasons: [Reason; 4]) -> Reason {
        let [absent, down, too_few, recovering] = reasons;
        if self.total == 0 {
            absent
        } else if self.ready == 0 {
            down
        } else if (self.ready as f64) < policy.ready_min * self.total as f64 {
            too_few
        } else {
            recovering
        }
    }
}

/// Decides which servers are eligible. `zoned`: whether Weir has a zone; `before`: the previous
/// tier ([`Tier::OwnZone`] at startup), for the hysteresis.
pub fn decide(
    members: &[Member],
    zoned: bool,
    policy: &ZonePolicy,
    when_all_down: WhenAllDown,
    before: Tier,
) -> Decision {
    let own = Share::of(members.iter().filter(|member| member.own && !member.backup));
    let primaries = Share::of(members.iter().filter(|member| !member.backup));
    let all = Share::of(members.iter());

    let (tier, reason) = if all.ready == 0 {
        let worth_trying = members.iter().any(|member| !member.set_aside && member.weight > 0);
        match when_all_down {
            WhenAllDown::TryAll if worth_trying => (Tier::TryAll, Reason::AllDown),
            WhenAllDown::TryAll | WhenAllDown::Refuse => {
                let none = all.total == 0;
                (Tier::Nobody, if none { Reason::NoServers } else { Reason::AllDown })
            }
        }
    } else if !own.too_little(before >= Tier::AllZones, policy) {
        let reason = if zoned { Reason::OwnZoneReady } else { Reason::NoZoneConfigured };
        (Tier::OwnZone, reason)
    } else if !primaries.too_little(before >= Tier::Backups, policy) {
        let reasons = [
            Reason::OwnZoneAbsent,
            Reason::OwnZoneDown,
            Reason::OwnZoneTooFew,
            Reason::OwnZoneRecovering,
        ];
        (Tier::AllZones, own.why(policy, reasons))
    } else {
        let reasons = [
            Reason::OnlyBackups,
            Reason::PrimariesDown,
            Reason::PrimariesTooFew,
            Reason::PrimariesRecovering,
        ];
        (Tier::Backups, primaries.why(policy, reasons))
    };
    let eligible = members.iter().map(|member| is_eligible(*member, tier)).collect();
    Decision { tier, reason, eligible }
}

fn is_eligible(member: Member, tier: Tier) -> bool {
    member.weight > 0
        && match tier {
            Tier::OwnZone => member.ready && member.own && !member.backup,
            Tier::AllZones => member.ready && !member.backup,
            Tier::Backups => member.ready,
            Tier::TryAll => !member.set_aside,
            Tier::Nobody => false,
        }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY: ZonePolicy = ZonePolicy { ready_min: 0.5, ready_recovered: 0.7 };

    /// Parses members from a string: `o` local zone, `f` far zone, `b` backup; upper case: ready; a
    /// digit before it: its weight (default 1); `-` after it: in drain or maintenance.
    fn members(picture: &str) -> Vec<Member> {
        let mut members: Vec<Member> = Vec::new();
        let mut weight = 1;
        for letter in picture.chars().filter(|letter| *letter != ' ') {
            match letter {
                '0'..='9' => weight = letter as u16 - '0' as u16,
                '-' => {
                    let last = members.last_mut().unwrap();
                    (last.set_aside, last.ready) = (true, false);
                }
                _ => {
                    let kind = letter.to_ascii_lowercase();
                    members.push(Member {
                        own: kind == 'o',
                        backup: kind == 'b',
                        ready: letter.is_ascii_uppercase(),
                        set_aside: false,
                        weight: std::mem::replace(&mut weight, 1),
                    });
                }
            }
        }
        members
    }

    fn eligible(decision: &Decision) -> String {
        decision.eligible.iter().map(|&yes| if yes { 'x' } else { '.' }).collect()
    }

    #[test]
    fn tiers() {
        use Reason::*;
        // (servers, tier before) → (tier, reason, eligible)
        #[rustfmt::skip] // a line a case
        let cases = [
            ("OOOO FF B", Tier::OwnZone, Tier::OwnZone, OwnZoneReady, "xxxx..."),
            ("OOoo FF B", Tier::OwnZone, Tier::OwnZone, OwnZoneReady, "xx....."),
            ("Oooo FF B", Tier::OwnZone, Tier::AllZones, OwnZoneTooFew, "x...xx."),
            ("oo FF B", Tier::OwnZone, Tier::AllZones, OwnZoneDown, "..xx."),
            ("FF B", Tier::OwnZone, Tier::AllZones, OwnZoneAbsent, "xx."),
            // Half is enough to stay, not enough to fail back.
            ("OOoo FF B", Tier::AllZones, Tier::AllZones, OwnZoneRecovering, "xx..xx."),
            ("OOOo FF B", Tier::AllZones, Tier::OwnZone, OwnZoneReady, "xxx...."),
            // By weight, not by number.
            ("3Ooo FF", Tier::OwnZone, Tier::OwnZone, OwnZoneReady, "x...."),
            ("O3o FF", Tier::OwnZone, Tier::AllZones, OwnZoneTooFew, "x.xx"),
            // Backups.
            ("oo ff B", Tier::OwnZone, Tier::Backups, PrimariesDown, "....x"),
            ("oo fF B", Tier::OwnZone, Tier::Backups, PrimariesTooFew, "...xx"),
            // What other zones have is too little.
            ("oooo FF B", Tier::OwnZone, Tier::Backups, PrimariesTooFew, "....xxx"),
            ("oo FF B", Tier::Backups, Tier::Backups, PrimariesRecovering, "..xxx"),
            ("oO FF B", Tier::Backups, Tier::AllZones, OwnZoneRecovering, ".xxx."),
            ("OO FF B", Tier::Backups, Tier::OwnZone, OwnZoneReady, "xx..."),
            ("o B", Tier::OwnZone, Tier::Backups, PrimariesDown, ".x"),
            ("BB", Tier::OwnZone, Tier::Backups, OnlyBackups, "xx"),
            // Recovering from no servers at all is treated as recovering from the last tier.
            ("Oo F", Tier::Nobody, Tier::Backups, PrimariesRecovering, "x.x"),
            ("OO f", Tier::Nobody, Tier::OwnZone, OwnZoneReady, "xx."),
            // No servers.
            ("oo ff b", Tier::OwnZone, Tier::Nobody, AllDown, "....."),
            ("", Tier::OwnZone, Tier::Nobody, NoServers, ""),
            // Weight 0 receives nothing and does not count.
            ("0O", Tier::OwnZone, Tier::Nobody, NoServers, "."),
            ("0o O F", Tier::OwnZone, Tier::OwnZone, OwnZoneReady, ".x."),
        ];
        for (picture, before, tier, reason, expected) in cases {
            let decision = decide(&members(picture), true, &POLICY, WhenAllDown::Refuse, before);
            assert_eq!(
                (decision.tier, decision.reason, eligible(&decision).as_str()),
                (tier, reason, expected),
                "{picture} after {before:?}"
            );
        }
    }

    #[test]
    fn trying_all_spares_those_that_a_person_put_aside() {
        let try_all =
            |picture| decide(&members(picture), true, &POLICY, WhenAllDown::TryAll, Tier::OwnZone);
        let decision = try_all("oO- f b 0o");
        assert_eq!((decision.tier, eligible(&decision).as_str()), (Tier::TryAll, "x.xx."));
        assert_eq!(try_all("O-").tier, Tier::Nobody);
        assert_eq!(try_all("oF").tier, Tier::AllZones);
    }

    #[test]
    fn a_server_that_flaps_between_the_thresholds_moves_nothing() {
        let mut tier = Tier::OwnZone;
        let mut changes = 0;
        for step in 0..100 {
            // Five of ten, six of ten, five of ten, …, after one dip to four.
            let ready = if step == 10 { 4 } else { 5 + step % 2 };
            let picture = format!("{}{}FF", "O".repeat(ready), "o".repeat(10 - ready));
            let decision = decide(&members(&picture), true, &POLICY, WhenAllDown::Refuse, tier);
            changes += usize::from(decision.tier != tier);
            tier = decision.tier;
        }
        assert_eq!((tier, changes), (Tier::AllZones, 1));
    }

    #[test]
    fn without_a_zone_every_server_beside_backups_is_own() {
        let decision = decide(&members("OOB"), false, &POLICY, WhenAllDown::Refuse, Tier::OwnZone);
        assert_eq!((decision.tier, decision.reason), (Tier::OwnZone, Reason::NoZoneConfigured));
    }
}
