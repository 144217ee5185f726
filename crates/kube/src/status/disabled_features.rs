//! Reports on gangs and pools that they need a feature that is off.

use muster_api::Provider;

use crate::features::Feature;
use crate::gang::record::GangRecord;
use crate::host::Host;
use crate::objects::pod::Pod;

impl Host {
    /// Checks that the features are on that a gang needs. A gang that has members on nodes passes: it was started while the
    /// feature was on.
    ///
    /// # Errors
    /// With the feature that is off.
    pub(crate) fn check_features(&self, record: &GangRecord) -> Result<(), String> {
        let disabled = &self.config.disabled;
        let pods = || record.pods.iter().filter_map(|key| self.cache.pods.get(key));
        if *disabled == Default::default() || pods().any(|pod| pod.node().is_some()) {
            return Ok(());
        }
        let needs = [
            (
                Feature::Templates,
                "its members are not created",
                self.template_gang(record).is_some(),
            ),
            (
                Feature::Gates,
                "the gate muster.sh/gang is not removed",
                pods().any(|pod| pod.has_gate()),
            ),
            (Feature::SuspendedJobs, "its Job is not unsuspended", self.awaits_unsuspend(record)),
        ];
        let off = needs
            .into_iter()
            .find_map(|(feature, what, needed)| disabled.why(feature, what).filter(|_| needed));
        let volumes = || {
            let claim = pods().find_map(|pod| self.claim_without_volume(record, pod))?;
            disabled.why(Feature::Volumes, &format!("no volume is chosen for claim {claim}"))
        };
        off.or_else(volumes).map_or(Ok(()), Err)
    }

    fn claim_without_volume(&self, record: &GangRecord, pod: &Pod) -> Option<String> {
        self.config.disabled.has(Feature::Volumes).then_some(())?;
        self.claim_waiting_for_first_consumer(&record.source.gang_name(), pod)
    }

    /// Why no nodes of a pool are requested, if the feature of its provider is off.
    pub(crate) fn why_provider_is_off(&self, provider: &Provider) -> Option<String> {
        let feature = match provider {
            Provider::Karpenter(_) => Feature::Karpenter,
            Provider::ProvisioningRequest(_) => Feature::Autoscaler,
            Provider::Simulated(_) | Provider::Local => return None,
        };
        self.config.disabled.why(feature, "no nodes are requested")
    }
}
