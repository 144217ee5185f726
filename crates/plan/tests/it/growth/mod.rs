//! Elastic gangs grow into what nobody waits for, where it pays.

mod gain;
mod short;
mod when;
mod where_to;
