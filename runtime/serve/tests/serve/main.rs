//! The server over real connections on this machine, at toy rings.

mod client;
mod contract;
mod fixture;
mod kill;
mod load;
mod malformed;
mod overload;
mod round_trip;
mod strangers;
mod tls;
mod wire;
