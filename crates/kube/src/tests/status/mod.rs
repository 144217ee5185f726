pub(crate) mod disabled_features;
pub(crate) mod messages;
