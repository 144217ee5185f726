//! Recognises the format of a file by its first line.

use std::io::BufRead;
use std::path::Path;

use crate::trace::TraceError;
use crate::trace::formats::job_log;
use crate::trace::formats::openb::{NodeColumn, PodColumn};
use crate::trace::parse::columns::Column;
use crate::trace::parse::lines::Lines;
use crate::trace::parse::{open, split};
use crate::trace::read::TraceFormat;

/// The format of a trace of jobs. An unknown table is taken for the table format, so that its columns are checked against
/// those of that format.
///
/// # Errors
/// When it cannot be read, or is something else than jobs.
pub fn recognise(path: &Path) -> Result<TraceFormat, TraceError> {
    of(path, open(path)?)
}

fn of(file: &Path, input: impl BufRead) -> Result<TraceFormat, TraceError> {
    let mut lines = Lines::new(file, input);
    while let Some((place, text)) = lines.next()? {
        if text.is_empty() {
            continue;
        }
        let not_jobs =
            |what, option| Err(TraceError::NotJobs { file: file.to_owned(), what, option });
        if text.starts_with('{') {
            return not_jobs("a record of availability", "--availability ZONE=FILE");
        }
        if text.starts_with(';') || !text.contains(',') && text.contains(char::is_whitespace) {
            return Ok(TraceFormat::Swf);
        }
        let mut cells = Vec::new();
        split::split(place, &text, &mut cells)?;
        if has::<NodeColumn>(&cells, &[NodeColumn::Name, NodeColumn::Gpus]) {
            return not_jobs("a list of nodes", "--nodes");
        }
        if has::<PodColumn>(&cells, &[PodColumn::Cpu, PodColumn::Share]) {
            return Ok(TraceFormat::Pods);
        }
        if has::<job_log::Column>(&cells, &[job_log::Column::Id, job_log::Column::Submit]) {
            return Ok(TraceFormat::Log);
        }
        break;
    }
    Ok(TraceFormat::Csv)
}

/// Whether a header has all of these columns.
fn has<C: Column>(header: &[String], columns: &[C]) -> bool {
    let there = |column: &C| {
        let found = header.iter().filter_map(|name| C::named(name));
        found.into_iter().any(|(known, _)| known.index() == column.index())
    };
    columns.iter().all(there)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_format_is_recognised_by_its_first_line() {
        let format = |text: &str| of(Path::new("t"), text.as_bytes()).unwrap();
        for (text, expected) in [
            ("; Version: 2.2\n1 2 3", TraceFormat::Swf),
            ("\n  1 0 -1 90 4 -1\n", TraceFormat::Swf),
            ("submit_s,run_s,members\n", TraceFormat::Csv),
            ("job_id,submission_time,duration,num_gpu\n", TraceFormat::Log),
            ("vc,jobid,submitted_time,run_time,gpus\n", TraceFormat::Log),
            ("name,cpu_milli,memory_mib,num_gpu,gpu_milli\n", TraceFormat::Pods),
            ("what,is,this\n", TraceFormat::Csv),
            ("", TraceFormat::Csv),
        ] {
            assert_eq!(format(text), expected, "{text}");
        }
    }

    #[test]
    fn input_that_is_no_trace_of_jobs_is_refused_with_its_option() {
        let refusal = |text: &str| of(Path::new("t"), text.as_bytes()).unwrap_err().to_string();
        assert_eq!(
            refusal("sn,cpu_milli,memory_mib,gpu,model\n"),
            "t: this is a list of nodes, not a trace of jobs: give it with --nodes"
        );
        assert_eq!(
            refusal("{\"metadata\": {}}"),
            "t: this is a record of availability, not a trace of jobs: give it with --availability ZONE=FILE"
        );
    }
}
