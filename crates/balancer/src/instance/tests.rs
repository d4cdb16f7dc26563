//! A start that fails.

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;

use super::*;

#[test]
fn a_start_that_fails_takes_no_connection_from_the_process_that_goes_on() {
    let metrics = SocketAddr::from(([127, 0, 0, 1], 9));
    let text = format!(
        "workers = 1\nlog = {{ access = \"off\" }}\nadmin = {{ address = \"off\" }}\n\
         metrics = {{ address = \"{metrics}\" }}\nlistener = [{{ address = \"127.0.0.1:0\" }}]\n\
         route = [{{ respond = {{ status = 200, body = \"\" }} }}]\n"
    );
    let snapshot = match config::check(&text, "test.toml", &()) {
        Ok(checked) => checked.snapshot,
        Err(report) => panic!("{}", report.render(false)),
    };
    // What only the last step of the start finds out: it is no socket.
    let useless = TcpListener::from(OwnedFd::from(File::open("/dev/null").unwrap()));
    let handed = Handed { metrics: Some((metrics, useless)), ..Handed::default() };
    let (sockets, doors) = sockets::open(&snapshot, handed).unwrap();
    // As the other process has them.
    let shared = Arc::clone(&sockets.groups()[0].sockets);
    let mut client = TcpStream::connect(shared[0].local_addr().unwrap()).unwrap();
    client.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    let options = StartOptions::with(Arc::new(snapshot), sockets, doors);
    let lines = Balancer::start(options).err().unwrap();
    assert!(lines.len() == 1 && lines[0].starts_with("metrics: "), "{lines:?}");
    // Workers that had accepted it would answer it now.
    client.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    assert_eq!(client.read(&mut [0]).unwrap_err().kind(), ErrorKind::WouldBlock);
    let (_, peer) = os::accept::accept(&shared[0]).unwrap();
    assert_eq!(peer, client.local_addr().unwrap());
}
