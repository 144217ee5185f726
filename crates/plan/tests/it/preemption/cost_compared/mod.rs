//! All ways to start a gang are compared in one sum, and the comparison is reported.

mod delay;
mod prices;
mod reported;
