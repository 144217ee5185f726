//! Parses YAML into values with positions, and reads them with the rules of Kubernetes.
//!
//! Read in this order: a document becomes a tree in which every node has its line (`tree`), a value is read with the
//! type of its field (`value`), a mapping rejects fields that were not read (`fields`), and the rules for names,
//! instants and hints follow (`names`, `instant`, `hint`). Values that are stored uninterpreted are in `opaque`.

pub(crate) mod tree;
pub(crate) mod value;

pub(crate) mod fields;

pub(crate) mod hint;
pub(crate) mod names;

pub(crate) mod instant;
pub(crate) mod opaque;
