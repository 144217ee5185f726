//! Gangs of lower priority make way, whole, for one that then starts.

mod in_vain;
mod least_lost;
mod leaving;
mod places;
mod queues;
mod whole;
