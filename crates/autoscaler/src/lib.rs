//! What autoscalers ask for, and the answers: KEDA's external scaler (gRPC) and Kubernetes' external metrics API.
//!
//! Pure: requests as bytes, the wanted servers and now → answers, and who may have them. `admin` has the listeners,
//! `kubernetes` asks the API server who a client is and what it may read.

#![allow(clippy::doc_markdown, reason = "the kinds of Kubernetes objects are words of its prose")]

pub mod access;
pub mod external;
pub mod grpc;
pub mod keda;
pub mod selector;
mod service;

pub use service::{KubernetesPort, METRIC, Number, Scaled};
