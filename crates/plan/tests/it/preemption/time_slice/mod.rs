//! In a queue with a time slice gangs are rotated, whole, in order, and never at a cost beyond the bound.

mod rotation;
mod slices;
