//! Cases: a small log in, jobs or a refusal out.

use proptest::prelude::*;

use crate::trace::formats::job_log::*;

fn log(text: &str) -> Result<Replay, TraceError> {
    parse(Path::new("log.csv"), text.as_bytes(), 8)
}

fn refusal(text: &str) -> String {
    log(text).unwrap_err().to_string()
}

/// Members and GPUs of each, role by role.
fn shape(job: &Job) -> Vec<(u32, u64)> {
    job.gang.roles.iter().map(|role| (role.min, role.request.gpu_milli() / 1_000)).collect()
}

#[test]
fn four_columns_are_enough() {
    let replay = log("job_id,submission_time,duration,num_gpu\n\
                      a-1,1000,60,64\nb-2,900,30.5,1\nc-3,1000,9,0\n")
    .unwrap();
    let [b, a, c] = &replay.jobs[..] else { panic!("{replay:?}") };
    assert_eq!((&*a.gang.name, a.submit, a.run), ("a-1", Time(1_000_000), Span::secs(60)));
    assert_eq!((&*b.gang.name, b.submit, b.run), ("b-2", Time(900_000), Span(30_500)));
    assert_eq!([a, b, c].map(shape), [vec![(8, 8)], vec![(1, 1)], vec![(1, 0)]]);
    assert_eq!((&*a.gang.queue, &*a.gang.user, a.gang.expected_duration), ("default", "", None));
    assert_eq!(replay.skipped, []);
}

#[test]
fn job_larger_than_a_node_is_a_gang_of_nodes_and_a_rest() {
    let of = |gpus: u32, per_node: u32| -> Vec<(u32, u64)> {
        let roles = roles(gpus, per_node, &mut Names::default());
        roles.iter().map(|role| (role.min, role.request.gpu_milli() / 1_000)).collect()
    };
    assert_eq!(of(8, 8), [(1, 8)]);
    assert_eq!(of(7, 8), [(1, 7)]);
    assert_eq!(of(24, 8), [(3, 8)]);
    assert_eq!(of(12, 8), [(1, 8), (1, 4)]);
    assert_eq!(of(12, 4), [(3, 4)]);
}

#[test]
fn users_and_virtual_clusters_are_kept_and_dates_counted_from_the_first() {
    let replay = log("jobid,user,vc,submitted_time,started_time,run_time,gpus,status\n\
                      j1,ann,research,2017-10-03 10:00:30,2017-10-03 10:05:00,60,2,Pass\n\
                      j2,bob,prod,2017-10-03 10:00:00,,90,1,Killed\n")
    .unwrap();
    let [j2, j1] = &replay.jobs[..] else { panic!("{replay:?}") };
    assert_eq!((&*j1.gang.user, &*j1.gang.queue), ("ann", "research"));
    assert_eq!((j2.submit, j1.submit), (Time::ZERO, Time(30_000)));
}

#[test]
fn every_spelling_of_a_column_is_accepted() {
    for head in ["JobId,Submit_Time,Runtime,GPU_num", "id,arrival_time,duration_s,gpu_count"] {
        assert_eq!(log(&format!("{head}\na,5,10,4\n")).unwrap().jobs.len(), 1, "{head}");
    }
}

#[test]
fn run_time_may_be_start_to_end_and_jobs_that_never_ran_are_skipped() {
    let replay = log("job_id,vc,gpu_num,submit_time,start_time,end_time\n\
                      1,a,1,2020-05-01 00:00:00,2020-05-01 00:01:00,2020-05-01 01:01:00\n\
                      2,a,1,2020-05-01 00:00:00,,\n\
                      3,a,1,2020-05-01 00:00:00,2020-05-01 00:01:00,None\n\
                      4,a,1,2020-05-01 00:00:00,2020-05-01 00:01:00,2020-05-01 00:00:59\n")
    .unwrap();
    assert_eq!((replay.jobs.len(), replay.jobs[0].run), (1, Span::hours(1)));
    let skipped: Vec<_> = replay.skipped.iter().map(|skip| skip.line).collect();
    assert_eq!(skipped, [3, 4, 5]);
    let replay = log("job_id,submit_time,duration,num_gpu\n1,0,,1\n2,0,-1,1\n").unwrap();
    assert_eq!((replay.jobs.len(), replay.skipped.len()), (0, 2));
}

#[test]
fn bad_logs_are_refused_with_file_line_column_and_reason() {
    let head = "jobid,submitted_time,duration,gpus";
    let bad = |row: &str| refusal(&format!("{head}\n\n{row}\n"));
    assert_eq!(
        bad("a,today,5,1"),
        "log.csv:3: column submitted_time: `today` is neither a number of seconds nor a date and time"
    );
    assert_eq!(bad("a,-1,5,1"), "log.csv:3: column submitted_time: `-1` is below zero");
    assert_eq!(
        bad("a,0,5 min,1"),
        "log.csv:3: column duration: `5 min` is not a number of seconds"
    );
    assert_eq!(bad("a,0,5,1.5"), "log.csv:3: column gpus: `1.5` is not a whole number");
    assert_eq!(bad("a,0,5,-1"), "log.csv:3: column gpus: `-1` is below zero");
    assert_eq!(bad(",0,5,1"), "log.csv:3: column jobid: `` is empty, and this column is required");
    assert_eq!(bad("a,0,5"), "log.csv:3: 3 columns where 4 belong");
    assert_eq!(bad("a,0,5,1\na,0,5,1"), "log.csv:4: column jobid: `a` is also the name on line 3");
    assert_eq!(refusal("jobid,gpus,duration\n"), "log.csv: column `submission_time` is missing");
    assert_eq!(refusal("jobid,gpus,submit_time\na,1,0\n"), "log.csv: column `duration` is missing");
    assert_eq!(
        refusal("jobid,job_id,gpus,submit_time\n"),
        "log.csv: column `job_id` is there twice"
    );
}

proptest! {
    #[test]
    fn arbitrary_text_never_panics(text in "(?s).{0,400}") {
        let _ = log(&text);
        let _ = log(&format!("job_id,submit_time,duration,num_gpu\n{text}"));
    }

    #[test]
    fn every_job_has_as_many_gpus_as_its_row_says(gpus in 0..100_000u32, per_node in 1..65u32) {
        let roles = roles(gpus, per_node, &mut Names::default());
        let milli: u64 =
            roles.iter().map(|role| u64::from(role.min) * role.request.gpu_milli()).sum();
        prop_assert_eq!(milli, u64::from(gpus) * 1_000);
    }
}
