//! TLS as seen without keys: what a client sends in clear text before the server answers. No
//! decryption.

pub mod client_hello;
