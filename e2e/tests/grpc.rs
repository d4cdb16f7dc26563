//! gRPC by grpcio on either side: every kind of call, statuses and metadata, and many at once.

use std::time::Duration;

use e2e::clients::python_client;
use e2e::{Authority, PYTHON_PEERS, Scene, Weir, python_server, server_tables, wait};

const SOON: Duration = Duration::from_secs(10);

#[test]
fn calls_of_every_kind_pass_whole() {
    let Some(scene) = Scene::alone("grpc", &[PYTHON_PEERS]) else {
        return;
    };
    let ca = Authority::new(&scene, "ca");
    let front = ca.issue("front", &["a.example.com"]);
    let inner = ca.issue("inner", &["inner.example.com"]);
    let [clear, secure] = [11, 12].map(|host| scene.address(host, 8080));
    let path = |path: &std::path::Path| path.to_string_lossy().into_owned();
    let certificate = ["--certificate", &path(&inner.chain), &path(&inner.key)];
    let echo = "servers/grpc_echo.py";
    let _clear = python_server(&scene, echo, "clear", clear, &[]);
    let _secure = python_server(&scene, echo, "secure", secure, &certificate);
    let [tls, far] = [8443, 8444].map(|port| scene.address(1, port));
    let listener = |name: &str, address| {
        let pair = front.table();
        format!(
            "[[listener]]\nname = \"{name}\"\naddress = \"{address}\"\n\
             tls = {{ certificates = [{pair}] }}\n"
        )
    };
    let rest = format!(
        "{}{}[[route]]\nlistener = \"far\"\nservice = \"secure\"\n[[route]]\nservice = \"clear\"\n\
         [service.clear]\nhttp = \"2\"\n{}[service.secure]\nhttp = \"2\"\n\
         tls = {{ {}, name = \"inner.example.com\" }}\n{}",
        listener("tls", tls),
        listener("far", far),
        server_tables("clear", [clear]),
        ca.ca(),
        server_tables("secure", [secure]),
    );
    let weir = Weir::start(&scene, &scene.config("workers = 2", &rest));
    let authorities = path(ca.pem());
    for (address, words, calls) in [
        (weir.front(), &[][..], 4000),
        (tls, &["--ca", &authorities], 4000),
        (far, &["--ca", &authorities], 2000),
    ] {
        let (address, count) = (address.to_string(), calls.to_string());
        let own = ["--address", &address, "--calls", &count];
        let seen = python_client(&scene, "clients/grpc_calls.py", &[&own[..], words].concat());
        let said = seen.stdout.trim();
        assert_eq!(said, format!("calls {calls} failed 0 StatusCode.OK"), "{address}: {seen:?}");
    }
    // Every call has its line, with the status that its trailers end with.
    wait::until("all access lines", SOON, || (weir.access().len() >= 10_000).then_some(()));
    let lines = weir.access();
    let with = |status: i64| lines.iter().filter(|line| line["grpc_status"] == status).count();
    assert_eq!(with(5), 2 * 30, "NOT_FOUND");
    assert_eq!(with(16), 30, "UNAUTHENTICATED");
    assert_eq!(with(12), 30, "UNIMPLEMENTED");
    let odd: Vec<_> = lines.iter().filter(|line| line["cause"] != "completed").collect();
    assert!(odd.is_empty(), "{odd:#?}");
}
