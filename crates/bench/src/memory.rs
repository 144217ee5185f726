//! Heap use of a value, by counting allocations and deallocations.

use std::alloc::System;

use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Makes a value and returns how many bytes of heap it keeps.
pub(crate) fn measure<T>(make: impl FnOnce() -> T) -> (T, usize) {
    let region = Region::new(ALLOCATOR);
    let made = make();
    let stats = region.change();
    (made, stats.bytes_allocated.saturating_sub(stats.bytes_deallocated))
}
