//! Jobs by size.

use crate::report::demand::Demand;
use crate::report::job::JobRun;
use crate::report::stats::quantile::Five;

/// Jobs whose minimum capacity is in this range.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct SizeClass {
    /// The least capacity in it, in thousandths.
    pub least: u64,
    /// The most capacity in it, in thousandths.
    pub most: u64,
}

/// Beyond this many classes neighbours are merged.
const CLASSES_MAX: usize = 10;

/// The classes that have jobs, small ones first, and the class of each job.
pub(crate) fn classes(asked: &[Demand]) -> (Vec<SizeClass>, Vec<usize>) {
    for doublings in 1.. {
        let of_job: Vec<SizeClass> = asked.iter().map(|job| class(job.least, doublings)).collect();
        let mut classes = of_job.clone();
        classes.sort_unstable();
        classes.dedup();
        if classes.len() <= CLASSES_MAX || doublings == 8 {
            let place = |class: &SizeClass| classes.binary_search(class).expect("listed above");
            let places = of_job.iter().map(place).collect();
            return (classes, places);
        }
    }
    unreachable!("the loop ends after eight rounds")
}

/// The class of a size: nothing, part of one, one, and from there on powers of two, so many to a class.
fn class(size: u64, doublings: u32) -> SizeClass {
    match size {
        0 => SizeClass { least: 0, most: 0 },
        1..1_000 => SizeClass { least: 1, most: 999 },
        1_000 => SizeClass { least: 1_000, most: 1_000 },
        _ => {
            let exponent = size.div_ceil(1_000).next_power_of_two().ilog2();
            let below = (exponent - 1) / doublings * doublings;
            SizeClass { least: (1_000 << below) + 1, most: 1_000 << (below + doublings) }
        }
    }
}

/// The waits of each class, in seconds.
pub(crate) fn waits(lives: &[JobRun], classes: usize, of_job: &[usize]) -> Vec<Option<Five>> {
    let mut waits = vec![Vec::new(); classes];
    for (life, class) in lives.iter().zip(of_job) {
        waits[*class].extend(life.wait_s());
    }
    waits.into_iter().map(Five::of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn size_classes_are_powers_of_two() {
        let ends = |size, doublings| {
            let SizeClass { least, most } = class(size, doublings);
            assert!(least <= size && size <= most, "{size}");
            (least, most)
        };
        assert_eq!(ends(0, 1), (0, 0));
        assert_eq!(ends(500, 1), (1, 999));
        assert_eq!(ends(1_000, 1), (1_000, 1_000));
        assert_eq!(ends(1_500, 1), (1_001, 2_000));
        assert_eq!(ends(8_000, 1), (4_001, 8_000));
        assert_eq!(ends(8_001, 1), (8_001, 16_000));
        assert_eq!(ends(2_000, 2), (1_001, 4_000));
        assert_eq!(ends(16_000, 2), (4_001, 16_000));
    }
}
