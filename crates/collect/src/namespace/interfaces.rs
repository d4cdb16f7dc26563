//! Reads the network interfaces of the calling thread's namespace: their counters and their drivers'
//! statistics.

use std::io;

use diagnose::facts::{EthtoolRings, Interface, Known};
use os::ethtool::Ethtool;

use crate::file::{Files, reason};
use crate::text::interfaces::dev;

/// A host of containers has an interface for each of them; more than this many say nothing more.
const ASKED_MAX: usize = 256;

pub(super) fn read(net: &Files) -> Known<Vec<Interface>> {
    all(net).into()
}

fn all(net: &Files) -> Result<Vec<Interface>, String> {
    let mut interfaces = dev(&net.read("dev")?);
    match Ethtool::open() {
        Ok(ethtool) => {
            for interface in interfaces.iter_mut().take(ASKED_MAX) {
                ask(&ethtool, interface);
            }
        }
        Err(error) => {
            let why = format!("no socket to ask its driver through: {}", reason(&error));
            for interface in &mut interfaces {
                interface.driver = Known::unknown(why.clone());
            }
        }
    }
    Ok(interfaces)
}

fn ask(ethtool: &Ethtool, interface: &mut Interface) {
    let name = interface.name.clone();
    interface.mtu_bytes = known(ethtool.mtu_bytes(&name).map(u64::from));
    match ethtool.driver(&name) {
        Ok(driver) => {
            interface.driver = Known::Is(driver.name);
            interface.driver_version = Known::Is(driver.version);
        }
        Err(error) => {
            let why = no_answer(&error);
            interface.driver = Known::unknown(why.clone());
            interface.driver_version = Known::unknown(why);
        }
    }
    interface.speed_mbit = match ethtool.speed_mbit(&name) {
        Ok(Some(speed)) => Known::Is(speed.into()),
        Ok(None) => Known::unknown("its driver knows none"),
        Err(error) => Known::unknown(no_answer(&error)),
    };
    match ethtool.channels(&name) {
        Ok(channels) => {
            interface.rx_queues = Known::Is(channels.rx);
            interface.tx_queues = Known::Is(channels.tx);
        }
        Err(error) => {
            interface.rx_queues = Known::unknown(no_answer(&error));
            interface.tx_queues = Known::unknown(no_answer(&error));
        }
    }
    interface.rings = known(ethtool.rings(&name).map(|rings| EthtoolRings {
        rx: rings.rx,
        rx_max: rings.rx_max,
        tx: rings.tx,
        tx_max: rings.tx_max,
    }));
    interface.statistics = known(ethtool.statistics(&name).map(|all| all.into_iter().collect()));
}

fn known<T>(answer: io::Result<T>) -> Known<T> {
    match answer {
        Ok(fact) => Known::Is(fact),
        Err(error) => Known::unknown(no_answer(&error)),
    }
}

fn no_answer(error: &io::Error) -> String {
    if error.kind() == io::ErrorKind::Unsupported {
        "its driver does not tell".to_owned()
    } else {
        format!("ethtool: {}", reason(error))
    }
}
