//! A server that evaluates compiled networks on encrypted inputs, for many clients. It holds no secret and links no code that
//! knows one.
//!
//! [`server::Server`] is the whole server; `front` is what clients meet and `http` its contract (`/v1`, OpenAPI generated from
//! the routes), over the traits of [`backend`]. `machine` is one machine: `jobs` the queue and its workers, `uploads` the way of
//! evaluation keys, `memory` what is reserved before it is used, `store` what survives. `cluster` is many machines, a feature of
//! its own.
#![forbid(unsafe_code)]

pub mod access;
pub mod backend;
pub mod background;
pub mod catalog;
pub mod cli;
#[cfg(feature = "cluster")]
pub mod cluster;
mod connection;
pub mod front;
pub mod http;
pub mod ids;
pub mod jobs;
pub mod limits;
mod logs;
mod machine;
pub mod memory;
pub mod metrics;
pub mod server;
pub mod store;
mod tls;
pub mod tokens;
pub mod uploads;
