//! Lists and watches every kind, and delivers decoded changes to the host in one channel.
//!
//! `watches` starts one task per kind; `list_watch` lists and watches one kind; `list_page` splits a list into items;
//! `decode` reads one object or says why it is omitted; `namespace_budget` bounds the memory of each namespace; `channel`
//! bounds the changes in flight; `health` counts failures. Nothing here stores objects: that is `cache`.

pub(crate) mod watches;

pub(crate) mod list_watch;

pub(crate) mod list_page;

pub(crate) mod decode;

pub(crate) mod namespace_budget;

pub(crate) mod channel;

pub(crate) mod health;

pub mod fuzzing;
