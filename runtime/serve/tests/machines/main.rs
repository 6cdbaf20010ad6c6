//! Gateways, workers, NATS and a store, over real connections on this machine, at toy rings.
//!
//! `cargo xtask cluster` puts `nats-server` and an S3 server under target/ and runs this.

#[path = "../serve/client.rs"]
mod client;
mod fixture;
mod kill;
mod model;
mod outage;
mod round_trip;
mod strangers;
#[path = "../serve/wire.rs"]
mod wire;
