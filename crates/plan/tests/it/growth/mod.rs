//! Elastic gangs grow into what nobody waits for, where it pays.

mod below_request;
mod gain;
mod placement;
mod timing;
