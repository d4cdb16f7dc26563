//! Tests of how servers in the file and listed ones become a service's servers.

use super::endpoints;
use crate::testing::service;

#[test]
fn an_endpoint_set_keeps_the_files_order_and_no_address_twice() {
    let spec = service("s", &["10.0.0.9:80", "b.test:80", "a.test:80", "a.test:81"], None);
    let set = endpoints(&spec, std::iter::empty(), |host| match host {
        "a.test" => vec!["10.0.0.1".parse().expect("ip"), "::1".parse().expect("ip")],
        _ => vec!["10.0.0.1".parse().expect("ip"), "10.0.0.9".parse().expect("ip")],
    });
    let rows: Vec<_> = set.rows.iter().map(|row| format!("{} {}", row.name, row.address)).collect();
    assert_eq!(
        rows,
        [
            "10.0.0.9:80 10.0.0.9:80",
            "b.test:80 10.0.0.1:80",
            "a.test:80 [::1]:80",
            "a.test:81 10.0.0.1:81",
            "a.test:81 [::1]:81",
        ]
    );
}
