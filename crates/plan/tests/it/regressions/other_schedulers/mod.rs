//! Problems that users of other schedulers reported, by issue. Each case is what happens here instead.

mod failures;
mod loops;
mod preemption;
mod starting;
