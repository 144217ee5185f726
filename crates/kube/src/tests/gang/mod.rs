pub(crate) mod merged_groups;
pub(crate) mod missing_pods;
pub(crate) mod pod_templates;
pub(crate) mod recreated;
pub(crate) mod staged_pods;
pub(crate) mod trusted_annotations;
