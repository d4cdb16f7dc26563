//! The connection to Kubernetes, if this program is built with it (feature `kubernetes`).

#[cfg(not(feature = "kubernetes"))]
mod absent;
#[cfg(feature = "kubernetes")]
mod connected;

#[cfg(not(feature = "kubernetes"))]
pub(crate) use absent::Cluster;
#[cfg(feature = "kubernetes")]
pub(crate) use connected::Cluster;
