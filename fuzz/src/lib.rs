//! Parts that the HTTP/2 fuzz targets share: their input format, a mutator that keeps frames whole,
//! a model of what the peer may see, and two servers to compare.

pub mod engine_server;
pub mod frames;
pub mod h2_server;
pub mod mutate;
pub mod outcome;
pub mod watch;
