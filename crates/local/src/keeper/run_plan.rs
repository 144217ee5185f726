//! What a keeper is to run, as the control plane wrote it down.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::keeper::processes::cgroup::RunCgroup;
use crate::system::clock::Anchor;

/// One run of a gang: all of its members, once.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct RunPlan {
    /// The gang, `namespace/name`.
    pub gang: Arc<str>,
    /// The number of this run among all.
    pub run: u64,
    /// The number of the gang among all that ever were.
    #[serde(default)]
    pub uid: i64,
    /// Every member, by rank.
    pub members: Vec<MemberPlan>,
    /// The role whose end is the end of the gang; all members when absent.
    pub ends_with: Option<Arc<str>>,
    /// How long it may take, in milliseconds.
    pub time_limit_ms: Option<u64>,
    /// How long members have between being told to stop and being killed.
    pub grace_ms: u64,
    /// How much of what they print is kept.
    pub limits: Limits,
    /// The Unix user they run as; that of the keeper when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_as: Option<Arc<str>>,
    /// What is taken from the rights of files they make; as the keeper has it when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub umask: Option<u32>,
    /// The control group that all of them are in, where the system grants one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<RunCgroup>,
    /// What time is counted from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<Anchor>,
}

/// What is kept of a stream that a member prints.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Limits {
    /// Bytes of one file.
    pub file_bytes: u64,
    /// Files before the current one.
    pub files: u32,
}

/// Bytes that are kept of all that the members of one run print.
const RUN_BYTES: u64 = 1 << 30;
/// No member's page is smaller than this.
const PAGE_LEAST: u64 = 16 << 10;

impl Default for Limits {
    fn default() -> Self {
        Self { file_bytes: 16 << 20, files: 3 }
    }
}

impl Limits {
    /// What is kept of each of so many members: together not more than is kept of a run.
    pub(crate) fn for_members(members: u64) -> Self {
        let most = Self::default();
        // Two streams each, of so many pages.
        let rotated_log = members.max(1).saturating_mul(2 * (u64::from(most.files) + 1));
        Self { file_bytes: (RUN_BYTES / rotated_log).clamp(PAGE_LEAST, most.file_bytes), ..most }
    }
}

/// One process.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(Default))]
pub(crate) struct MemberPlan {
    /// Its rank among all members.
    pub rank: u32,
    /// Its role.
    pub role: Arc<str>,
    /// The node it is on.
    pub node: Arc<str>,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Where it runs; where the control plane does when absent.
    pub directory: Option<String>,
    /// Its environment, besides that of the control plane.
    pub env: BTreeMap<String, String>,
    /// Bytes of memory it may use.
    pub memory: Option<u64>,
    /// Thousandths of a CPU it may use.
    pub cpu_milli: Option<u64>,
    /// What it is to MPI, where `mpirun` may start ranks beside it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<Host>,
}

/// A member as a host in MPI's hostfile.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Host {
    /// Its name there.
    pub name: String,
    /// How many ranks it has room for.
    pub slots: u32,
}

impl RunPlan {
    /// The plan in a directory.
    pub(crate) fn read(directory: &Path) -> std::io::Result<Self> {
        let text = std::fs::read(directory.join(crate::keeper::files::PLAN))?;
        serde_json::from_slice(&text).map_err(std::io::Error::other)
    }

    /// Writes the plan into a directory that is made for it, or finds it there. A directory in which somebody else's is,
    /// is not touched: what its members did would be taken for this gang's work.
    pub(crate) fn write(&self, directory: &Path) -> std::io::Result<()> {
        let path = directory.join(crate::keeper::files::PLAN);
        if path.exists() {
            let known = Self::read(directory)?;
            if (&known.gang, known.run, known.uid) == (&self.gang, self.run, self.uid) {
                return Ok(());
            }
            let why = format!("{} is the run of another gang, {}", directory.display(), known.gang);
            return Err(std::io::Error::new(std::io::ErrorKind::AlreadyExists, why));
        }
        std::fs::create_dir_all(directory.join(crate::keeper::files::LOGS))?;
        self.replace(directory)
    }

    /// Writes the plan over what is there.
    pub(crate) fn replace(&self, directory: &Path) -> std::io::Result<()> {
        let part = directory.join("run.json.part");
        std::fs::write(&part, serde_json::to_vec(self).map_err(std::io::Error::other)?)?;
        std::fs::File::open(&part)?.sync_all()?;
        std::fs::rename(part, directory.join(crate::keeper::files::PLAN))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_of_any_number_together_print_no_more_than_a_run_may() {
        for members in [1, 8, 64, 1_024] {
            let Limits { file_bytes, files } = Limits::for_members(members);
            let all = file_bytes * (u64::from(files) + 1) * 2 * members;
            assert!(all <= RUN_BYTES && file_bytes >= PAGE_LEAST, "{members}: {all}");
        }
        assert_eq!(Limits::for_members(4), Limits::default(), "few keep what they always did");
    }

    #[test]
    fn a_directory_in_which_another_run_was_is_not_adopted() {
        let directory = std::env::temp_dir().join(format!("muster-plan-{}", std::process::id()));
        let plan = RunPlan {
            gang: "team/a".into(),
            run: 1,
            uid: 1,
            members: Vec::new(),
            ends_with: None,
            time_limit_ms: None,
            grace_ms: 0,
            limits: Limits::default(),
            run_as: None,
            umask: None,
            group: None,
            clock: None,
        };
        plan.write(&directory).expect("written");
        plan.write(&directory).expect("it is there");
        let error = RunPlan { uid: 2, ..plan }.write(&directory).expect_err("another's");
        assert!(error.to_string().contains("the run of another gang, team/a"), "{error}");
        std::fs::remove_dir_all(directory).expect("removed");
    }
}
