//! The hint "did you mean `x`?" of findings.

/// The known name nearest to the written one, as a sentence to append; empty if none is near.
pub(crate) fn did_you_mean<'k>(written: &str, known: impl IntoIterator<Item = &'k str>) -> String {
    // A third of the letters wrong is still a typo; more is another word. Long texts are no typos.
    let allowed = (written.chars().count() / 3).min(4);
    if written.len() > 100 {
        return String::new();
    }
    let written = written.to_lowercase();
    let near = known
        .into_iter()
        .map(|name| (distance(&written, &name.to_lowercase()), name))
        .filter(|(distance, _)| *distance <= allowed)
        .min();
    near.map_or_else(String::new, |(_, name)| format!("; did you mean `{name}`?"))
}

/// Names as a sentence lists them: `a`, `b`.
pub(crate) fn listed<'k>(names: impl IntoIterator<Item = &'k str>) -> String {
    names.into_iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// The number of letters to insert, remove, replace or swap with a neighbour to turn one word into the other.
fn distance(from: &str, to: &str) -> usize {
    let (from, to): (Vec<char>, Vec<char>) = (from.chars().collect(), to.chars().collect());
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=to.len()).collect();
    for (i, a) in from.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, b) in to.iter().enumerate() {
            let replace = above[j] + usize::from(a != b);
            let mut best = replace.min(above[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *a == to[j - 1] && from[i - 1] == *b {
                best = best.min(before[j - 1] + 1);
            }
            row.push(best);
        }
        before = std::mem::replace(&mut above, row);
    }
    above[to.len()]
}

#[cfg(test)]
mod tests {
    use crate::yaml::hint::*;

    #[test]
    fn typos_get_a_hint_and_other_words_do_not() {
        for (written, hint) in [
            ("roels", "; did you mean `roles`?"),
            ("Queue", "; did you mean `queue`?"),
            ("prioritty", "; did you mean `priority`?"),
            ("colour", ""),
            ("q", ""),
            ("", ""),
        ] {
            assert_eq!(did_you_mean(written, ["roles", "queue", "priority"]), hint, "{written}");
        }
    }
}
