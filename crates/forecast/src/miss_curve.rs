//! What a pool of each size would miss, and which size is worth its price.
//!
//! The r-th free node is worth the gangs it turns from misses into hits. Because gangs are all or nothing, that value
//! does not fall steadily with r: eight nodes may be worth nothing and the ninth a great deal. So sizes are compared
//! along the lower convex hull of the curve, where a step to the next corner is the best purchase there is.

use crate::level::{COUNT, LEVELS, PerLevel};

/// Gangs missed per second, for the pool sizes worth having.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct MissCurve {
    /// Corners of the hull: level, and gangs missed per second.
    hull: Vec<(usize, f64)>,
}

impl MissCurve {
    /// From the gangs per second that will need each level.
    pub(crate) fn of(gangs: &PerLevel) -> Self {
        // Beyond the neediest gang there is nothing to buy.
        let top = gangs.iter().rposition(|&gangs| gangs > 0.0).unwrap_or(0);
        let mut missed = [0.0; COUNT];
        for i in (0..top).rev() {
            missed[i] = missed[i + 1] + gangs[i + 1];
        }
        let slope =
            |a: (usize, f64), b: (usize, f64)| (a.1 - b.1) / f64::from(LEVELS[b.0] - LEVELS[a.0]);
        let mut hull: Vec<(usize, f64)> = Vec::with_capacity(COUNT);
        for corner in missed.into_iter().enumerate().take(top + 1) {
            while let [.., before, last] = hull[..]
                && slope(before, last) <= slope(last, corner)
            {
                hull.pop();
            }
            hull.push(corner);
        }
        Self { hull }
    }
    /// The pool size at which one node more would not be worth `price`: gangs missed per second, for a node.
    ///
    /// Calls with rising prices get the sizes in one walk; `from` is where the last walk ended.
    fn walk(&self, price: f64, from: &mut usize) -> u32 {
        while *from > 0 {
            let ((above, missed_above), (below, missed_below)) =
                (self.hull[*from], self.hull[*from - 1]);
            let nodes = f64::from(LEVELS[above] - LEVELS[below]);
            if missed_below - missed_above > price * nodes {
                break;
            }
            *from -= 1;
        }
        LEVELS[self.hull[*from].0]
    }
    /// The pool size worth its price.
    pub(crate) fn size_at_price(&self, price: f64) -> u32 {
        self.walk(price, &mut (self.hull.len() - 1))
    }
    /// The pool size for each of the prices, which must ascend.
    pub(crate) fn sizes_at_prices<'a>(
        &'a self,
        prices: impl Iterator<Item = f64> + 'a,
    ) -> impl Iterator<Item = u32> + 'a {
        let mut from = self.hull.len() - 1;
        prices.map(move |price| self.walk(price, &mut from))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pool_of_eight_is_never_chosen_for_a_gang_of_nine() {
        let mut gangs = [0.0; COUNT];
        gangs[9] = 0.09;
        let miss_curve = MissCurve::of(&gangs);
        assert_eq!(miss_curve.size_at_price(0.0099), 9, "a ninth of it per node is paid");
        assert_eq!(miss_curve.size_at_price(0.0101), 0, "and nothing in between is bought");
    }

    #[test]
    fn higher_prices_give_smaller_pools() {
        let gangs = std::array::from_fn(|i| 1.0 / (1.0 + i as f64));
        let miss_curve = MissCurve::of(&gangs);
        let prices: Vec<f64> = (0..40).map(|i| f64::from(i) * 0.03).collect();
        let sizes: Vec<u32> = miss_curve.sizes_at_prices(prices.iter().copied()).collect();
        assert!(sizes.is_sorted_by(|a, b| a >= b), "{sizes:?}");
        for (size, price) in sizes.iter().zip(prices) {
            assert_eq!(*size, miss_curve.size_at_price(price));
        }
    }
}
