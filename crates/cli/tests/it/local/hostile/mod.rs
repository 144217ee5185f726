//! What must do no harm: jobs that mean harm, and accidents of the machine. Each is tried against a real daemon with real
//! processes.

mod accident;
mod job;
mod processes;
