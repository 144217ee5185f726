//! Turns seats into processes: ranks, nodes, devices and environment of each member.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use muster_core::World;
use muster_core::gang::{Disruption, Seat, Signal};
use muster_core::id::NodeIdx;
use muster_core::resource::{CPU, MEMORY};

use crate::daemon::gangs::gang::Gang;
use crate::daemon::gangs::runs::signal_number;
use crate::intake::record::{Record, Task};
use crate::keeper::files::{HOSTFILE, WORLD};
use crate::keeper::processes::leftovers::MARK;
use crate::keeper::run_plan::{Host, Limits, MemberPlan, RunPlan};
use crate::nodes::machine::Machine;
use crate::system::clock::Clock;
use crate::system::file_permissions;
use crate::system::unix_user;

/// Minimum grace period: a process that cleans up takes a moment.
const LEAST_GRACE_MS: u64 = 2_000;

/// The grace period of a gang's members, in wall-clock time.
pub(crate) fn grace_ms(clock: &Clock, disruption: &Disruption) -> u64 {
    clock.wall_ms(disruption.grace).max(LEAST_GRACE_MS)
}

/// The signal that stops a gang's members: the checkpoint signal, if there is one.
pub(crate) fn stop_signal(disruption: &Disruption) -> i32 {
    let saves = disruption.checkpoint.and_then(|checkpoint| checkpoint.signal);
    signal_number(saves.unwrap_or(Signal::SigTerm))
}

/// A member before its environment is built.
struct Place {
    number: u32,
    role: usize,
    index: u32,
    node: NodeIdx,
    devices: Vec<usize>,
}

/// What seats are resolved against.
pub(crate) struct SeatContext<'a> {
    pub(crate) world: &'a World,
    pub(crate) clock: &'a Clock,
    /// This machine, whose devices are numbered by their driver.
    pub(crate) machine: Option<&'a Machine>,
}

/// The run plan of a gang with these seats.
pub(crate) fn plan(
    on: &SeatContext<'_>,
    gang: &Gang,
    seats: &[Seat],
    (run, directory): (u64, &Path),
) -> RunPlan {
    let record = &gang.record;
    let mut index = vec![0u32; record.spec.roles.len()];
    let mut places = Vec::new();
    for (number, seat) in (0..).zip(per_member(seats)) {
        let next = &mut index[usize::from(seat.role)];
        places.push(place(number, &seat, *next));
        *next += 1;
    }
    let grace = grace_ms(on.clock, &record.spec.disruption);
    RunPlan {
        gang: record.spec.name.clone(),
        run,
        uid: gang.uid,
        members: members(on, gang, &places, (run, directory)),
        ends_with: record.ends_with.clone(),
        time_limit_ms: record.run_policy.time_limit.map(|limit| on.clock.wall_ms(limit)),
        grace_ms: grace,
        limits: Limits::for_members(record.spec.roles.iter().map(|role| u64::from(role.max)).sum()),
        group: None,
        clock: None,
        run_as: record.run_as.clone(),
        umask: file_permissions::umask_of_workers(),
    }
}

/// The members of a gang that continues with these seats, by number.
pub(crate) fn others(
    on: &SeatContext<'_>,
    gang: &Gang,
    seats: &BTreeMap<u32, Seat>,
    run: (u64, &Path),
) -> Vec<MemberPlan> {
    // Members that left may have had any index; a member number was never reused.
    let places = seats.iter().map(|(number, seat)| place(*number, seat, *number));
    members(on, gang, &places.collect::<Vec<_>>(), run)
}

/// The plan of each member; ranks follow the order.
fn members(
    on: &SeatContext<'_>,
    gang: &Gang,
    places: &[Place],
    (run, directory): (u64, &Path),
) -> Vec<MemberPlan> {
    let SeatContext { world, clock, machine } = *on;
    let record = &gang.record;
    let mut nodes: Vec<NodeIdx> = Vec::new();
    for place in places {
        if !nodes.contains(&place.node) {
            nodes.push(place.node);
        }
    }
    let name = |node: NodeIdx| -> Arc<str> {
        world.node_name(node).cloned().unwrap_or_else(|| format!("{node:?}").into())
    };
    let mut on_node: BTreeMap<NodeIdx, u32> = BTreeMap::new();
    let mut seated: BTreeMap<NodeIdx, u32> = BTreeMap::new();
    places.iter().for_each(|place| *on_node.entry(place.node).or_default() += 1);
    let directory_of_run = directory;
    let hostfile = directory.join(HOSTFILE);
    let port = free_port(run);
    let mut members = Vec::with_capacity(places.len());
    for (rank, place) in (0u32..).zip(places) {
        let role = &record.spec.roles[place.role];
        let local = seated.entry(place.node).or_default();
        let node_rank = nodes.iter().position(|node| *node == place.node).unwrap_or_default();
        let mut env: BTreeMap<String, String> = BTreeMap::new();
        let mut set = |name: &str, value: String| drop(env.insert(name.to_owned(), value));
        set("RANK", rank.to_string());
        set("WORLD_SIZE", places.len().to_string());
        set("LOCAL_RANK", local.to_string());
        set("LOCAL_WORLD_SIZE", on_node[&place.node].to_string());
        set("NODE_RANK", node_rank.to_string());
        set("GROUP_RANK", node_rank.to_string());
        set("MASTER_ADDR", "127.0.0.1".to_owned());
        set("MASTER_PORT", port.to_string());
        set("MUSTER_GANG", record.spec.name.to_string());
        set("MUSTER_ROLE", role.name.to_string());
        set("MUSTER_ROLE_INDEX", place.index.to_string());
        set("MUSTER_NODE", name(place.node).to_string());
        set("MUSTER_NODES", nodes.len().to_string());
        set("MUSTER_RUN", run.to_string());
        set("MUSTER_MEMBER", place.number.to_string());
        set("MUSTER_HOSTFILE", hostfile.display().to_string());
        set("MUSTER_WORLD", directory_of_run.join(WORLD).display().to_string());
        // Where Open MPI 4 and 5 look for their hostfile by default.
        set("OMPI_MCA_orte_default_hostfile", hostfile.display().to_string());
        set("PRTE_MCA_prte_default_hostfile", hostfile.display().to_string());
        set("JOB_COMPLETION_INDEX", place.index.to_string());
        if record.mpi.is_some() {
            for (name, value) in FOR_HOSTS {
                set(name, value.to_owned());
            }
        }
        if role.request.gpu.is_some() {
            let here = machine.filter(|here| here.node.name == name(place.node));
            let number = |device: &usize| {
                let known = here.and_then(|here| here.devices.get(*device)).copied();
                known.map_or_else(|| device.to_string(), |number| number.to_string())
            };
            let devices: Vec<String> = place.devices.iter().map(number).collect();
            set("CUDA_VISIBLE_DEVICES", devices.join(","));
            // Device numbers in the order of the driver.
            set("CUDA_DEVICE_ORDER", "PCI_BUS_ID".to_owned());
        }
        *local += 1;
        let home = record.run_as.as_deref().and_then(unix_user::surroundings);
        let home = home.map(|(variables, home)| {
            env.extend(variables.map(|(name, value)| (name.to_owned(), value)));
            home.display().to_string()
        });
        let (command, directory) = match &record.tasks[place.role] {
            Task::Run(run) => {
                env.extend(run.env.clone());
                (run.command.clone(), run.directory.clone())
            }
            Task::Pass(span) => {
                let seconds = clock.wall_ms(*span) as f64 / 1_000.0;
                (vec!["sleep".to_owned(), format!("{seconds:.3}")], None)
            }
        };
        let directory = directory.or(home);
        // Set last, whatever the gang says: processes of a run are found by this variable.
        env.insert(MARK.to_owned(), directory_of_run.display().to_string());
        let amount = |name: &str| role.request.amounts.get(name).copied().filter(|one| *one > 0);
        members.push(MemberPlan {
            rank: place.number,
            role: role.name.clone(),
            node: name(place.node),
            command,
            directory,
            env,
            memory: amount(MEMORY),
            cpu_milli: amount(CPU),
            host: host(record, &role.name, place.index),
        });
    }
    members
}

fn place(number: u32, seat: &Seat, index: u32) -> Place {
    let devices = seat.devices.iter().collect();
    Place { number, role: usize::from(seat.role), index, node: seat.node, devices }
}

/// One seat per member, by role and node: neighbours in rank are neighbours in the topology.
pub(crate) fn per_member(seats: &[Seat]) -> Vec<Seat> {
    let mut sorted = seats.to_vec();
    sorted.sort_by_key(|seat| (seat.role, seat.node, seat.devices));
    let each =
        |seat: &Seat| std::iter::repeat_n(Seat { members: 1, ..*seat }, usize::from(seat.members));
    sorted.iter().flat_map(each).collect()
}

/// The `MUSTER_WORLD` file after a resize: the member numbers in order of rank.
pub(crate) fn world_of(members: &BTreeMap<u32, Seat>) -> String {
    let numbers: Vec<String> = members.keys().map(u32::to_string).collect();
    format!("{{\"size\": {}, \"members\": [{}]}}\n", members.len(), numbers.join(", "))
}

/// The `MUSTER_WORLD` file: the present size, and the coming size if there is one.
pub(crate) fn world(size: u32, next: Option<u32>) -> String {
    match next {
        Some(next) => format!("{{\"size\": {size}, \"next\": {next}}}\n"),
        None => format!("{{\"size\": {size}}}\n"),
    }
}

/// The MPI hostfile: for an MPI job its hosts, by names that its rsh agent resolves; for other gangs this machine with
/// a slot per member.
pub(crate) fn hostfile(members: &[MemberPlan]) -> String {
    let hosts = members.iter().filter_map(|member| member.host.as_ref());
    let lines: String =
        hosts.map(|Host { name, slots }| format!("{name} slots={slots}\n")).collect();
    if lines.is_empty() { format!("127.0.0.1 slots={}\n", members.len()) } else { lines }
}

/// A member of an MPI job as a host for `mpirun`, with the name its pod would have; none for the launcher.
fn host(record: &Record, role: &str, index: u32) -> Option<Host> {
    let mpi = record.mpi.as_ref()?;
    if record.ends_with.as_deref() == Some(role) && !mpi.with_launcher {
        return None;
    }
    let gang = record.spec.name.rsplit('/').next().unwrap_or_default();
    Some(Host { name: format!("{gang}-{role}-{index}"), slots: mpi.slots })
}

/// Settings of Open MPI 4 and 5 for hosts that are all on this machine.
const FOR_HOSTS: [(&str, &str); 5] = [
    // Host names cannot be resolved by DNS.
    ("OMPI_MCA_if_base_do_not_resolve", "1"),
    // Some machines have only the loopback network, which Open MPI excludes by default. This value excludes nothing.
    ("OMPI_MCA_btl_tcp_if_exclude", "sppp"),
    // Each host would bind its first rank to the machine's first core.
    ("OMPI_MCA_hwloc_base_binding_policy", "none"),
    ("PRTE_MCA_hwloc_default_binding_policy", "none"),
    // Ranks do not know that others share their cores.
    ("OMPI_MCA_mpi_yield_when_idle", "1"),
];

/// A port that is free now. It is below the ephemeral range, so that no outgoing connection takes it before the first
/// member does; and each run begins its search at a different port.
fn free_port(run: u64) -> u16 {
    const FIRST: u64 = 20_000;
    const COUNT: u64 = 12_000;
    let candidates = (0..COUNT).map(|step| FIRST + (run * 17 + step) % COUNT);
    let mut ports = candidates.filter_map(|port| u16::try_from(port).ok());
    let free = |port: &u16| std::net::TcpListener::bind(("127.0.0.1", *port)).is_ok();
    ports.find(free).unwrap_or(29_500)
}
