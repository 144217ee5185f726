pub(crate) mod channel;
pub(crate) mod decode;
pub mod fuzzing;
pub(crate) mod health;
pub(crate) mod list_page;
pub(crate) mod list_watch;
pub(crate) mod namespace_budget;
pub(crate) mod watches;
