//! What users of other schedulers complain of, by issue. Each case is what happens here instead.

mod failures;
mod loops;
mod preemption;
mod starting;
