//! The order of the queue: disciplines, shares, deadlines, limits, and what tenants may declare.

mod deadlines;
mod disciplines;
mod limits;
mod order;
mod shares;
mod start_times;
mod tenants;
