pub(crate) mod amounts;
pub(crate) mod gang;
pub(crate) mod node;
pub(crate) mod pool;
pub(crate) mod queue;
pub(crate) mod topology;
