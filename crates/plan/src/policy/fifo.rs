//! First come, first served.

use super::{Behind, Discipline};

/// By age, strictly or not.
pub(super) struct Fifo {
    /// Whether those behind a waiting gang may take what it waits for.
    pub(super) overtake: bool,
}

impl Discipline for Fifo {
    fn behind(&self) -> Behind {
        if self.overtake { Behind::Free } else { Behind::Barred }
    }
}
