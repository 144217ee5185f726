//! Lent capacity is reclaimed: from queues beyond their guarantee, down to it, and only as far as the lender's goes.

mod borrowers;
mod branches;
mod guarantee;
