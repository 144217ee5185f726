//! Buying nodes: which offering, how many, and what happens when claims are late or fail.

mod adoption;
mod avoidance;
mod buying;
mod offering_choice;
mod replace_claim;
mod replace_claim_limits;
mod retries;
mod rollback;
mod shortfall;
mod timeouts;
mod unoffered;
