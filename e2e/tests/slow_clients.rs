//! Clients that are slow on purpose: they may hold connections for as long as the timeouts allow, but
//! others are served all the same, and what each of them costs is bounded.

#[path = "scenarios/slow_clients.rs"]
mod scenario;

use scenario::Harm;

#[test]
fn slow_clients_harm_nobody_else_and_cost_little() {
    let Some(attacked) = scenario::attack("slow") else { return };
    let mut wrong = Vec::new();
    for Harm { attack, bytes, kernel_bytes, failed, busy } in &attacked.harms {
        let mut expect = |well: bool, what: String| {
            if !well {
                wrong.push(format!("{}: {what}", attack.name));
            }
        };
        expect(*failed == 0, format!("{failed} requests of others failed: {busy:?}"));
        // How many there are depends on the machine; none would be one for each of their connections.
        expect(busy.requests > 2 * 8, format!("others had {} requests answered", busy.requests));
        expect(*bytes <= attack.bytes_max, format!("{bytes} bytes each"));
        let max = attack.kernel_bytes_max;
        expect(
            *kernel_bytes <= max,
            format!("{kernel_bytes} bytes each of the kernel, above {max}"),
        );
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
