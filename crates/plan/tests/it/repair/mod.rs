//! A node under a running gang is lost: an elastic gang goes on, a rigid one starts over whole and before all others.

mod beside_others;
mod elastic;
mod notices;
mod rigid;
mod running;
