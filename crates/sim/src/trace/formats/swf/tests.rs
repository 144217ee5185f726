//! Cases: a few lines of a log in, what they mean out.

use std::io::{Cursor, Write};

use flate2::Compression;
use flate2::write::GzEncoder;
use muster_core::time::{Span, Time};
use proptest::prelude::*;

use crate::trace::formats::swf::*;
use crate::trace::parse::open::decoded;

fn log(text: &str) -> Result<Swf, TraceError> {
    parse(Path::new("log.swf"), text.as_bytes())
}

/// A line with the columns that matter; the rest is unknown.
fn line(id: i64, submit: i64, run: i64, allocated: i64, requested: i64, status: i64) -> String {
    format!(
        "{id} {submit} 5 {run} {allocated} -1 -1 {requested} 600 -1 {status} 7 -1 -1 2 -1 -1 -1\n"
    )
}

#[test]
fn record_becomes_a_rigid_gang_of_one_cpu_members() {
    let swf = log(&format!("; MaxProcs: 100\n{}", line(12, 30, 90, 4, 8, 1))).unwrap();
    assert_eq!(swf.header.max_procs(), Some(100));
    let [record] = swf.records[..] else { panic!("{swf:?}") };
    assert_eq!((record.id, record.wait, record.queue), (12, Some(Span::secs(5)), Some(2)));
    let [job] = &swf.jobs(&SwfOptions::default())[..] else { panic!() };
    let role = &job.gang.roles[0];
    assert_eq!((&*job.gang.name, &*job.gang.queue, &*job.gang.user), ("job-12", "default", "u7"));
    assert_eq!((&*role.name, role.min, role.max), ("proc", 4, 4));
    assert_eq!(role.request.amounts, NamedAmounts::from([("cpu".into(), 1_000)]));
    assert_eq!((job.submit, job.run), (Time(30_000), Span::secs(90)));
    assert_eq!(job.gang.expected_duration, Some(Span::secs(600)));
    assert_eq!(job.gang.provisioning.mode, ProvisioningMode::Never);
}

#[test]
fn missing_values_fall_back_to_known_ones() {
    let swf = log("1 0 -1 90 -1 -1 -1 8 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1").unwrap();
    let [job] = &swf.jobs(&SwfOptions::default())[..] else { panic!() };
    assert_eq!(job.gang.roles[0].max, 8, "requested processors");
    assert_eq!(job.gang.expected_duration, Some(Span::secs(90)), "true run time");
    assert_eq!(&*job.gang.user, "");
    assert_eq!(swf.records[0].wait, None);
}

#[test]
fn perfect_foresight_expects_the_true_run_time() {
    let options = SwfOptions { estimates: Estimates::True, ..SwfOptions::default() };
    let jobs = log(&line(1, 0, 90, 4, 4, 1)).unwrap().jobs(&options);
    assert_eq!(jobs[0].gang.expected_duration, Some(Span::secs(90)));
}

#[test]
fn records_that_cannot_be_replayed_are_skipped_with_a_reason() {
    use SkipReason::*;
    let text = [
        line(1, 0, 90, 4, 4, 1),
        line(2, 0, 90, 0, -1, 5),
        line(3, 0, -1, 4, 4, 5),
        line(4, -1, 90, 4, 4, 1),
        line(5, 0, 90, 4, 4, 3),
        line(1, 9, 90, 4, 4, 1),
    ];
    let swf = log(&text.concat()).unwrap();
    assert_eq!(swf.records.len(), 1);
    let skipped: Vec<_> = swf.skipped.iter().map(|skip| (skip.line, skip.reason)).collect();
    let expected =
        [(2, NoProcessors), (3, NoRunTime), (4, NoSubmitTime), (5, Partial), (6, RepeatedId)];
    assert_eq!(skipped, expected);
}

#[test]
fn records_are_sorted_by_submit_time_and_ties_keep_file_order() {
    let text = [line(1, 50, 9, 1, 1, 1), line(2, 10, 9, 1, 1, 1), line(3, 50, 9, 1, 1, 1)];
    let ids: Vec<_> = log(&text.concat()).unwrap().records.iter().map(|record| record.id).collect();
    assert_eq!(ids, [2, 1, 3]);
}

#[test]
fn malformed_line_is_refused_with_file_line_column_and_reason() {
    let refusal = |bad: &str| log(&format!("; Note: x\n\n{bad}")).unwrap_err().to_string();
    let swap = |from: &str, to: &str| refusal(&line(1, 0, 90, 4, 8, 1).replace(from, to));
    assert_eq!(refusal("1 2 3"), "log.swf:3: 3 columns where 18 belong");
    assert_eq!(
        swap(" 90 ", " 90s "),
        "log.swf:3: column 4 (run time): `90s` is not a number of seconds"
    );
    assert_eq!(
        swap(" 4 ", " 4.5 "),
        "log.swf:3: column 5 (allocated processors): `4.5` is not a whole number"
    );
    assert_eq!(
        swap(" 8 ", " 5000000000 "),
        "log.swf:3: column 8 (requested processors): `5000000000` is too large"
    );
    assert_eq!(swap("1 0 ", "-1 0 "), "log.swf:3: column 1 (job number): `-1` is below zero");
}

#[test]
fn log_may_have_fractions_of_seconds_and_latin1_letters() {
    let mut bytes = b"; Computer: K\xf6nig\r\n".to_vec();
    bytes.extend(b"1 0.5 -1 1.25 1 0.9 -1 1 -1 -1 1 1 1 1 1 1 -1 -1\r\n");
    let swf = parse(Path::new("log.swf"), &bytes[..]).unwrap();
    assert_eq!((swf.records[0].submit, swf.records[0].run), (Time(500), Span(1_250)));
}

#[test]
fn gzipped_log_reads_like_a_plain_one_and_a_truncated_one_is_refused() {
    let text: String = (0..500).map(|id| line(id, id * 31, 90 + id % 7, 4, 8, 1)).collect();
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text.as_bytes()).unwrap();
    let mut bytes = encoder.finish().unwrap();
    let read = |bytes: Vec<u8>| parse(Path::new("log.swf"), decoded(Cursor::new(bytes)).unwrap());
    assert_eq!(read(bytes.clone()).unwrap(), log(&text).unwrap());
    bytes.truncate(bytes.len() / 2);
    assert!(matches!(read(bytes), Err(TraceError::Read { .. })));
}

proptest! {
    #[test]
    fn arbitrary_text_never_panics(text in "(?s).{0,400}") {
        let _ = log(&text);
    }

    /// Text that looks like a log gets further into the reader than noise does.
    #[test]
    fn every_job_of_an_accepted_log_is_valid(
        rows in prop::collection::vec(prop::collection::vec("-1|0|[1-9][0-9]{0,9}", 18), 0..4),
    ) {
        let text: String = rows.iter().map(|row| row.join(" ") + "\n").collect();
        if let Ok(swf) = log(&text) {
            let jobs = swf.jobs(&SwfOptions::default());
            prop_assert_eq!(swf.records.len() + swf.skipped.len(), rows.len());
            prop_assert!(jobs.is_sorted_by_key(|job| job.submit));
            for job in &jobs {
                prop_assert!(job.submit >= Time::ZERO && job.gang.roles[0].min >= 1);
            }
        }
    }
}
