pub(crate) mod api_refusal;
pub(crate) mod cases;
pub(crate) mod node_usage;
pub(crate) mod owner_resize;
pub(crate) mod replaced_objects;
pub(crate) mod seats;
