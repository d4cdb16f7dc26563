//! Kubernetes objects → listeners, routes, services and servers, and the status of each object. Without I/O.

#![allow(clippy::doc_markdown, reason = "the kinds of Kubernetes objects are words of its prose")]

pub mod grants;
pub mod hosts;
pub mod ir;
pub mod objects;
pub mod parts;
pub mod pods;
pub mod resolve;
pub mod served;
pub mod status_json;
