//! `svc plugin test --live`: compares the responses of live sites with recorded ones.

use std::collections::BTreeSet;

use command::{Exit, print_lines};
use plugin_host::{
    author::Candidate,
    fixture::{Fixture, Recorded, Response},
};
use serde_json::Value;

use crate::loader::file_name;

/// Reported differences per response; a redesigned page has hundreds.
const MAX_REPORTED: usize = 20;

/// Repeats the requests of all fixtures.
pub(super) async fn run(candidate: &Candidate, only: Option<&str>) -> anyhow::Result<Exit> {
    let mut lines = Vec::new();
    let mut changed = 0;
    for (path, fixture) in candidate.fixtures() {
        let Ok(fixture) = fixture else { continue };
        if only.is_some_and(|text| !path.contains(text) && !fixture.name.contains(text)) {
            continue;
        }
        let input = fixture.input.clone();
        let live = candidate.record(fixture.call, input, &fixture.settings).await;
        let found = match &live {
            Ok(live) => compare(fixture, live),
            Err(error) => vec![error.to_string()],
        };
        let verdict = if found.is_empty() { "same   " } else { "CHANGED" };
        lines.push(format!("{verdict}  {}: {}", file_name(path), fixture.name));
        lines.extend(found.iter().map(|difference| format!("         {difference}")));
        changed += usize::from(!found.is_empty());
    }
    lines.push(match changed {
        0 => "the sites answer as they did".to_owned(),
        changed => format!("{changed} changed"),
    });
    print_lines(lines)?;
    Ok(if changed == 0 { Exit::Success } else { Exit::Unfit })
}

/// Differences between recorded and live traffic.
fn compare(recorded: &Fixture, live: &Recorded) -> Vec<String> {
    let mut found = Vec::new();
    let mut left: Vec<_> = live.fixture.exchanges.iter().collect();
    for exchange in &recorded.exchanges {
        let request = &exchange.request;
        let is_same = |it: &&_| {
            let asked: &plugin_host::fixture::Exchange = it;
            asked.request.method == request.method && asked.request.url == request.url
        };
        let Some(at) = left.iter().position(is_same) else {
            found.push(format!("{} {} is not asked for any more", request.method, request.url));
            continue;
        };
        let today = &left.remove(at).response;
        let differences = differences(&exchange.response, today);
        let shown = differences.into_iter().take(MAX_REPORTED);
        found.extend(shown.map(|difference| format!("{} {}: {difference}", request.method, request.url)));
    }
    let new = left
        .iter()
        .map(|exchange| format!("{} {} is new", exchange.request.method, exchange.request.url));
    found.extend(new);
    let (was, is) = (recorded.expect.get("error"), live.fixture.expect.get("error"));
    if was != is {
        let shown = |code: Option<&Value>| code.and_then(Value::as_str).unwrap_or("a result").to_owned();
        found.push(format!("the call gives {}; it gave {}", shown(is), shown(was)));
    }
    found
}

/// Differences of a response: its status, and parts of its shape that are missing.
fn differences(was: &Response, is: &Response) -> Vec<String> {
    let mut found = Vec::new();
    if was.status != is.status {
        found.push(format!("status {}; it was {}", is.status, was.status));
    }
    let kind = |response: &Response| {
        let kind = response
            .headers
            .get("content-type")
            .map(String::as_str)
            .unwrap_or_default();
        kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
    };
    if !kind(was).is_empty() && kind(was) != kind(is) {
        found.push(format!("content-type {:?}; it was {:?}", kind(is), kind(was)));
    }
    let (now, before) = (shape(is.body()), shape(was.body()));
    found.extend(before.difference(&now).map(|gone| format!("{gone} is gone")));
    found
}

/// What a plugin can look for in a body: JSON pointers with types, elements and classes of HTML.
fn shape(body: &[u8]) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    if let Ok(value) = serde_json::from_slice(body) {
        pointers(&value, "", &mut found);
    } else if let Ok(text) = std::str::from_utf8(body) {
        selectors(text, &mut found);
    }
    found
}

/// Elements of a list are merged: their number is not part of the shape.
fn pointers(value: &Value, at: &str, found: &mut BTreeSet<String>) {
    let kind = match value {
        Value::Null => return,
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(elements) => {
            for element in elements {
                pointers(element, &format!("{at}/*"), found);
            }
            "array"
        }
        Value::Object(fields) => {
            for (key, field) in fields {
                let key = key.replace('~', "~0").replace('/', "~1");
                pointers(field, &format!("{at}/{key}"), found);
            }
            "object"
        }
    };
    found.insert(format!("{} ({kind})", if at.is_empty() { "/" } else { at }));
}

/// `tag`, `tag#id` and `tag.class` of every element. Parsed loosely, because it is only compared with itself.
fn selectors(text: &str, found: &mut BTreeSet<String>) {
    for tag in text.split('<').skip(1) {
        let inside = tag.split('>').next().unwrap_or_default();
        let name: String = inside.chars().take_while(char::is_ascii_alphanumeric).collect();
        if name.is_empty() {
            continue;
        }
        let name = name.to_ascii_lowercase();
        let classes = attribute(inside, "class").unwrap_or_default();
        found.extend(classes.split_ascii_whitespace().map(|class| format!("{name}.{class}")));
        found.extend(attribute(inside, "id").map(|id| format!("{name}#{id}")));
        found.insert(name);
    }
}

fn attribute<'t>(tag: &'t str, name: &str) -> Option<&'t str> {
    let (_, rest) = tag.split_once(&format!(" {name}="))?;
    match rest.chars().next()? {
        quote @ ('"' | '\'') => rest[1..].split(quote).next(),
        _ => rest.split_ascii_whitespace().next(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn check(was: &str, is: &str, expected: &[&str]) {
        let response = |body: &str| Response::new(200, BTreeMap::new(), body.as_bytes().to_vec());
        assert_eq!(differences(&response(was), &response(is)), expected, "{is}");
    }

    #[test]
    fn missing_parts_are_reported_and_new_ones_are_not() {
        let json = r#"{"title": "a", "files": [{"id": 1, "name": "x"}]}"#;
        check(
            json,
            r#"{"title": "b", "files": [{"id": 2, "name": "y", "more": 1}, {"id": 3}]}"#,
            &[],
        );
        check(
            json,
            r#"{"title": 5, "files": [{"id": 1}]}"#,
            &["/files/*/name (string) is gone", "/title (string) is gone"],
        );
        let html = "<div class=\"list big\"><a id=x href='/'>a</a></div>";
        check(html, "<p><div class='big list'><a id='x'>b</a></div>", &[]);
        check(
            html,
            "<div class=big><a>b</a></div>",
            &["a#x is gone", "div.list is gone"],
        );
    }

    #[test]
    fn another_status_and_kind_is_reported() {
        let html = BTreeMap::from([("content-type".to_owned(), "text/html; charset=utf-8".to_owned())]);
        let json = BTreeMap::from([("content-type".to_owned(), "application/json".to_owned())]);
        let found = differences(&Response::new(200, json, vec![]), &Response::new(404, html, vec![]));
        assert_eq!(
            found,
            [
                "status 404; it was 200",
                "content-type \"text/html\"; it was \"application/json\""
            ]
        );
    }
}
