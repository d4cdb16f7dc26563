//! Servers at their concurrency limit.

use super::clients::upgrades;
use super::servers::holds;
use super::{Expected, Seen, Situation, Stage};

/// Long enough that no wait ends before a busy machine has checked.
const PATIENT: &str = "in_flight_max = 1\nqueue = { wait_max = \"30s\" }";

/// Fills the one place that there is.
fn fill(stage: &Stage<'_>) -> e2e::http::Connection {
    let beside = stage.send_beside();
    stage.wait_for_in_flight(1);
    beside
}

pub(super) fn table() -> Vec<Situation> {
    vec![
        Situation::new("full-and-no-queue", Expected::answered("queue_full", 429).retry_after())
            .service("in_flight_max = 1\nqueue = { length_max = 0 }")
            .server(holds)
            .act(|stage| {
                let _beside = fill(stage);
                stage.get()
            }),
        Situation::new("queue-full", Expected::answered("queue_full", 503).retry_after())
            .service("in_flight_max = 1\nwhen_full = 503\nqueue = { length_max = 1, wait_max = \"30s\" }")
            .server(holds)
            .act(|stage| {
                let _beside = fill(stage);
                let _queued = stage.send_beside();
                stage.wait_for_queue(1);
                stage.get()
            }),
        Situation::new(
            "waits-too-long",
            Expected::answered("queue_wait_exceeded", 429).retry_after(),
        )
        .service("in_flight_max = 1\nqueue = { wait_max = \"300ms\" }")
        .server(holds)
        .act(|stage| {
            let _beside = fill(stage);
            stage.get()
        }),
        Situation::new("waits-too-long-in-all", Expected::answered("total_timeout", 504))
            .service("in_flight_max = 1\nqueue = { wait_max = \"30s\" }\ntimeouts = { total = \"4s\" }")
            .server(upgrades)
            .act(|stage| {
                // A tunnel, which may take as long as it likes.
                let mut beside = stage.send(
                    "GET /beside HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
                );
                assert_eq!(beside.response(false).expect("a tunnel").status, 101);
                stage.get()
            }),
        Situation::new("leaves-the-queue", Expected::gone("client_closed", None))
            .service(PATIENT)
            .server(holds)
            .act(|stage| {
                let _beside = fill(stage);
                let queued = stage.send_it();
                stage.wait_for_queue(1);
                drop(queued);
                stage.wait_for_line();
                Seen::Left
            }),
        Situation::new("resets-in-the-queue", Expected::gone("client_reset", None))
            .service(PATIENT)
            .server(holds)
            .act(|stage| {
                let _beside = fill(stage);
                let queued = stage.send_it();
                stage.wait_for_queue(1);
                e2e::rogue::reset_on_close(&queued.stream);
                drop(queued);
                stage.wait_for_line();
                Seen::Left
            }),
    ]
}
