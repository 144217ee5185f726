//! Attempts to harm others by a tenant with the chart's `edit` role in one namespace and no other right.
//!
//! Each file is one kind of harm. Every attempt is made as [`Role::Tenant`] in `team-a`; beside it a victim in `team-b`
//! must start as if the tenant were not there, and the observer watches all of it.

mod admission;
mod claims;
mod floods;
mod marks;
mod memory;
mod objects;
mod owners;
mod reach;
mod tenancy;

pub(crate) use tenancy::{TENANT, Tenancy, VICTIM};
