//! Pages of `weir explain` that only `weir bench` needs: failures of the load generator itself, and
//! resources that can be exhausted. All other failures have the names of causes, and their pages.

/// A page, as a cause's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Own {
    pub(crate) name: &'static str,
    /// Whose it is.
    pub(crate) whose: &'static str,
    pub(crate) what: &'static str,
    pub(crate) why: &'static str,
    pub(crate) remedy: &'static str,
}

/// The page of that name.
pub(crate) fn find(name: &str) -> Option<Own> {
    PAGES.iter().find(|page| page.name == name).copied()
}

/// Failures first, then what can run out.
pub(crate) const PAGES: &[Own] = &[
    Own {
        name: "local_ports_exhausted",
        whose: "the load generator's",
        what: "The load generator had no local port left towards the server (`EADDRNOTAVAIL`).",
        why: "One source address has about 28,000 ports for each destination, and a closed \
              connection keeps its port in TIME_WAIT for a minute: 470 new connections a second, \
              for long enough, use them up.",
        remedy: "Keep connections (the default), give more addresses with --source, or let \
                 `weir bench connect` close with --reset. `sysctl net.ipv4.ip_local_port_range` \
                 says which ports there are.",
    },
    Own {
        name: "local_descriptors_exhausted",
        whose: "the load generator's",
        what: "The load generator had no file descriptor or no memory left for another socket.",
        why: "Each connection takes a descriptor, and a process may have so many (`ulimit -n`); the \
              whole machine has a limit, too (`sysctl fs.file-max`).",
        remedy: "Raise `ulimit -n` before the run, or ask for fewer connections with -c.",
    },
    Own {
        name: "ports",
        whose: "the load generator's",
        what: "Requests failed as `local_ports_exhausted`.",
        why: "New connections were asked for faster than ports are set free.",
        remedy: "Keep connections, or give more addresses with --source.",
    },
    Own {
        name: "descriptors",
        whose: "the load generator's",
        what: "Requests failed as `local_descriptors_exhausted`.",
        why: "More connections were asked for than this process may have.",
        remedy: "Raise `ulimit -n`, or ask for fewer connections with -c.",
    },
    Own {
        name: "cpu",
        whose: "the load generator's",
        what: "The load generator's processors, or one that a thread of it runs on, were busy all \
               the time.",
        why: "The load is more than this machine can generate, or something else runs on it: the \
              server itself, if both run on one machine.",
        remedy: "Give it more --threads if processors are free, a machine of its own, or several \
                 machines. The figures are not the server's.",
    },
    Own {
        name: "connections",
        whose: "the load generator's",
        what: "Requests were due, and all connections that -c allows were in use.",
        why: "Each connection carries one request at a time: with 50 ms a request, 10 connections \
              carry 200 a second. Or the server became slow, and that is what kept them in use.",
        remedy: "Compare the time from the intended start with the service time. If service took as \
                 long as at a low rate, raise -c.",
    },
    Own {
        name: "bandwidth",
        whose: "the link's",
        what: "Bits per second stayed the same when more was asked for, and transfers took longer, \
               while the processors here had time.",
        why: "A link, a shaper or a cloud's limit on an instance type was full. Links count in \
              thousands: 180 Mb/s are 180,000,000 bits, headers of all packets included.",
        remedy: "Send less (compression, smaller responses), or get a wider link.",
    },
    Own {
        name: "packets",
        whose: "the link's",
        what: "Packets per second stayed the same when more was asked for, and they were small.",
        why: "Network cards, virtual machines and firewalls have limits on packets, which small \
              responses reach long before the limit on bits.",
        remedy: "Keep connections, put more into each request, or find out what counts the packets.",
    },
    Own {
        name: "concurrency",
        whose: "the server's",
        what: "The first byte came later while the network's times stayed: requests waited in the \
               server. Or it refused some with a status of 500 and more.",
        why: "It works on so many requests at once: workers, threads, connections to a database. \
              Rate times time when idle is about that number.",
        remedy: "Make the work shorter, or add workers or servers.",
    },
    Own {
        name: "accept_queue",
        whose: "the server's",
        what: "SYNs were retransmitted, while transfers took as long as before.",
        why: "The server accepts connections more slowly than they arrive, and its accept queue is \
              full: the kernel then drops SYNs, and each dropped SYN costs a second.",
        remedy: "On the server, compare Recv-Q with Send-Q in `ss -ltn`, and look at \
                 `nstat -az TcpExtListenDrops`. Raise the backlog and `net.core.somaxconn`; fix \
                 what prevents the server from accepting.",
    },
    Own {
        name: "unknown",
        whose: "not known whose",
        what: "The objective did not hold any more, and nothing that this end can see grew.",
        why: "A few slow requests among many miss a high percentile while the median stays. Or \
              something ran out that shows on the server alone.",
        remedy: "Look at the server at that time: `weir doctor` there says what its kernel sees.",
    },
];

#[cfg(test)]
mod tests {
    use load::engine::Failure;
    use model::Cause;

    use super::*;

    #[test]
    fn every_failure_has_a_page_and_none_has_two() {
        for failure in Failure::ALL {
            let name = failure.as_str();
            let pages =
                usize::from(find(name).is_some()) + usize::from(Cause::from_name(name).is_some());
            assert_eq!(pages, 1, "{name}");
        }
        for page in PAGES {
            assert!(Cause::from_name(page.name).is_none(), "{}", page.name);
        }
    }
}
