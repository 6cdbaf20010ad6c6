//! A server that evaluates compiled networks on encrypted inputs, for many clients. It holds no secret and links no code that
//! knows one.
//!
//! [`server::Server`] is the whole server; `http` is its contract (`/v1`, OpenAPI generated from the routes), `jobs`
//! the queue and
//! its workers, `uploads` the way of evaluation keys, `memory` what is reserved before it is used, `store` what survives.
#![forbid(unsafe_code)]

pub mod access;
pub mod background;
pub mod catalog;
pub mod cli;
pub mod http;
pub mod ids;
pub mod jobs;
pub mod limits;
mod logs;
pub mod memory;
pub mod metrics;
pub mod server;
pub mod store;
mod tls;
pub mod tokens;
pub mod uploads;
