//! Gangs that run with fewer members than their owners now ask for.

use insta::assert_snapshot;

use crate::dsl::check;

#[test]
fn rigid_gang_made_larger_grows_when_all_of_it_fits_and_gets_no_part() {
    assert_snapshot!(check("
        node a[1..3] gpus=8
        gang train 2x8gpu for=10h
        plan
        started train
        change train 4x8gpu for=10h
        plan
        node a4 gpus=8
        plan
        resized train
        look train
    "), @"
    admit train: a1[0-7] a2[0-7]
    train runs
    resize train from 2 to 4: a1[0-7] a2[0-7] a3[0-7] a4[0-7]
    train has 4 members, 0s done, 10h left, 0 restarts, 0 evictions
    ");
}

#[test]
fn gang_made_larger_does_not_take_what_is_kept_for_others() {
    assert_snapshot!(check("
        node a[1..4] gpus=8
        gang train 2x8gpu for=10h
        plan
        started train
        change train 4x8gpu for=10h
        gang next 1x8gpu for=1h
        plan
    "), @"
    admit train: a1[0-7] a2[0-7]
    admit next: a3[0-7]
    train runs
    ");
}
