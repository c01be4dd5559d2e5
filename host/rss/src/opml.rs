//! Lists of sources as OPML, which other feed readers write and read.

use quick_xml::{
    Reader, Writer,
    events::{BytesDecl, BytesEnd, BytesStart, BytesText, Event},
};

use crate::{
    feed::{FeedError, MAX_DEPTH, MAX_FEED_BYTES, repaired},
    model::source::MAX_SOURCES,
    title::truncate,
};
use protocol::RssSourceDto;

/// The longest name that is read, in bytes.
const MAX_NAME_BYTES: usize = 1024;

/// The sources of a list, each URL once. They download nothing by themselves: a list says nothing of rules.
pub fn read(bytes: &[u8]) -> Result<Vec<RssSourceDto>, FeedError> {
    if bytes.len() > MAX_FEED_BYTES {
        return Err(FeedError::TooLarge);
    }
    let text = repaired(bytes, "")?;
    let mut reader = Reader::from_str(&text);
    let config = reader.config_mut();
    config.check_end_names = false;
    config.allow_unmatched_ends = true;
    let mut sources: Vec<RssSourceDto> = Vec::new();
    let mut urls = std::collections::HashSet::new();
    let (mut is_list, mut depth) = (false, 0_usize);
    loop {
        let event = reader
            .read_event()
            .map_err(|error| FeedError::Broken(error.to_string()))?;
        let tag = match &event {
            Event::Start(tag) => {
                depth += 1;
                tag
            }
            Event::Empty(tag) => tag,
            Event::End(_) => {
                depth = depth.saturating_sub(1);
                continue;
            }
            Event::Eof => break,
            _ => continue,
        };
        if depth > MAX_DEPTH {
            return Err(FeedError::TooDeep);
        }
        let name = tag.name();
        is_list |= name.as_ref().eq_ignore_ascii_case("opml");
        if is_list && name.as_ref().eq_ignore_ascii_case("outline") && sources.len() < MAX_SOURCES {
            sources.extend(source(tag).filter(|source| urls.insert(source.url.clone())));
        }
    }
    is_list.then_some(sources).ok_or(FeedError::NotAFeed)
}

fn source(tag: &BytesStart<'_>) -> Option<RssSourceDto> {
    let (mut url, mut name, mut title) = (String::new(), String::new(), String::new());
    for attribute in tag.attributes().with_checks(false).filter_map(Result::ok) {
        let raw: &str = &attribute.value;
        let value = quick_xml::escape::unescape(raw).unwrap_or(raw.into()).trim().to_owned();
        match attribute.key.as_ref().to_ascii_lowercase().as_str() {
            "xmlurl" => url = value,
            "text" => name = value,
            "title" => title = value,
            _ => {}
        }
    }
    let name = if name.is_empty() { title } else { name };
    let name: String = truncate(&name, MAX_NAME_BYTES)
        .chars()
        .filter(|c| !c.is_control())
        .collect();
    (!url.is_empty()).then(|| RssSourceDto {
        url,
        name,
        auto_download: false,
        ..RssSourceDto::default()
    })
}

/// The list of `sources`: names and URLs, as they are shown.
pub fn write(sources: &[RssSourceDto]) -> String {
    let mut writer = Writer::new_with_indent(Vec::new(), b' ', 2);
    let mut events = vec![
        Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)),
        Event::Start(BytesStart::new("opml").with_attributes([("version", "2.0")])),
        Event::Start(BytesStart::new("head")),
        Event::Start(BytesStart::new("title")),
        Event::Text(BytesText::new("RSS")),
        Event::End(BytesEnd::new("title")),
        Event::End(BytesEnd::new("head")),
        Event::Start(BytesStart::new("body")),
    ];
    events.extend(sources.iter().map(|source| {
        let name = if source.name.is_empty() {
            &source.url
        } else {
            &source.name
        };
        let attributes = [
            ("type", "rss"),
            ("text", name.as_str()),
            ("xmlUrl", source.url.as_str()),
        ];
        Event::Empty(BytesStart::new("outline").with_attributes(attributes))
    }));
    events.extend([Event::End(BytesEnd::new("body")), Event::End(BytesEnd::new("opml"))]);
    for event in events {
        writer.write_event(event).expect("writing to memory does not fail");
    }
    String::from_utf8(writer.into_inner()).expect("the writer was given text")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_that_was_written_is_read_again() {
        let named = |url: &str, name: &str| RssSourceDto {
            url: url.to_owned(),
            name: name.to_owned(),
            auto_download: false,
            ..RssSourceDto::default()
        };
        let sources = [
            named("https://a.example/feed?x=1&y=2", "A & <b> \"q\""),
            named("https://b.example/", "日本語"),
        ];
        assert_eq!(read(write(&sources).as_bytes()).unwrap(), sources);
    }

    #[test]
    fn folders_are_read_through_and_doubles_are_one() {
        let list = br#"<?xml version="1.0"?><OPML version=1.1><body><outline text="News & more"><outline TEXT="A"
            xmlURL="https://a.example/f?a=1&b=2"/><outline text="A again" xmlUrl="https://a.example/f?a=1&amp;b=2"/></outline>
            <outline text="no feed"/></body></OPML>"#;
        let sources = read(list).unwrap();
        assert_eq!(sources.len(), 1);
        assert_eq!(sources[0].url, "https://a.example/f?a=1&b=2");
        assert!(!sources[0].auto_download, "a list confirms nothing");
    }

    #[test]
    fn something_else_is_no_list() {
        assert_eq!(read(b"<rss><channel/></rss>"), Err(FeedError::NotAFeed));
        assert_eq!(read("<opml>".repeat(200).as_bytes()), Err(FeedError::TooDeep));
    }
}
