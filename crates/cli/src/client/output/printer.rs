//! Prints objects in the format of `-o`.

use clap::ValueEnum;
use muster_server::Kind;
use serde_json::Value;

use crate::client::follow::view::name_of;
use crate::client::output::age;
use crate::client::output::kinds::word;
use crate::client::output::table::Table;
use crate::{stdout, yaml};

/// The output format of objects.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
pub(crate) enum Output {
    /// Columns
    #[default]
    Table,
    /// More columns
    Wide,
    /// The whole objects
    Json,
    /// The whole objects
    Yaml,
    /// Kinds and names only
    Name,
}

/// The output format of answers that are not objects.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
pub(crate) enum Answer {
    /// For people
    #[default]
    Text,
    /// The whole answer
    Json,
}

/// Prints objects, one after the other as they arrive.
pub(crate) struct Printer {
    kind: Kind,
    output: Output,
    table: Table,
}

impl Printer {
    pub(crate) fn new(kind: Kind, output: Output, namespaces: bool) -> Self {
        Self { kind, output, table: Table::new(kind, output == Output::Wide, namespaces) }
    }

    /// Prints objects after the earlier ones: as rows, documents or lines, so that a stream of them can be parsed.
    pub(crate) fn rows<'a>(&mut self, objects: impl IntoIterator<Item = &'a Value>) {
        let objects = objects.into_iter();
        match self.output {
            Output::Json => objects.for_each(stdout::line),
            Output::Yaml => objects.map(yaml::document).for_each(|document| {
                stdout::write(&format!("---\n{document}"));
            }),
            Output::Name => objects.for_each(|object| stdout::line(self.name(object))),
            Output::Table | Output::Wide => {
                let mut objects = objects.peekable();
                if objects.peek().is_some() {
                    self.table.lines(objects, age::now()).iter().for_each(stdout::line);
                }
            }
        }
    }

    /// Prints a whole list.
    pub(crate) fn list(&mut self, items: &[Value]) {
        match self.output {
            Output::Json => {
                let list = serde_json::json!({"kind": "List", "items": items});
                stdout::line(format_args!("{list:#}"));
            }
            Output::Yaml | Output::Name | Output::Table | Output::Wide => self.rows(items),
        }
    }

    /// Prints a single object.
    pub(crate) fn only(&mut self, object: &Value) {
        match self.output {
            Output::Json => stdout::line(format_args!("{object:#}")),
            Output::Yaml => stdout::write(&yaml::document(object)),
            Output::Name | Output::Table | Output::Wide => self.rows([object]),
        }
    }

    /// Reports that an object was removed.
    pub(crate) fn gone(&self, name: &str) {
        match self.output {
            Output::Json => {
                stdout::line(serde_json::json!({"kind": "Gone", "of": self.kind, "name": name}));
            }
            Output::Yaml => stdout::line(format_args!("---\n# {} {name} is gone", word(self.kind))),
            Output::Name | Output::Table | Output::Wide => {
                eprintln!("{} {name} is gone", word(self.kind));
            }
        }
    }

    fn name(&self, object: &Value) -> String {
        // The full name of a gang contains a slash already.
        format!("{}/{}", word(self.kind), name_of(self.kind, object))
    }
}
