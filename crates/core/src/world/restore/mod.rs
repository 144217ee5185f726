//! Restores a World after a restart: observed gangs and claims, orders placed before, and learned state.

mod observed;
mod order;

mod learned;
