//! Units of measure: time, money, quantities of resources, and calendars.

pub mod calendar;
pub mod money;
pub mod quantity;
pub mod time;
