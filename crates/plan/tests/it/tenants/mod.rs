//! What a gang declares does not take from others what they can count on.

mod bounds;
mod claims;
mod non_preemptible;
