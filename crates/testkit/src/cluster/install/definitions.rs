//! CRDs of other systems, as their projects publish them.

use crate::cluster::Cluster;
use crate::cluster::skip;
use crate::testbed;

impl Cluster {
    /// Applies CRDs of other systems from their own projects' files, such as `volcano/scheduling.volcano.sh_queues`.
    /// `None` where these were not fetched: the skip is printed then, and is a failure if the test bed is required.
    ///
    /// # Panics
    /// If the server refuses a file.
    pub async fn define_or_skip(&self, names: &[&str]) -> Option<()> {
        for name in names {
            let file = testbed::definitions().join(format!("{name}.yaml"));
            let Ok(yaml) = std::fs::read_to_string(file) else {
                skip::say(&format!("not fetched: {name}; `cargo xtask testbed` fetches it"));
                return None;
            };
            self.apply(&yaml).await.unwrap_or_else(|error| panic!("{name}: {error}"));
        }
        Some(())
    }
}
