//! Stock levels: the sizes a pool may have, every size up to 16 nodes, then in steps of about a seventh.
//!
//! Curves over pool sizes are kept at these levels only, which makes them short enough to be computed for every five
//! minutes of a year. A need between two levels counts as the larger.

/// How many levels there are.
pub(crate) const COUNT: usize = 47;

/// The levels, ascending from zero.
pub(crate) const LEVELS: [u32; COUNT] = levels();

/// One number per level.
pub(crate) type PerLevel = [f64; COUNT];

const fn levels() -> [u32; COUNT] {
    let mut levels = [0; COUNT];
    let mut i = 1;
    while i < COUNT {
        let last: u32 = levels[i - 1];
        levels[i] = if last < 16 { last + 1 } else { last + last.div_ceil(7) };
        i += 1;
    }
    levels
}

/// The lowest level that holds this many nodes; `None` if no pool does.
pub(crate) fn holding(nodes: u32) -> Option<usize> {
    let level = LEVELS.partition_point(|&level| level < nodes);
    (level < COUNT).then_some(level)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_need_maps_to_the_smallest_level_that_holds_it() {
        assert_eq!(LEVELS[..4], [0, 1, 2, 3]);
        assert!(LEVELS.is_sorted_by(|a, b| a < b));
        assert!(LEVELS[COUNT - 1] >= 1_000, "{LEVELS:?}");
        for nodes in 0..=LEVELS[COUNT - 1] {
            let level = holding(nodes).unwrap();
            assert!(LEVELS[level] >= nodes && (level == 0 || LEVELS[level - 1] < nodes));
        }
        assert_eq!(holding(LEVELS[COUNT - 1] + 1), None);
    }
}
