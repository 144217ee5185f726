//! The gangs of the test: one scenario for every way in which a kill can matter.

/// The life of a gang without faults.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Scenario {
    /// Runs once, with a fixed size.
    Plain,
    /// Grows and shrinks: each resize is a run.
    Elastic,
    /// Fails the first time, and is retried.
    Flaky,
    /// Its keepers are killed; it is retried each time.
    Restarted,
    /// Runs until it is cancelled.
    Cancelled,
    /// Runs until it is deleted.
    Deleted,
}

/// A gang and its scenario.
pub(super) struct TestGang {
    pub(super) number: u64,
    pub(super) scenario: Scenario,
    pub(super) members: u64,
    pub(super) gpus: u64,
    pub(super) seconds: f64,
}

impl TestGang {
    pub(super) fn scenario_of(number: u64) -> Scenario {
        match number % 10 {
            1 => Scenario::Elastic,
            3 => Scenario::Flaky,
            5 => Scenario::Restarted,
            7 => Scenario::Cancelled,
            9 => Scenario::Deleted,
            _ => Scenario::Plain,
        }
    }

    pub(super) fn short(&self) -> String {
        format!("gang-{}", self.number)
    }

    pub(super) fn name(&self) -> String {
        format!("default/{}", self.short())
    }

    pub(super) fn path(&self) -> String {
        format!("/v1/namespaces/default/gangs/{}", self.short())
    }

    /// Members write down their start and the size of the gang, work, and write down their end.
    pub(super) fn manifest(&self, log: &str) -> String {
        let Self { number, members, gpus, .. } = self;
        let (mut bounds, mut more, mut first) =
            (format!("min: {members}"), String::new(), String::new());
        let mut seconds = self.seconds;
        match self.scenario {
            Scenario::Plain => {}
            Scenario::Elastic => bounds = format!("min: 1, max: {}", members + 3),
            Scenario::Flaky => {
                more = "  retries: 1\n".to_owned();
                first = format!(
                    "if [ $RANK = 0 ] && [ ! -e {log}.{number} ]; then touch {log}.{number}; exit 3; fi; "
                );
            }
            Scenario::Restarted => more = "  retries: 1000\n".to_owned(),
            Scenario::Cancelled | Scenario::Deleted => seconds = 3_600.0,
        }
        let say = |what: &str| {
            format!("echo {what} $MUSTER_GANG $MUSTER_RUN $RANK $WORLD_SIZE $(date +%s%N) >> {log}")
        };
        let (start, end) = (say("start"), say("end"));
        format!(
            "
kind: Gang
metadata: {{name: gang-{number}}}
spec:
  user: user-{}
{more}  roles:
  - name: worker
    {}
    resources: {{nvidia.com/gpu: {gpus}, cpu: 1}}
    run: {{command: [sh, -c, '{start}; {first}sleep {seconds}; {end}']}}
  expectedDuration: 1m
",
            number % 3,
            bounds.replace(", ", "\n    ")
        )
    }
}
