//! Listen backlogs: what programs ask for by habit, and how to make one larger. Shared by the rules
//! about listeners.

use crate::finding::Finding;
use crate::view::{Listening, View};

/// The backlog that a program requests by default, and how to configure it.
pub(crate) struct Habit {
    pub(crate) program: &'static str,
    pub(crate) backlog: u32,
    pub(crate) setting: &'static str,
}

/// From the programs' own documentation.
const HABITS: &[Habit] = &[
    Habit { program: "nginx", backlog: 511, setting: "listen 80 backlog=4096;" },
    Habit { program: "httpd", backlog: 511, setting: "ListenBacklog 4096" },
    Habit { program: "apache2", backlog: 511, setting: "ListenBacklog 4096" },
    Habit { program: "redis-server", backlog: 511, setting: "tcp-backlog 4096" },
    Habit { program: "node", backlog: 511, setting: "server.listen({ port, backlog: 4096 })" },
    Habit { program: "haproxy", backlog: 0, setting: "backlog 4096" },
    Habit { program: "uwsgi", backlog: 100, setting: "listen = 4096" },
    Habit { program: "gunicorn", backlog: 2048, setting: "backlog = 4096" },
    Habit { program: "uvicorn", backlog: 2048, setting: "--backlog 4096" },
    Habit { program: "sshd", backlog: 128, setting: "" },
    Habit { program: "weir", backlog: 0, setting: "backlog = 4096" },
];

pub(crate) fn habit(listening: &Listening<'_>) -> Option<&'static Habit> {
    // A process may have a longer name: `nginx: worker`, `redis-server *:6379`.
    let program = listening.program();
    HABITS.iter().find(|habit| {
        program
            .strip_prefix(habit.program)
            .is_some_and(|rest| !rest.starts_with(char::is_alphabetic))
    })
}

/// Whether the queue has been more than half full, or has overflowed. A socket's drops count repeated
/// SYNs too, so that they prove nothing where the namespace has never counted an overflow.
pub(crate) fn is_under_pressure(listening: &Listening<'_>, view: View<'_>) -> bool {
    let (waiting, backlog) = listening.fullest;
    let overflows = view.counter_if_any("TcpExtListenOverflows");
    let has_overflowed = listening.has_dropped() && overflows.is_none_or(|one| one.in_all > 0);
    has_overflowed || waiting > backlog / 2
}

/// Adds what makes the backlog larger, in the order in which the limits bind.
pub(crate) fn raise_backlog(
    finding: Finding,
    listening: &Listening<'_>,
    view: View<'_>,
) -> Finding {
    const RISK: &str = "a restart closes the socket; a longer queue lets clients wait longer where \
                        the program is too slow on average";
    let somaxconn = view.setting_if_any("net.core.somaxconn");
    let capped = somaxconn.is_some_and(|max| u64::from(listening.backlog()) >= max);
    if capped {
        return finding.remedy(
            format!("Raise somaxconn, then restart {}", listening.program()),
            &[
                "sysctl -w net.core.somaxconn=16384",
                "echo 'net.core.somaxconn = 16384' > /etc/sysctl.d/60-somaxconn.conf",
            ],
            RISK,
        );
    }
    let setting = habit(listening).map(|habit| habit.setting).filter(|setting| !setting.is_empty());
    let action =
        format!("Raise the backlog that {} asks for, then restart it", listening.program());
    if listening.program().starts_with("nginx") {
        // nginx calls listen() again where a reload finds another backlog.
        return finding.remedy(
            "Raise the backlog that nginx asks for, then reload it",
            &["listen 80 backlog=4096;", "nginx -s reload"],
            "a longer queue lets clients wait longer where the program is too slow on average",
        );
    }
    match setting {
        Some(setting) => finding.remedy(action, &[setting], RISK),
        None => finding.remedy(action, &[], RISK),
    }
}
