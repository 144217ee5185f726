//! Cases: a small table in, jobs or a refusal out.

use muster_core::device::{GpuRequest, MAX_DEVICES, WHOLE};
use muster_core::money::Money;
use muster_core::resource::NamedAmounts;
use muster_core::time::Span;
use proptest::prelude::*;

use crate::trace::defaults::GPU;
use crate::trace::formats::table::*;

fn table(text: &str) -> Result<Vec<Job>, TraceError> {
    parse(Path::new("jobs.csv"), text.as_bytes())
}

fn refusal(text: &str) -> String {
    table(text).unwrap_err().to_string()
}

/// The refusal of one row with these further columns.
fn bad_row(columns: &str, cells: &str) -> String {
    refusal(&format!("submit_s,run_s,members,{columns}\n0,60,4,{cells}\n"))
}

#[test]
fn three_columns_are_enough() {
    let jobs = table("members,run_s,submit_s\n2,60,1.5\n\n1,30,0\n").unwrap();
    let [first, second] = &jobs[..] else { panic!("{jobs:?}") };
    assert_eq!((&*first.gang.name, first.submit, first.run), ("job-2", Time(0), Span::secs(30)));
    assert_eq!(
        (&*second.gang.name, second.submit, second.run),
        ("job-1", Time(1_500), Span::secs(60))
    );
    let gang = &second.gang;
    let role = &gang.roles[0];
    assert_eq!((role.min, role.max), (2, 2));
    assert_eq!(
        role.request,
        Request { amounts: NamedAmounts::from([("cpu".into(), 1_000)]), gpu: None }
    );
    assert_eq!((&*gang.queue, &*gang.user, gang.priority), ("default", "", 0));
    assert_eq!((&gang.closeness, gang.expected_duration), (&None, None));
    assert_eq!((gang.deadline, gang.cost_of_waiting), (None, None));
}

#[test]
fn every_column_is_read() {
    let jobs = table(
        "submit_s,run_s,members,min,name,gpus,cpu,memory,queue,user,priority,estimate_s,topology,deadline_s,\
         cost_of_waiting\r\n\
         10,3600,16,8,\"llama, big\",8,96,1000Gi,research,ann,-5,7200,rack,5400.5,12.25\r\n",
    )
    .unwrap();
    let gang = &jobs[0].gang;
    let role = &gang.roles[0];
    assert_eq!(
        (&*gang.name, &*gang.queue, &*gang.user, gang.priority),
        ("llama, big", "research", "ann", -5)
    );
    assert_eq!((role.min, role.max), (8, 16));
    let amounts = NamedAmounts::from([("cpu".into(), 96_000), ("memory".into(), 1_000 << 30)]);
    assert_eq!(role.request.amounts, amounts);
    assert_eq!(role.request.gpu, Some(GpuRequest { resource: GPU.into(), count: 8, share: WHOLE }));
    assert_eq!(gang.closeness, Some(Closeness::Required("rack".into())));
    assert_eq!(gang.expected_duration, Some(Span::hours(2)));
    assert_eq!((jobs[0].submit, gang.deadline), (Time(10_000), Some(Time(5_410_500))));
    assert_eq!(gang.cost_of_waiting, Some(Money(12_250_000)));
}

#[test]
fn gpus_are_whole_devices_or_a_part_of_one() {
    assert_eq!(gpus("0"), Ok(None));
    assert_eq!(gpus("0.5"), Ok(Some((1, 500))));
    assert_eq!(gpus("250m"), Ok(Some((1, 250))));
    assert_eq!(gpus("1"), Ok(Some((1, 1_000))));
    assert_eq!(gpus("8.0"), Ok(Some((8, 1_000))));
    assert_eq!(gpus("1.5"), Err(CellError::BrokenGpus));
    assert_eq!(gpus("65"), Err(CellError::TooManyGpus { most: 64 }));
    assert_eq!(gpus("-1"), Err(CellError::Negative));
}

#[test]
fn wrong_columns_are_refused_by_name() {
    assert_eq!(
        refusal("submit_s,run_s,members,estimate\n"),
        "jobs.csv: unknown column `estimate`: known are submit_s, run_s, members, min, name, gpus, cpu, \
         memory, queue, user, priority, estimate_s, topology, deadline_s, cost_of_waiting"
    );
    assert_eq!(refusal("submit_s,members\n"), "jobs.csv: column `run_s` is missing");
    assert_eq!(refusal(""), "jobs.csv: column `submit_s` is missing");
    assert_eq!(refusal("submit_s,run_s,run_s\n"), "jobs.csv: column `run_s` is there twice");
}

#[test]
fn bad_cells_are_refused_with_file_line_column_and_value() {
    assert_eq!(bad_row("min", "5"), "jobs.csv:2: column min: `5` is above the row's members (4)");
    assert_eq!(
        bad_row("priority", "high"),
        "jobs.csv:2: column priority: `high` is not a whole number"
    );
    assert_eq!(
        bad_row("estimate_s", "2h"),
        "jobs.csv:2: column estimate_s: `2h` is not a number of seconds"
    );
    assert_eq!(
        bad_row("deadline_s", "2026-12-01T08:00:00Z"),
        "jobs.csv:2: column deadline_s: `2026-12-01T08:00:00Z` is not a number of seconds"
    );
    assert_eq!(bad_row("deadline_s", "-1"), "jobs.csv:2: column deadline_s: `-1` is below zero");
    assert_eq!(
        bad_row("cost_of_waiting", "40/h"),
        "jobs.csv:2: column cost_of_waiting: `40/h` is not an amount of money"
    );
    assert_eq!(
        bad_row("cost_of_waiting", "-1"),
        "jobs.csv:2: column cost_of_waiting: `-1` is below zero"
    );
    assert_eq!(
        bad_row("gpus", "1.5"),
        "jobs.csv:2: column gpus: `1.5` is neither a part of one GPU nor a whole number of GPUs"
    );
    assert!(
        bad_row("memory", "80GB").starts_with("jobs.csv:2: column memory: `80GB` cannot be read: ")
    );
    let no_run = "submit_s,run_s,members\r\n\r\n0,1,1\r\n0,,1\r\n";
    assert_eq!(
        refusal(no_run),
        "jobs.csv:4: column run_s: `` is empty, and this column is required"
    );
}

#[test]
fn row_of_another_width_or_with_an_open_quote_is_refused() {
    assert_eq!(bad_row("name", "a,b"), "jobs.csv:2: 5 columns where 4 belong");
    assert_eq!(
        bad_row("name", "\"a"),
        "jobs.csv:2: a double quote is opened and not closed on this line"
    );
}

#[test]
fn two_gangs_of_one_name_are_refused() {
    let text = "submit_s,run_s,members,name\n0,1,1,a\n0,1,1,b\n0,1,1,a\n";
    assert_eq!(refusal(text), "jobs.csv:4: column name: `a` is also the name on line 2");
}

proptest! {
    #[test]
    fn arbitrary_text_never_panics(text in "(?s).{0,400}") {
        let _ = table(&text);
    }

    /// Cells that are mostly good reach the end of the reader, where noise does not.
    #[test]
    fn every_job_of_an_accepted_table_is_valid(
        rows in prop::collection::vec(
            ("[0-9]{1,6}(\\.[0-9]{1,4})?", "[0-9]{1,9}|1e9", "[1-9][0-9]{0,9}", "|[0-9]{1,3}", "|[0-9]{1,2}|0\\.[0-9]{1,4}",
             "|[0-9]{1,9}|1e12", "|[0-9]{1,13}|0\\.[0-9]{1,7}"),
            1..4,
        ),
    ) {
        let rows = rows.iter().map(|(submit, run, members, min, gpus, deadline, cost)| {
            format!("{submit},{run},{members},{min},{gpus},{deadline},{cost}\n")
        });
        let head = "submit_s,run_s,members,min,gpus,deadline_s,cost_of_waiting";
        if let Ok(jobs) = table(&format!("{head}\n{}", rows.collect::<String>())) {
            prop_assert!(jobs.is_sorted_by_key(|job| job.submit));
            for job in &jobs {
                let role = &job.gang.roles[0];
                prop_assert!(1 <= role.min && role.min <= role.max);
                prop_assert!(job.gang.deadline.is_none_or(|deadline| deadline >= job.submit));
                prop_assert!(job.gang.cost_of_waiting.is_none_or(|cost| cost >= Money::ZERO));
                prop_assert!(role.request.gpu_milli() <= MAX_DEVICES as u64 * u64::from(WHOLE));
            }
        }
    }
}
