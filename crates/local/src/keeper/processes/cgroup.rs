//! A control group for each run, so that no process can outlive its run: the processes of a group can be counted,
//! limited and killed together, whatever session, parent or environment they have chosen.
//!
//! Groups are made in the v2 hierarchy, also where it has no controllers because they are in v1 hierarchies beside it.
//! Each member has a group inside its run's group, so that a member that leaves a running gang takes all of its
//! processes with it. With v1 only, the run's group in the `pids` hierarchy is listed and killed one by one, after
//! forking is forbidden.
//!
//! A name is `muster-`, a number drawn once for a data directory, and the run's number, which is never reused: so no
//! name is reused.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::process::{Pid, Signal, getpid, kill_process};
use serde::{Deserialize, Serialize};

use crate::keeper::run_plan::MemberPlan;

/// The mount point of control groups, unless `MUSTER_CGROUPS` says otherwise.
const ROOT: &str = "/sys/fs/cgroup";
/// Groups of other data directories are left alone for this long: their owner may be about to use them.
const STALE_AFTER: Duration = Duration::from_secs(3_600);

/// Where groups can be made on this system.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct CgroupTrees {
    /// The v2 hierarchy, from the group of this process on.
    unified: Option<PathBuf>,
    /// v1 hierarchies of controllers that are not in v2.
    pids: Option<PathBuf>,
    memory: Option<PathBuf>,
    cpu: Option<PathBuf>,
}

impl CgroupTrees {
    /// Detects what the system grants by making a group and removing it; also returns messages about what cannot be
    /// enforced.
    pub(crate) fn detect() -> (Self, Vec<String>) {
        let root = std::env::var_os("MUSTER_CGROUPS").map_or_else(|| ROOT.into(), PathBuf::from);
        let one = root.join("cgroup.controllers").exists();
        let unified = if one { root.clone() } else { root.join("unified") };
        let usable = |tree: PathBuf| is_usable(&tree).then_some(tree);
        let trees = Self {
            unified: usable(own_group(&unified)),
            pids: usable(root.join("pids")).filter(|_| !one),
            memory: usable(root.join("memory")).filter(|_| !one),
            cpu: usable(root.join("cpu")).filter(|_| !one),
        };
        let mut lacking = Vec::new();
        if trees.unified.is_none() && trees.pids.is_none() {
            let root = root.display();
            lacking.push(format!(
                "no control groups can be made in {root}: memory and CPU of workers and their number of processes are not \
                 limited, and a worker that leaves its session and clears its environment is found only if it was seen \
                 before its keeper died"
            ));
        } else if !one && trees.memory.is_none() {
            lacking.push(
                "memory of workers is not limited: the memory controller is not granted".to_owned(),
            );
        }
        (trees, lacking)
    }

    /// The group of a run.
    pub(crate) fn run(&self, owner: &str, run: u64) -> Option<RunCgroup> {
        let any = self.unified.is_some() || self.pids.is_some();
        any.then(|| RunCgroup { trees: self.clone(), name: format!("muster-{owner}-{run}") })
    }

    fn all(&self) -> impl Iterator<Item = &PathBuf> {
        [&self.unified, &self.pids, &self.memory, &self.cpu].into_iter().flatten()
    }

    /// Kills and removes groups of this owner's runs that are not `live`, and removes old groups of other owners.
    pub(crate) fn sweep(&self, owner: &str, live: impl Fn(u64) -> bool) {
        let prefix = format!("muster-{owner}-");
        for tree in self.all() {
            for name in groups_in(tree) {
                match name.strip_prefix(&prefix).map(|rest| rest.split('-').next()) {
                    Some(Some(run)) => {
                        let run = run.parse::<u64>().ok();
                        if let Some(group) =
                            run.filter(|run| !live(*run)).and_then(|run| self.run(owner, run))
                        {
                            group.kill();
                            group.remove();
                        }
                    }
                    _ => remove_stale(&tree.join(&name)),
                }
            }
        }
    }
}

/// Removes an old group of another owner. The kernel does not remove a group that has processes.
fn remove_stale(group: &Path) {
    let made = group.metadata().and_then(|about| about.modified()).ok();
    let age = made.and_then(|made| SystemTime::now().duration_since(made).ok());
    if age.is_some_and(|age| age > STALE_AFTER) {
        remove(group);
    }
}

fn groups_in(tree: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(tree).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|name| name.starts_with("muster-")).collect()
}

/// The control group of one run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct RunCgroup {
    trees: CgroupTrees,
    name: String,
}

impl RunCgroup {
    /// Makes the group, with a limit on processes and threads. Returns messages about what is not enforced.
    pub(crate) fn open(&self, pids_max: u64) -> Vec<String> {
        let mut lacking = Vec::new();
        if let Some(tree) = &self.trees.unified {
            // A group that holds processes may not delegate controllers; what is missing then is reported below.
            enable_controllers(tree);
            let group = tree.join(&self.name);
            if let Err(error) = make(&group) {
                lacking.push(format!("its processes are in no control group: {error}"));
            }
            enable_controllers(&group);
        }
        let (dir, file) = match &self.trees.pids {
            Some(tree) => (Some(tree.join(&self.name)), "pids.max"),
            None => (self.trees.unified.as_ref().map(|tree| tree.join(&self.name)), "pids.max"),
        };
        if let Some(dir) = dir {
            let limited =
                make(&dir).and_then(|()| std::fs::write(dir.join(file), pids_max.to_string()));
            if let Err(error) = limited {
                lacking.push(format!("its number of processes is not limited: {error}"));
            }
        }
        lacking
    }

    /// Puts a member that has not run yet, with all its future descendants, under its limits.
    pub(crate) fn add_member(&self, member: &MemberPlan, pid: Pid) -> Result<MemberCgroup, String> {
        let name = format!("{}-{}", self.name, member.rank);
        let mut group = MemberCgroup { groups: Vec::new(), kills: None };
        let placed = self.place(&mut group, &name, member, &pid.as_raw_nonzero().to_string());
        placed.map_err(|error| format!("limits are not enforced: {error}"))?;
        Ok(group)
    }

    fn place(
        &self,
        group: &mut MemberCgroup,
        name: &str,
        member: &MemberPlan,
        pid: &str,
    ) -> std::io::Result<()> {
        let CgroupTrees { unified, pids, memory, cpu } = &self.trees;
        if let Some(tree) = pids {
            std::fs::write(tree.join(&self.name).join("cgroup.procs"), pid)?;
        }
        if let Some(tree) = unified {
            let own = tree.join(&self.name).join(name);
            make(&own)?;
            group.groups.push(own.clone());
            std::fs::write(own.join("cgroup.procs"), pid)?;
            if memory.is_none() && cpu.is_none() && pids.is_none() {
                return limit_unified(group, &own, member);
            }
        }
        if let (Some(tree), Some(bytes)) = (memory, member.memory) {
            let own = tree.join(name);
            make(&own)?;
            group.groups.push(own.clone());
            std::fs::write(own.join("memory.limit_in_bytes"), bytes.to_string())?;
            let _ = std::fs::write(own.join("memory.memsw.limit_in_bytes"), bytes.to_string());
            std::fs::write(own.join("cgroup.procs"), pid)?;
            group.kills = Some(own.join("memory.oom_control"));
        }
        if let (Some(tree), Some(milli)) = (cpu, member.cpu_milli) {
            let own = tree.join(name);
            make(&own)?;
            group.groups.push(own.clone());
            let shares = (milli.saturating_mul(1_024) / 1_000).clamp(2, 262_144);
            std::fs::write(own.join("cpu.shares"), shares.to_string())?;
            std::fs::write(own.join("cgroup.procs"), pid)?;
        }
        Ok(())
    }

    /// Kills all processes in the group.
    pub(crate) fn kill(&self) {
        if let Some(tree) = &self.trees.unified {
            kill_whole(&tree.join(&self.name));
        } else if let Some(tree) = &self.trees.pids {
            // Processes that cannot fork can be killed one by one.
            let group = tree.join(&self.name);
            let _ = std::fs::write(group.join("pids.max"), "0");
            kill_listed(&group);
        }
    }

    /// Kills all processes of one member. Returns whether none is left.
    pub(crate) fn end_member(&self, rank: u32) -> bool {
        let Some(tree) = &self.trees.unified else { return true };
        let group = tree.join(&self.name).join(format!("{}-{rank}", self.name));
        kill_whole(&group);
        is_empty(&group)
    }

    /// Whether no process is in the group.
    pub(crate) fn is_empty(&self) -> bool {
        let tree = self.trees.unified.as_ref().or(self.trees.pids.as_ref());
        tree.is_none_or(|tree| is_empty(&tree.join(&self.name)))
    }

    /// Removes the empty group, and those of its members.
    pub(crate) fn remove(&self) {
        let members = format!("{}-", self.name);
        for tree in self.trees.all() {
            for name in groups_in(tree) {
                if name == self.name || name.starts_with(&members) {
                    remove(&tree.join(name));
                }
            }
        }
    }
}

fn limit_unified(group: &mut MemberCgroup, own: &Path, member: &MemberPlan) -> std::io::Result<()> {
    if let Some(memory) = member.memory {
        std::fs::write(own.join("memory.max"), memory.to_string())?;
        let _ = std::fs::write(own.join("memory.swap.max"), "0");
        group.kills = Some(own.join("memory.events"));
    }
    if let Some(milli) = member.cpu_milli {
        // One CPU is the default weight of a group.
        let weight = (milli / 10).clamp(1, 10_000);
        std::fs::write(own.join("cpu.weight"), weight.to_string())?;
    }
    Ok(())
}

/// The control groups of one member.
#[derive(Debug)]
pub(crate) struct MemberCgroup {
    groups: Vec<PathBuf>,
    /// The file that counts out-of-memory kills.
    kills: Option<PathBuf>,
}

impl MemberCgroup {
    /// Whether a process in it was killed for exceeding its memory limit.
    pub(crate) fn ran_out_of_memory(&self) -> bool {
        let text = self.kills.as_ref().and_then(|path| std::fs::read_to_string(path).ok());
        let count = |text: &str| {
            let kills = text.lines().find_map(|line| line.strip_prefix("oom_kill "))?;
            kills.trim().parse::<u64>().ok()
        };
        text.as_deref().and_then(count).is_some_and(|kills| kills > 0)
    }
}

impl Drop for MemberCgroup {
    fn drop(&mut self) {
        self.groups.iter().for_each(|group| remove(group));
    }
}

/// The groups that Muster made for a process, in every hierarchy.
pub(crate) fn groups_of(pid: u32) -> Vec<PathBuf> {
    let lines = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
    let root = Path::new(ROOT);
    let one = root.join("cgroup.controllers").exists();
    let group = |line: &str| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (kind, path) = (parts.next()?, parts.next()?);
        let tree = match kind {
            "" if one => root.to_owned(),
            "" => root.join("unified"),
            kind => root.join(kind),
        };
        let group = tree.join(path.trim_start_matches('/'));
        let ours = group.file_name()?.to_str()?.starts_with("muster-");
        ours.then_some(group)
    };
    lines.lines().filter_map(group).collect()
}

fn make(group: &Path) -> std::io::Result<()> {
    match std::fs::create_dir(group) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        made => made,
    }
}

/// One by one: where one controller is not available, the others are.
fn enable_controllers(group: &Path) {
    for controller in ["+memory", "+cpu", "+pids"] {
        let _ = std::fs::write(group.join("cgroup.subtree_control"), controller);
    }
}

fn remove(group: &Path) {
    for inner in groups_in(group) {
        remove(&group.join(inner));
    }
    let _ = std::fs::remove_dir(group);
}

/// Kills all processes of a v2 group at once; on older kernels one by one while they are frozen.
fn kill_whole(group: &Path) {
    if std::fs::write(group.join("cgroup.kill"), "1").is_err() {
        let _ = std::fs::write(group.join("cgroup.freeze"), "1");
        kill_listed(group);
        groups_in(group).iter().for_each(|inner| kill_listed(&group.join(inner)));
        let _ = std::fs::write(group.join("cgroup.freeze"), "0");
    }
}

fn kill_listed(group: &Path) {
    for pid in listed(group).filter(|pid| *pid != getpid()) {
        let _ = kill_process(pid, Signal::KILL);
    }
}

fn listed(group: &Path) -> impl Iterator<Item = Pid> {
    let text = std::fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
    let pids: Vec<Pid> =
        text.lines().filter_map(|line| Pid::from_raw(line.trim().parse().ok()?)).collect();
    pids.into_iter()
}

/// Whether no live process is in a group or below it.
fn is_empty(group: &Path) -> bool {
    match std::fs::read_to_string(group.join("cgroup.events")) {
        Ok(events) => !events.lines().any(|line| line == "populated 1"),
        Err(_) => listed(group).next().is_none(),
    }
}

/// Whether groups can be made in a hierarchy.
fn is_usable(tree: &Path) -> bool {
    if !tree.join("cgroup.procs").exists() {
        return false;
    }
    let probe = tree.join(format!("muster-probe-{}", std::process::id()));
    let made = make(&probe).is_ok();
    let _ = std::fs::remove_dir(probe);
    made
}

/// The v2 group of this process.
fn own_group(root: &Path) -> PathBuf {
    let own = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let path = own.lines().find_map(|line| line.strip_prefix("0::/")).unwrap_or_default();
    root.join(path)
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn killing_a_cgroup_kills_all_its_processes() {
        let (trees, lacking) = CgroupTrees::detect();
        let owner = format!("test{}", std::process::id());
        let Some(group) = trees.run(&owner, 7) else {
            eprintln!("SKIPPED: {lacking:?}");
            return;
        };
        assert_eq!(group.open(64), [""; 0]);
        let mut command = Command::new("sh");
        command.args(["-c", "read line; env -i setsid sleep 7373 & exec sleep 7373"]);
        let mut child = command.stdin(Stdio::piped()).spawn().expect("sh");
        let member = MemberPlan { rank: 0, ..MemberPlan::default() };
        let pid = Pid::from_raw(child.id() as i32).expect("a number");
        let own = group.add_member(&member, pid).expect("admitted");
        drop(child.stdin.take());
        assert!(!group.is_empty());
        group.kill();
        child.wait().expect("killed");
        let began = std::time::Instant::now();
        while !group.is_empty() {
            assert!(began.elapsed() < Duration::from_secs(10), "something lives on");
            std::thread::sleep(Duration::from_millis(5));
        }
        drop(own);
        group.remove();
        let left = trees.all().flat_map(|tree| groups_in(tree)).find(|name| name.contains(&owner));
        assert_eq!(left, None);
    }
}
