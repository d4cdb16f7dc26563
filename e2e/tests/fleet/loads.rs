//! The loads of services, which the members add.

use e2e::{App, Process, Scene, binary, server_tables, wait};

use super::stage::{Member, SOON, Settings, wait_until_all_see};

#[test]
fn every_member_computes_the_number_from_the_load_of_all() {
    let Some(scene) = Scene::new("fleet-loads", &["python3"]) else { return };
    let servers = [11, 12].map(|host| App::start(&scene, host, &["--work-ms", "200"]));
    let rest = format!(
        "[[route]]\nservice = \"app\"\n[service.app]\nin_flight_max = 8\nin_flight_scope = \"fleet\"\n\
         passive = false\nscaling = {{ servers_max = 9 }}\n{}",
        server_tables("app", servers.iter().map(App::address))
    );
    let settings = Settings { knows: vec![0, 1], ..Settings::new(&rest) };
    let members = [0, 1].map(|number| Member::start(&scene, number, &settings));
    wait_until_all_see(&members, 1);
    // 50 requests/s of 200 ms need 18 slots, however they come to the members.
    let _loads: Vec<Process> = members
        .iter()
        .zip(["40", "10"])
        .map(|(member, rate)| {
            let url = format!("http://{}/", member.front(&scene));
            let words = ["bench", "-q", "--rate", rate, "-t", "5m", &url].map(str::to_owned);
            Process::start(&scene, &format!("bench{rate}"), binary(), words)
        })
        .collect();
    for member in &members {
        wait::until("3 servers", SOON, || {
            let wanted = member.api("/api/v1/services/app")["wanted"].clone();
            (wanted["number"] == 3 && wanted["reason"] == "more_load").then_some(())
        });
    }
}
