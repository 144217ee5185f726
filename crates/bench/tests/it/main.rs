//! The provisioners that Muster is compared with, from outside.

mod rivals;
mod two_zones;
