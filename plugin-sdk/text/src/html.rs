//! Elements of a page by CSS selector. The page is read as a stream and never built as a tree: no markup, however
//! broken on purpose, makes it take more memory than its own length.

use std::{cell::RefCell, rc::Rc};

use lol_html::{HtmlRewriter, MemorySettings, Selector, Settings, element, end_tag, errors::RewritingError, text};

use crate::{
    limit::{Allowance, TextError, check_input, check_pattern},
    work::Work,
};

/// The longest selector.
const MAX_SELECTOR_BYTES: usize = 1024;

/// What the parser may keep: its stack of open elements. Real pages need some kilobytes.
const MAX_PARSER_BYTES: usize = 4 * 1024 * 1024;

/// How many open elements cost as much as a step of other searches: a selector looks at all that are around an element.
const ELEMENTS_PER_STEP: usize = 4;

/// How much the parser gets at once.
const PIECE_BYTES: usize = 64 * 1024;

/// An element of a page.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Node {
    /// Its name, lower-case.
    pub tag: String,
    /// All text in it, entities decoded, white space as it stands.
    pub text: String,
    /// The markup in it.
    pub html: String,
    /// Its attributes in their order, entities decoded.
    pub attrs: Vec<(String, String)>,
}

/// The elements of `html` that `css` selects, in the order of their start tags. An element without an end tag reaches
/// to the end of its parent. Selectors look at ancestors and attributes, not at siblings (`+`, `~`) or content.
pub fn select(html: &str, css: &str, work: &mut Work<'_>) -> Result<Vec<Node>, TextError> {
    check_pattern(css, MAX_SELECTOR_BYTES)?;
    check_input(html)?;
    css.parse::<Selector>()
        .map_err(|error| TextError::invalid("selector", error))?;
    let outline = Rc::new(RefCell::new(Outline::default()));
    read(html, css, &outline, work).map_err(|error| match error {
        // What a handler ended the parser with.
        RewritingError::ContentHandlerError(error) => match error.downcast() {
            Ok(error) => *error,
            Err(error) => TextError::invalid("page", error),
        },
        error => TextError::invalid("page", error),
    })?;
    let mut outline = outline.take();
    let mut allowance = std::mem::take(&mut outline.allowance);
    outline
        .found
        .iter()
        .map(|found| outline.node(found, html, &mut allowance))
        .collect()
}

/// Where things are in the page.
#[derive(Default)]
struct Outline {
    /// The selected elements, by their place.
    found: Vec<Found>,
    /// Where the elements begin that have not ended.
    open: Vec<usize>,
    /// The pieces of text.
    texts: Vec<(usize, usize)>,
    /// What is left for the answer.
    allowance: Allowance,
}

struct Found {
    tag: String,
    attributes: Vec<(String, String)>,
    /// Where its start tag begins.
    start: usize,
    /// Where what is in it begins.
    content: usize,
    /// Where its end tag begins, once that is known.
    end: Option<usize>,
}

impl Outline {
    /// The end tag at `at` ends the element that began at `start` and all that is still open in it.
    fn close(&mut self, start: usize, at: usize) {
        while let Some(open) = self.open.pop_if(|open| *open >= start) {
            if let Ok(index) = self.found.binary_search_by_key(&open, |found| found.start) {
                self.found[index].end = Some(at);
            }
        }
    }

    fn node(&self, found: &Found, html: &str, allowance: &mut Allowance) -> Result<Node, TextError> {
        let end = found.end.unwrap_or(html.len());
        let markup = html.get(found.content..end).unwrap_or("");
        allowance.take(markup.len() * 2)?;
        let first = self.texts.partition_point(|(start, _)| *start < found.content);
        let texts = self.texts[first..].iter().take_while(|(start, _)| *start < end);
        let text: String = texts.filter_map(|(start, end)| html.get(*start..*end)).collect();
        Ok(Node {
            tag: found.tag.clone(),
            text: decoded(&text),
            html: markup.to_owned(),
            attrs: found.attributes.clone(),
        })
    }
}

fn read(html: &str, css: &str, outline: &Rc<RefCell<Outline>>, work: &mut Work<'_>) -> Result<(), RewritingError> {
    let (tracked, selected, texts) = (outline.clone(), outline.clone(), outline.clone());
    let track = element!("*", move |element| {
        work.take(1 + tracked.borrow().open.len() / ELEMENTS_PER_STEP)?;
        if element.can_have_content() {
            let start = element.source_location().bytes().start;
            tracked.borrow_mut().open.push(start);
            let tracked = tracked.clone();
            element.on_end_tag(end_tag!(move |end| {
                tracked.borrow_mut().close(start, end.source_location().bytes().start);
                Ok(())
            }))?;
        }
        Ok(())
    });
    let select = element!(css, move |element| {
        let place = element.source_location().bytes();
        let mut outline = selected.borrow_mut();
        let tag = element.tag_name();
        outline.allowance.take(tag.len())?;
        let mut attributes = Vec::new();
        for attribute in element.attributes() {
            let (name, value) = (attribute.name(), decoded(&attribute.value()));
            outline.allowance.take(name.len() + value.len())?;
            attributes.push((name, value));
        }
        outline.found.push(Found {
            tag,
            attributes,
            start: place.start,
            content: place.end,
            end: (!element.can_have_content()).then_some(place.end),
        });
        Ok(())
    });
    let note = text!("*", move |chunk| {
        let place = chunk.source_location().bytes();
        if !place.is_empty() {
            texts.borrow_mut().texts.push((place.start, place.end));
        }
        Ok(())
    });
    let settings = Settings::new()
        .append_element_content_handler(track)
        .append_element_content_handler(select)
        .append_element_content_handler(note)
        .with_strict(false)
        .with_memory_settings(MemorySettings::new().with_max_allowed_memory_usage(MAX_PARSER_BYTES));
    let mut rewriter = HtmlRewriter::new(settings, |_: &[u8]| {});
    // In pieces, so that the parser's own buffer stays small.
    for piece in html.as_bytes().chunks(PIECE_BYTES) {
        rewriter.write(piece)?;
    }
    rewriter.end()
}

fn decoded(text: &str) -> String {
    html_escape::decode_html_entities(text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(html: &str, css: &str) -> Result<Vec<Node>, TextError> {
        select(html, css, &mut Work::default())
    }

    fn texts(html: &str, css: &str) -> Vec<String> {
        all(html, css).unwrap().into_iter().map(|node| node.text).collect()
    }

    #[test]
    fn an_element_comes_with_its_text_markup_and_attributes() {
        let found = all(
            r#"<p>x</p><p CLASS=b title="a &amp; b">1 &lt; <i>2</i></p><br class=b>"#,
            ".b",
        )
        .unwrap();
        assert_eq!(
            found,
            [
                Node {
                    tag: "p".into(),
                    text: "1 < 2".into(),
                    html: "1 &lt; <i>2</i>".into(),
                    attrs: vec![("class".into(), "b".into()), ("title".into(), "a & b".into())],
                },
                Node {
                    tag: "br".into(),
                    attrs: vec![("class".into(), "b".into())],
                    ..Node::default()
                },
            ]
        );
    }

    #[test]
    fn an_element_without_end_tag_ends_with_its_parent() {
        assert_eq!(texts("<ul><li>a</ul>-<ul><li>b</ul>-", "li"), ["a", "b"]);
        assert_eq!(texts("<div>ä<p>b</div>c", "p"), ["b"]);
        assert_eq!(texts("<p>open", "p"), ["open"]);
    }

    #[test]
    fn nested_elements_are_both_found() {
        assert_eq!(texts("<b id=x>1<b>2</b>3</b>4", "b"), ["123", "2"]);
        assert_eq!(
            texts("<table><tr><td><a href='#'>n</a><td>5</table>", "td > a[href]"),
            ["n"]
        );
    }

    #[test]
    fn a_page_made_to_grow_ends_at_a_limit() {
        let nested = "<b>".repeat(1_000_000);
        assert!(all(&nested, "b").is_err());
        let overlapping = format!("{}{}", "<b>".repeat(1000), "x".repeat(1_000_000));
        assert_eq!(all(&overlapping, "b"), Err(TextError::OutputTooLong));
    }

    #[test]
    fn a_page_made_to_be_looked_at_again_and_again_ends_when_its_owner_says_so() {
        // Each element is compared with all that it is in.
        let html = format!("{}{}", "<b>".repeat(20_000), "<i></i>".repeat(400_000));
        let mut asked = 0;
        let mut may_go_on = || {
            asked += 1;
            asked < 3
        };
        let ended = select(&html, "* * * * * * * *", &mut Work::while_true(&mut may_go_on));
        assert_eq!(ended, Err(TextError::Stopped));
        assert_eq!(all(&html, "u * * * * * * *"), Err(TextError::TooMuchWork));
    }

    #[test]
    fn attributes_without_end_are_counted() {
        let html = format!("<a {}>", "b ".repeat(10)).repeat(100_000);
        assert_eq!(all(&html, "a"), Err(TextError::OutputTooLong));
    }

    #[test]
    fn what_is_no_selector_is_refused() {
        assert!(matches!(all("", "a["), Err(TextError::Invalid { .. })));
        assert!(matches!(all("", "a ~ b"), Err(TextError::Invalid { .. })));
    }
}
