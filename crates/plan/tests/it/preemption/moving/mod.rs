//! Small gangs are moved where there is room enough but in the wrong places.

mod cost;
mod eligibility;
mod room;
