//! All ways to start a gang are compared in one sum, and the figures are told.

mod delay;
mod prices;
mod reported;
