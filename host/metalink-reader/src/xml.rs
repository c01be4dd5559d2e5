//! A bounded XML parser: events ([`Events`]) for XML-RPC, and trees ([`Element`]) for Metalink. Pure: no custom
//! entities, limited depth, and limited size of trees.

use std::borrow::Cow;

use quick_xml::{
    Reader, XmlVersion,
    events::{BytesStart, Event as Parsed},
};

/// A `system.multicall` with list options nests about twenty elements.
const MAX_DEPTH: usize = 64;

/// Memory of a tree's elements without their texts. A document of the most files and mirrors needs less.
const MAX_TREE_BYTES: usize = 32 * 1024 * 1024;

/// Attributes read per element; Metalink defines fewer.
const MAX_ATTRIBUTES: usize = 16;

/// Estimated memory of an element: its name and the overhead of its text.
const ELEMENT_BYTES: usize = size_of::<Element>() + 48;

/// The document is invalid or exceeds a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotXml;

/// The tag that begins an element.
#[derive(Debug)]
pub struct Start<'t>(BytesStart<'t>);

impl Start<'_> {
    /// The element's name without its namespace prefix.
    #[must_use]
    pub fn name(&self) -> &str {
        self.0.local_name().into_inner()
    }

    fn attributes(&self) -> Result<Vec<(String, String)>, NotXml> {
        let attributes = self.0.attributes().take(MAX_ATTRIBUTES).map(|attribute| {
            let attribute = attribute.map_err(|_| NotXml)?;
            let value = attribute
                .normalized_value(XmlVersion::Implicit1_0)
                .map_err(|_| NotXml)?;
            Ok((attribute.key.local_name().as_ref().to_owned(), value.into_owned()))
        });
        attributes.collect()
    }
}

/// A part of a document.
#[derive(Debug)]
pub enum Event<'t> {
    /// An element begins. An empty-element tag is a beginning and an end.
    Start(Start<'t>),
    /// The innermost open element ends.
    End,
    /// Text of the innermost open element; adjacent text may come as several events.
    Text(Cow<'t, str>),
    /// The document is complete.
    Eof,
}

/// Reads a document event by event, in memory that does not depend on its size.
#[derive(Debug)]
pub struct Events<'t> {
    reader: Reader<&'t [u8]>,
    depth: usize,
    has_root: bool,
}

impl<'t> Events<'t> {
    /// The events of a document.
    #[must_use]
    pub fn of(text: &'t str) -> Self {
        let mut reader = Reader::from_str(text);
        reader.config_mut().expand_empty_elements = true;
        Self {
            reader,
            depth: 0,
            has_root: false,
        }
    }

    /// The next event.
    ///
    /// # Errors
    ///
    /// If the text up to it is not the beginning of one well-formed document, or nests too deeply.
    pub fn read(&mut self) -> Result<Event<'t>, NotXml> {
        loop {
            let text = match self.reader.read_event().map_err(|_| NotXml)? {
                Parsed::Start(tag) => {
                    if self.depth >= MAX_DEPTH || self.depth == 0 && self.has_root {
                        return Err(NotXml);
                    }
                    self.depth += 1;
                    self.has_root = true;
                    return Ok(Event::Start(Start(tag)));
                }
                Parsed::End(_) => {
                    self.depth = self.depth.checked_sub(1).ok_or(NotXml)?;
                    return Ok(Event::End);
                }
                Parsed::Eof if self.depth == 0 && self.has_root => return Ok(Event::Eof),
                Parsed::Text(text) => text.xml10_content(),
                Parsed::CData(text) => text.xml10_content(),
                Parsed::GeneralRef(reference) => {
                    let char = match reference.resolve_char_ref().map_err(|_| NotXml)? {
                        Some(char) => char,
                        None => named(&reference.xml10_content()).ok_or(NotXml)?,
                    };
                    char.to_string().into()
                }
                // The reader makes empty elements start and end events.
                Parsed::DocType(_) | Parsed::Empty(_) | Parsed::Eof => return Err(NotXml),
                Parsed::Decl(_) | Parsed::PI(_) | Parsed::Comment(_) => continue,
            };
            if self.depth > 0 {
                return Ok(Event::Text(text));
            }
            if !text.trim().is_empty() {
                return Err(NotXml);
            }
        }
    }

    /// The next child of the innermost open element; its other text is skipped. `None` where that element ends.
    ///
    /// # Errors
    ///
    /// As [`Self::read`].
    pub fn child(&mut self) -> Result<Option<Start<'t>>, NotXml> {
        loop {
            match self.read()? {
                Event::Start(tag) => return Ok(Some(tag)),
                Event::Text(_) => {}
                Event::End | Event::Eof => return Ok(None),
            }
        }
    }

    /// Skips the rest of the innermost open element.
    ///
    /// # Errors
    ///
    /// As [`Self::read`].
    pub fn skip(&mut self) -> Result<(), NotXml> {
        let depth = self.depth;
        while self.depth >= depth && !matches!(self.read()?, Event::Eof) {}
        Ok(())
    }

    /// The text of the innermost open element up to its end, without that of its children.
    ///
    /// # Errors
    ///
    /// As [`Self::read`].
    pub fn text(&mut self) -> Result<Cow<'t, str>, NotXml> {
        let mut whole = Cow::Borrowed("");
        loop {
            match self.read()? {
                Event::Text(text) if whole.is_empty() => whole = text,
                Event::Text(text) => whole.to_mut().push_str(&text),
                Event::Start(_) => self.skip()?,
                Event::End | Event::Eof => return Ok(whole),
            }
        }
    }
}

/// An element with everything in it. Names have no namespace prefix.
#[derive(Debug, Default, PartialEq)]
pub struct Element {
    /// Its name.
    pub name: String,
    /// Its attributes, in order.
    pub attributes: Vec<(String, String)>,
    /// Its own text, without that of children.
    pub text: String,
    /// Its elements, in order.
    pub children: Vec<Element>,
}

impl Element {
    /// Reads a document: its root.
    pub fn read(text: &str) -> Result<Self, NotXml> {
        let mut events = Events::of(text);
        // The document node, whose only child is the root.
        let mut open = vec![Self::default()];
        let mut left = MAX_TREE_BYTES;
        loop {
            match events.read()? {
                Event::Start(tag) => {
                    left = left.checked_sub(ELEMENT_BYTES).ok_or(NotXml)?;
                    open.push(Self {
                        name: tag.name().to_owned(),
                        attributes: tag.attributes()?,
                        ..Self::default()
                    });
                }
                Event::End => {
                    let mut element = open.pop().ok_or(NotXml)?;
                    // Vectors grow by doubling, and most have one item.
                    element.children.shrink_to_fit();
                    open.last_mut().ok_or(NotXml)?.children.push(element);
                }
                Event::Text(text) => open.last_mut().ok_or(NotXml)?.text.push_str(&text),
                Event::Eof => {
                    return open
                        .pop()
                        .and_then(|document| document.children.into_iter().next())
                        .ok_or(NotXml);
                }
            }
        }
    }

    /// The first child of this name.
    pub fn child(&self, name: &str) -> Option<&Self> {
        self.children(name).next()
    }

    /// The children of this name, in order.
    pub fn children(&self, name: &str) -> impl Iterator<Item = &Self> {
        self.children.iter().filter(move |child| child.name == name)
    }

    /// The value of an attribute.
    pub fn attribute(&self, name: &str) -> Option<&str> {
        let mut found = self.attributes.iter().filter(|(key, _)| key == name);
        found.next().map(|(_, value)| value.as_str())
    }
}

/// The predefined entities.
fn named(name: &str) -> Option<char> {
    Some(match name {
        "lt" => '<',
        "gt" => '>',
        "amp" => '&',
        "quot" => '"',
        "apos" => '\'',
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_document_is_read_with_its_text_attributes_and_order() {
        let root =
            Element::read("<?xml version='1.0'?><!-- c --><x:a q='1&lt;2'>t&#65;&amp;<b/><![CDATA[<]]><c>d</c></x:a>")
                .unwrap();
        assert_eq!((root.name.as_str(), root.text.as_str()), ("a", "tA&<"));
        assert_eq!(root.attribute("q"), Some("1<2"));
        assert_eq!(root.child("c").unwrap().text, "d");
        assert_eq!(root.children[0].name, "b");
    }

    #[test]
    fn what_is_not_one_plain_document_is_refused() {
        for bad in [
            "",
            "x",
            "<a>",
            "<a></b>",
            "<a/><b/>",
            "<a/>x",
            "<a>&x;</a>",
            "<!DOCTYPE a [<!ENTITY x 'y'>]><a>&x;</a>",
            "<a b=c/>",
            &"<a>".repeat(100_000),
            &format!("<a>{}</a>", "<b/>".repeat(MAX_TREE_BYTES / ELEMENT_BYTES)),
        ] {
            assert_eq!(Element::read(bad), Err(NotXml), "{}", &bad[..bad.len().min(60)]);
        }
    }

    #[test]
    fn events_are_read_without_what_is_skipped() {
        let mut events = Events::of("<a>x<b>1<c>2</c>3</b>y<d><e>4</e></d><f>5</f></a>");
        assert_eq!(events.child().unwrap().unwrap().name(), "a");
        assert_eq!(events.child().unwrap().unwrap().name(), "b");
        assert_eq!(events.text().unwrap(), "13");
        assert_eq!(events.child().unwrap().unwrap().name(), "d");
        events.skip().unwrap();
        assert_eq!(events.child().unwrap().unwrap().name(), "f");
        assert_eq!(events.text().unwrap(), "5");
        assert!(events.child().unwrap().is_none());
        assert!(matches!(events.read(), Ok(Event::Eof)));
        // Nothing is open any more, so there is nothing to skip.
        events.skip().unwrap();
    }

    proptest! {
        #[test]
        fn no_document_makes_the_reader_panic(text in "[<>/a-c&;!\\[\\]=\"'#x0-9 \\-?]{0,60}", any in ".{0,60}") {
            let _any = (Element::read(&text), Element::read(&any));
        }
    }
}
