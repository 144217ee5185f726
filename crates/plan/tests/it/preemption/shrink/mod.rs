//! Members above the minimum are given up for waiting gangs, before any gang is stopped.

mod empty_seats;
mod given_up;
mod meanwhile;
mod queues;
