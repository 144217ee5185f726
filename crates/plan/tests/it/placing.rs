//! x
use insta::assert_snapshot;
use crate::dsl::check;
#[test]
fn a() {
    assert_snapshot!(check(r"
        node a[1..4] gpus=8 zone=a rack=r1
        node c1
        pool p : zone=a price=10 ; zone=b price=12
        gang train 1x50cpu+3x8gpu
        gang big 4x8gpu
    "), @"");
}
