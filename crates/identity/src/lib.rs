//! Who a request is from: users of htpasswd files and their passwords, as bytes and now → a user or
//! a denial.

pub mod authorization;
pub mod challenge;
pub mod header_value;
pub mod success_cache;
pub mod token;
pub mod users;

pub use authorization::{Credentials, Unusable};
pub use success_cache::{SuccessCache, Ticket};
pub use users::{Mistake, Users, Verdict};
