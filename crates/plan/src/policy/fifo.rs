//! First come, first served.

use crate::policy::parameters::{Behind, Discipline};

/// By age, strictly or not.
pub(crate) struct Fifo {
    /// Whether those behind a waiting gang may take what it waits for.
    pub(crate) overtake: bool,
}

impl Discipline for Fifo {
    fn behind(&self) -> Behind {
        if self.overtake { Behind::Free } else { Behind::Barred }
    }
}
