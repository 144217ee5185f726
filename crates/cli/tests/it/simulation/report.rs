//! `muster simulate --report`: one page on several policies.

use std::path::Path;

use crate::muster::{empty_dir, muster_in, write};

/// Two queues, one of them with a tag for a name, and a user whose name would end an attribute.
const TABLE: &str = "\
submit_s,run_s,members,gpus,queue,user,estimate_s
0,600,2,8,research,ada,900
10,300,1,4,<script>alert(1)</script>,ada,300
20,60,4,8,research,eve\" onload=\"x,60
30,30,1,0.5,<script>alert(1)</script>,bob & co,30
40,900,9,8,research,bob & co,900
";

const POLICIES: [&str; 4] = ["--policy", "fifo", "--policy", "easy"];

/// The page for the table with these arguments.
fn page(dir: &Path, args: &[&str]) -> String {
    write(dir, "jobs.csv", TABLE);
    let input = ["simulate", "--csv", "jobs.csv", "--nodes", "4", "--report", "page.html"];
    muster_in(dir, &[&input, args].concat()).exits(0);
    std::fs::read_to_string(dir.join("page.html")).expect("it was written")
}

/// The tags of a page in order, such as `td class="best"`, `/td` or `br/`, without the contents of style and script.
fn tags(page: &str) -> Vec<&str> {
    let (mut tags, mut rest) = (Vec::new(), page);
    while let Some((_, from)) = rest.split_once('<') {
        let (tag, after) = from.split_once('>').expect("every tag ends");
        tags.push(tag);
        rest = match tag {
            "style" => &after[after.find("</style>").expect("it ends")..],
            "script" => &after[after.find("</script>").expect("it ends")..],
            _ => after,
        };
    }
    tags
}

#[test]
fn page_is_self_contained() {
    let page = page(&empty_dir("report-alone"), &POLICIES);
    for outside in
        ["http:", "https:", "url(", "@import", "<link", "<iframe", "<img", "src=", "fetch("]
    {
        assert!(!page.contains(outside), "{outside}");
    }
    assert!(tags(&page).iter().all(|tag| !tag.contains("href=")));
    assert!(
        page.contains("<style>") && page.contains("<svg "),
        "it brings its own looks and figures"
    );
}

#[test]
fn every_tag_is_closed_in_order() {
    let page = page(&empty_dir("report-tags"), &POLICIES);
    let (doctype, html) = page.split_once('\n').expect("lines");
    assert_eq!(doctype, "<!doctype html>");
    let mut open = Vec::new();
    for tag in tags(html).into_iter().filter(|tag| !tag.ends_with('/')) {
        match tag.strip_prefix('/') {
            Some(name) => assert_eq!(open.pop(), Some(name), "inside {open:?}"),
            None => open.push(tag.split(' ').next().expect("a name")),
        }
    }
    assert_eq!(open, [""; 0]);
}

#[test]
fn page_shows_every_policy_and_every_queue() {
    let page = page(&empty_dir("report-places"), &POLICIES);
    for title in [
        "5 jobs on 32 GPUs under fifo and easy",
        "Policies side by side",
        "Queue by queue",
        "Share of jobs that waited no longer than this",
        "Share of jobs that were slowed down no more than this",
        "Wait by how many GPUs a job asks for",
        "GPUs running and waiting under fifo",
        "GPUs running and waiting under easy",
        "Each queue&#39;s share of the capacity used",
        "Mean bounded slowdown of each user",
    ] {
        assert!(page.contains(title), "{title}");
    }
    for row in [">fifo</th>", ">easy</th>", ">research</th>"] {
        assert!(page.contains(row), "{row}");
    }
    assert!(
        page.contains("muster simulate --csv jobs.csv --nodes 4 --report page.html --policy fifo")
    );
    // The job of nine nodes can never start on four.
    assert!(page.contains("not started by the end"));
}

#[test]
fn names_are_escaped_in_the_page() {
    let page = page(&empty_dir("report-names"), &POLICIES);
    assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;"), "the queue is there");
    assert!(!page.contains("<script>alert"), "and is text");
    assert!(!page.contains("onload=\"x"));
    assert_eq!(page.matches("<script>").count(), 1, "its own");
    // With one queue, users are shown by name.
    let dir = empty_dir("report-users");
    let one_queue =
        TABLE.replace("<script>alert(1)</script>", "research").replace("ada", "<script>");
    write(&dir, "users.csv", one_queue);
    let args = ["simulate", "--csv", "users.csv", "--nodes", "4", "--report", "users.html"];
    muster_in(&dir, &args).exits(0);
    let page = std::fs::read_to_string(dir.join("users.html")).expect("it was written");
    assert!(page.contains("&lt;script&gt;") && page.contains("bob &amp; co"));
    assert_eq!(page.matches("<script>").count(), 1, "its own");
}

#[test]
fn same_run_gives_the_same_page() {
    let (once, again) = (empty_dir("report-once"), empty_dir("report-again"));
    assert_eq!(page(&once, &POLICIES), page(&again, &POLICIES));
    assert_ne!(page(&once, &POLICIES), page(&again, &["--policy", "easy"]));
}

#[test]
fn pools_have_costs_and_fixed_nodes_have_none() {
    let dir = empty_dir("report-pools");
    let quickstart = crate::muster::root().join("examples/quickstart.yaml");
    let quickstart = quickstart.to_str().expect("a path in Unicode");
    muster_in(&dir, &["simulate", quickstart, "--report", "page.html"]).exits(0);
    let bought = std::fs::read_to_string(dir.join("page.html")).expect("it was written");
    assert!(bought.contains(">cost</th>") && bought.contains(">rollbacks</th>"));
    assert!(bought.contains("there are no shares to compare"));
    for part in [
        "Bought capacity",
        "Where the GPU-hours bought went",
        "Cost by payer",
        "class=\"part s-running\"",
        ">by pool</th>",
        ">by tier</th>",
        ">by queue</th>",
        ">shared</th>",
        ">a stock-out</th>",
    ] {
        assert!(bought.contains(part), "{part}");
    }
    let fixed = page(&dir, &[]);
    assert!(!fixed.contains(">cost</th>"));
    assert!(!fixed.contains("Bought capacity"));
}

#[test]
fn unwritable_report_is_refused_before_the_simulation() {
    let dir = empty_dir("report-nowhere");
    write(&dir, "jobs.csv", TABLE);
    let args = ["simulate", "--csv", "jobs.csv", "--nodes", "4", "--report", "no/such/dir.html"];
    let refused = muster_in(&dir, &args).exits(2);
    assert_eq!(refused.out, "");
    assert!(refused.err.contains("no/such/dir.html: cannot be written: "), "{}", refused.err);
    let replay = muster_in(&dir, &["simulate", "--replay", "r", "--report", "p"]).exits(2);
    assert!(replay.err.contains("cannot be used with"), "{}", replay.err);
}
