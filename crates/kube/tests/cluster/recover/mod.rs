//! Crashes, change of leader and API faults: no gang is left partial, no write is repeated elsewhere.

mod api_faults;
mod controller_kills;
mod leader_election;
mod missing_members;
