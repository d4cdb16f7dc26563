//! Parts that the HTTP/2 fuzz targets share: their input format, a mutator that keeps frames whole,
//! and a model of what the peer may see.

pub mod frames;
pub mod mutate;
pub mod watch;
