//! Elastic gangs grow into nodes that no gang waits for, where it pays.

mod below_request;
mod gain;
mod placement;
mod timing;
