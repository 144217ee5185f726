//! Reads files of foreign manifests.

use muster_api::foreign;

#[test]
fn documents_become_json_values() {
    let text = "kind: A\nn: 4\nf: 1.5\nyes: true\ntext: '4'\nbig: 18446744073709551615\nodd: .nan\nempty:\n---\n---\n- a\n- {b: c}\n";
    let objects = foreign("x.yaml", text).unwrap();
    assert_eq!(objects.len(), 2);
    insta::assert_snapshot!(objects[0].to_string(), @r#"{"big":18446744073709551615,"empty":null,"f":1.5,"kind":"A","n":4,"odd":".nan","text":"4","yes":true}"#);
    insta::assert_snapshot!(objects[1].to_string(), @r#"["a",{"b":"c"}]"#);
}

#[test]
fn invalid_yaml_is_reported_with_its_line() {
    let errors = |text: &str| {
        let found = foreign("x.yaml", text).unwrap_err();
        found.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    };
    insta::assert_snapshot!(errors("a: 1\na: 2\n"), @"x.yaml:2:1: a: is given twice");
    insta::assert_snapshot!(errors("a: *b\n"), @"x.yaml:1:4: (file): not valid YAML: while parsing node, found unknown anchor");
}
