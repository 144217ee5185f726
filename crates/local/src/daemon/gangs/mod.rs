//! Gangs in the control plane: their state, users' commands, runs and resizes.

pub(crate) mod gang;

pub(crate) mod gang_commands;

pub(crate) mod runs;

pub(crate) mod seats;

pub(crate) mod resize;

pub(crate) mod scale;
