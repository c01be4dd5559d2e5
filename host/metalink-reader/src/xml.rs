//! A bounded XML parser that builds trees for XML-RPC and Metalink. Pure: no custom entities, limited depth and size.

use quick_xml::{
    Reader, XmlVersion,
    events::{BytesStart, Event},
};

/// A `system.multicall` with list options nests about twenty elements.
const MAX_DEPTH: usize = 64;

/// Memory of a document's elements without their texts. A call for ten thousand downloads needs less.
const MAX_TREE_BYTES: usize = 32 * 1024 * 1024;

/// Attributes read per element; both formats define fewer.
const MAX_ATTRIBUTES: usize = 16;

/// Estimated memory of an element: its name and the overhead of its text.
const ELEMENT_BYTES: usize = size_of::<Element>() + 48;

/// The document is invalid or exceeds a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotXml;

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
        let mut reader = Reader::from_str(text);
        // The document node, whose only child is the root.
        let mut open = vec![Self::default()];
        let mut left = MAX_TREE_BYTES;
        loop {
            match reader.read_event().map_err(|_| NotXml)? {
                Event::Start(tag) => {
                    left = left.checked_sub(ELEMENT_BYTES).ok_or(NotXml)?;
                    if open.len() > MAX_DEPTH {
                        return Err(NotXml);
                    }
                    open.push(Self::begin(&tag)?);
                }
                Event::Empty(tag) => {
                    left = left.checked_sub(ELEMENT_BYTES).ok_or(NotXml)?;
                    let element = Self::begin(&tag)?;
                    open.last_mut().ok_or(NotXml)?.children.push(element);
                }
                Event::End(_) => {
                    let mut element = open.pop().ok_or(NotXml)?;
                    // Vectors grow by doubling, and most have one item.
                    element.children.shrink_to_fit();
                    open.last_mut().ok_or(NotXml)?.children.push(element);
                }
                Event::Text(text) => open.last_mut().ok_or(NotXml)?.text.push_str(&text.xml10_content()),
                Event::CData(text) => open.last_mut().ok_or(NotXml)?.text.push_str(&text.xml10_content()),
                Event::GeneralRef(reference) => {
                    let char = match reference.resolve_char_ref().map_err(|_| NotXml)? {
                        Some(char) => char,
                        None => named(&reference.xml10_content()).ok_or(NotXml)?,
                    };
                    open.last_mut().ok_or(NotXml)?.text.push(char);
                }
                Event::DocType(_) => return Err(NotXml),
                Event::Decl(_) | Event::PI(_) | Event::Comment(_) => {}
                Event::Eof => break,
            }
        }
        let document = open.pop().filter(|_| open.is_empty()).ok_or(NotXml)?;
        let mut roots = document.children.into_iter();
        match (roots.next(), roots.next()) {
            (Some(root), None) if document.text.trim().is_empty() => Ok(root),
            _ => Err(NotXml),
        }
    }

    fn begin(tag: &BytesStart<'_>) -> Result<Self, NotXml> {
        let mut element = Self {
            name: tag.local_name().as_ref().to_owned(),
            ..Self::default()
        };
        for attribute in tag.attributes().take(MAX_ATTRIBUTES) {
            let attribute = attribute.map_err(|_| NotXml)?;
            let value = attribute
                .normalized_value(XmlVersion::Implicit1_0)
                .map_err(|_| NotXml)?;
            let name = attribute.key.local_name().as_ref().to_owned();
            element.attributes.push((name, value.into_owned()));
        }
        Ok(element)
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

    proptest! {
        #[test]
        fn no_document_makes_the_reader_panic(text in "[<>/a-c&;!\\[\\]=\"'#x0-9 \\-?]{0,60}", any in ".{0,60}") {
            let _any = (Element::read(&text), Element::read(&any));
        }
    }
}
