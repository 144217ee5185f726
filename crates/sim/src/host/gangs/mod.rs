//! Gangs as the cluster runs them: start and stop, grace periods, resizes by the planner and by the owner, and the work
//! they do.

mod start_stop;

pub(super) mod grace;

mod owner_resize;
mod resize;

pub(super) mod progress;
mod work;

mod random_choices;
