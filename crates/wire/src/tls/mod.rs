//! TLS as it looks from outside, without a key: what a client says in clear before it is answered.
//! Decryption is not here.

pub mod client_hello;
