//! How clients reach Gateways. Pure: Gateways and what exists → ports, Services, addresses.

pub(crate) mod pool;
pub(crate) mod ports;
pub(crate) mod service;
