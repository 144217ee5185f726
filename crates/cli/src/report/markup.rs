//! An HTML writer whose tags are always closed and whose text is always escaped. There is no other way to write into a
//! page, so no name of a queue, user or policy can become part of its markup.

use std::fmt::{self, Display, Write};

/// A page, or a part of one, as it grows.
#[derive(Debug, Default)]
pub(crate) struct Markup(String);

/// A tag whose attributes are being written.
#[must_use = "a tag is complete only with its content"]
#[derive(Debug)]
pub(crate) struct Tag<'a> {
    markup: &'a mut Markup,
    name: &'static str,
}

impl Markup {
    /// Opens a tag.
    pub(crate) fn tag(&mut self, name: &'static str) -> Tag<'_> {
        self.0.push('<');
        self.0.push_str(name);
        Tag { markup: self, name }
    }

    /// Opens a tag of a class.
    pub(crate) fn classed(&mut self, name: &'static str, class: impl Display) -> Tag<'_> {
        self.tag(name).attr("class", class)
    }

    /// Adds text, escaped.
    pub(crate) fn text(&mut self, text: impl Display) {
        write!(Escaped(&mut self.0), "{text}").expect("a string takes everything");
    }

    /// The text of the page.
    pub(crate) fn into_string(self) -> String {
        self.0
    }
}

impl Tag<'_> {
    /// Adds an attribute, its value escaped.
    pub(crate) fn attr(self, name: &'static str, value: impl Display) -> Self {
        self.markup.0.push(' ');
        self.markup.0.push_str(name);
        self.markup.0.push_str("=\"");
        self.markup.text(value);
        self.markup.0.push('"');
        self
    }

    /// Closes a tag that has no content.
    pub(crate) fn empty(self) {
        self.markup.0.push_str("/>");
    }

    /// Fills the tag with text, escaped, and closes it.
    pub(crate) fn text(self, text: impl Display) {
        self.with(|markup| markup.text(text));
    }

    /// Fills the tag with more tags and closes it.
    pub(crate) fn with(self, content: impl FnOnce(&mut Markup)) {
        let Self { markup, name } = self;
        markup.0.push('>');
        content(markup);
        markup.0.push_str("</");
        markup.0.push_str(name);
        markup.0.push('>');
    }

    /// Fills the tag with a constant of this program, unescaped, and closes it.
    pub(crate) fn verbatim(self, ours: &'static str) {
        self.with(|markup| markup.0.push_str(ours));
    }
}

struct Escaped<'a>(&'a mut String);

impl fmt::Write for Escaped<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for c in text.chars() {
            match c {
                '&' => self.0.push_str("&amp;"),
                '<' => self.0.push_str("&lt;"),
                '>' => self.0.push_str("&gt;"),
                '"' => self.0.push_str("&quot;"),
                '\'' => self.0.push_str("&#39;"),
                // Control characters are not text; some are not allowed in HTML.
                c if c.is_control() => self.0.push('\u{fffd}'),
                c => self.0.push(c),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_and_no_attribute_can_become_markup() {
        let evil = "</td><script>'\"&\0";
        let mut markup = Markup::default();
        markup.classed("td", evil).text(evil);
        let safe = "&lt;/td&gt;&lt;script&gt;&#39;&quot;&amp;\u{fffd}";
        assert_eq!(markup.into_string(), format!("<td class=\"{safe}\">{safe}</td>"));
    }

    #[test]
    fn tags_are_closed_in_turn() {
        let mut markup = Markup::default();
        markup.tag("p").with(|markup| {
            markup.text("a");
            markup.tag("br").empty();
            markup.tag("b").text(1);
        });
        assert_eq!(markup.into_string(), "<p>a<br/><b>1</b></p>");
    }
}
