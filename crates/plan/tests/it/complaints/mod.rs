//! What users of other schedulers complain of, by issue. Each case is what happens here instead.

mod failing;
mod looping;
mod starting;
mod stopping;
