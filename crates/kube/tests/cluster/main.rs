//! The host against a real API server: what users write, unchanged, and what comes of it.

mod controller;
mod crash;
mod dialects;
mod observer;
mod replicas;
mod stage;
mod story;
mod words;
