//! Conditions, events and `muster why`: the reasons that users and autoscalers read.

mod conditions_and_events;
mod why_waiting;
