//! The lightest server there is: one thread on one processor that answers every request with the same
//! few bytes. For measurements of the load generator, which a real server would disturb.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;

use rustix::buffer::spare_capacity;
use rustix::event::epoll;
use rustix::thread::{CpuSet, sched_setaffinity};

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

/// Serves at `address` on processor `cpu`, until the test's process ends. Requests must come whole,
/// in one piece, as small ones do.
pub(crate) fn serve(address: SocketAddr, cpu: usize) {
    let listener = TcpListener::bind(address).unwrap();
    listener.set_nonblocking(true).unwrap();
    // More room than the standard library asks for: a thousand connections may come at once.
    rustix::net::listen(&listener, 4096).unwrap();
    std::thread::spawn(move || {
        let mut mask = CpuSet::new();
        mask.set(cpu);
        sched_setaffinity(None, &mask).unwrap();
        run(&listener);
    });
}

fn run(listener: &TcpListener) {
    let poll = epoll::create(epoll::CreateFlags::CLOEXEC).unwrap();
    let add = |socket: &dyn std::os::fd::AsFd, number: u64| {
        epoll::add(&poll, socket.as_fd(), epoll::EventData::new_u64(number), epoll::EventFlags::IN)
    };
    add(listener, u64::MAX).unwrap();
    let mut connections: HashMap<u64, TcpStream> = HashMap::new();
    let mut events = Vec::with_capacity(512);
    let mut bytes = [0; 16 * 1024];
    loop {
        events.clear();
        if epoll::wait(&poll, spare_capacity(&mut events), None).is_err() {
            continue;
        }
        for event in &events {
            let number = event.data.u64();
            if number == u64::MAX {
                while let Ok((stream, _)) = listener.accept() {
                    stream.set_nonblocking(true).unwrap();
                    stream.set_nodelay(true).unwrap();
                    let number = stream.as_raw_fd() as u64;
                    add(&stream, number).unwrap();
                    connections.insert(number, stream);
                }
                continue;
            }
            let Some(stream) = connections.get_mut(&number) else { continue };
            let is_open = match stream.read(&mut bytes) {
                Ok(count) if count > 0 => {
                    bytes[..count].ends_with(b"\r\n\r\n") && stream.write_all(ANSWER).is_ok()
                }
                Err(error) => error.kind() == std::io::ErrorKind::WouldBlock,
                Ok(_) => false,
            };
            if !is_open {
                connections.remove(&number);
            }
        }
    }
}
