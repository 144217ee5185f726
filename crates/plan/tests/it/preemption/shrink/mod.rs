//! Members above the minimum are given up for those who wait, before anybody is stopped.

mod empty_seats;
mod given_up;
mod meanwhile;
mod queues;
