//! Bodies of deliveries: the presets' and the user's, as texts with fields in double braces. Pure.
//!
//! Templates of feeds (`{series}`) have single braces, which JSON is full of.

use std::fmt::Write as _;

use protocol::TaskDto;
use transfer::ByteCount;

use crate::{
    event::{EventKind, Occurrence},
    redact::escaped,
};

/// The longest template, in bytes. A chat message with every detail has one or two thousand.
pub const MAX_TEMPLATE_BYTES: usize = 8 * 1024;

/// The longest body, in bytes. Chat services accept less, collectors of logs about this.
pub const MAX_BODY_BYTES: usize = 64 * 1024;

/// Characters of a field's value that are inserted: URLs and errors may be longer than any message.
const MAX_VALUE_CHARS: usize = 2048;

/// A body without a template of the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "a preset is named after its service")]
pub enum Preset {
    Json,
    Discord,
    Slack,
    Telegram,
    Ntfy,
    Gotify,
}

/// How values are written, so that none of them can change the meaning of the text around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Escape {
    /// As the inside of a JSON string.
    Json,
    /// As a value of a form.
    Form,
    /// As they are, on one line.
    Plain,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Field {
    Event,
    Delivery,
    Time,
    Timestamp,
    Summary,
    TaskId,
    FileName,
    Url,
    SaveDir,
    TotalBytes,
    DownloadedBytes,
    ErrorMessage,
    ErrorKind,
    GroupId,
    QueueId,
    QueueName,
}

const FIELDS: [(&str, Field); 16] = [
    ("event", Field::Event),
    ("delivery", Field::Delivery),
    ("time", Field::Time),
    ("timestamp", Field::Timestamp),
    ("summary", Field::Summary),
    ("task.id", Field::TaskId),
    ("task.fileName", Field::FileName),
    ("task.url", Field::Url),
    ("task.saveDir", Field::SaveDir),
    ("task.totalBytes", Field::TotalBytes),
    ("task.downloadedBytes", Field::DownloadedBytes),
    ("task.errorMessage", Field::ErrorMessage),
    ("task.errorKind", Field::ErrorKind),
    ("task.groupId", Field::GroupId),
    ("queue.id", Field::QueueId),
    ("queue.name", Field::QueueName),
];

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Text(String),
    Field(Field),
}

/// A checked template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    parts: Vec<Part>,
    escape: Escape,
}

impl Preset {
    /// Every preset.
    pub const ALL: [Self; 6] = [
        Self::Json,
        Self::Discord,
        Self::Slack,
        Self::Telegram,
        Self::Ntfy,
        Self::Gotify,
    ];

    /// The name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Discord => "discord",
            Self::Slack => "slack",
            Self::Telegram => "telegram",
            Self::Ntfy => "ntfy",
            Self::Gotify => "gotify",
        }
    }

    /// The preset of that name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|preset| preset.name() == name)
    }

    /// The template; `None` is the event with its whole record. File names come from servers, so each of these is a form
    /// of message in which its service reads no mentions and no markup.
    pub fn template(self) -> Option<&'static str> {
        match self {
            Self::Json => None,
            Self::Discord => Some(r#"{"content":"{{summary}}","allowed_mentions":{"parse":[]}}"#),
            Self::Slack => Some(
                r#"{"blocks":[{"type":"section","text":{"type":"plain_text","emoji":false,"text":"{{summary}}"}}]}"#,
            ),
            Self::Telegram => Some(r#"{"text":"{{summary}}","disable_web_page_preview":true}"#),
            Self::Ntfy => Some("{{summary}}"),
            Self::Gotify => Some(r#"{"title":"Svc","message":"{{summary}}","priority":5}"#),
        }
    }

    /// The media type of its bodies.
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Ntfy => "text/plain; charset=utf-8",
            _ => "application/json",
        }
    }
}

impl Escape {
    /// By the media type of the body.
    pub fn of(media_type: &str) -> Self {
        let media_type = media_type.trim().to_ascii_lowercase();
        if media_type.starts_with("application/x-www-form-urlencoded") {
            Self::Form
        } else if media_type.starts_with("text/") {
            Self::Plain
        } else {
            Self::Json
        }
    }

    fn write(self, value: &str, body: &mut String) {
        match self {
            Self::Json => body.push_str(&escaped(value)),
            Self::Form => body.extend(url::form_urlencoded::byte_serialize(value.as_bytes())),
            Self::Plain => body.extend(value.chars().map(|c| if c.is_control() { ' ' } else { c })),
        }
    }
}

impl Template {
    /// Checks a template. One of JSON must be JSON once its fields have values. The error says what is wrong with it.
    pub fn compile(text: &str, escape: Escape) -> Result<Self, String> {
        if text.len() > MAX_TEMPLATE_BYTES {
            return Err(format!(
                "the template has {} bytes; the limit is {MAX_TEMPLATE_BYTES}",
                text.len()
            ));
        }
        let template = Self {
            parts: parts(text)?,
            escape,
        };
        if escape == Escape::Json {
            // With letters in every text, so that a text outside quotation marks is found.
            for kind in [EventKind::TaskFailed, EventKind::TaskCompleted, EventKind::QueueDrained] {
                let body = template.fill(&Occurrence::example(kind, 0), "example");
                if let Err(error) = serde_json::from_str::<serde::de::IgnoredAny>(&body) {
                    return Err(format!(
                        "the template is not JSON once its fields have values (line {}, column {} of the body): \
                         write text fields between quotation marks, or set another Content-Type header",
                        error.line(),
                        error.column()
                    ));
                }
            }
        }
        Ok(template)
    }

    /// The body for an event.
    pub fn fill(&self, occurrence: &Occurrence, delivery: &str) -> String {
        let mut body = String::new();
        for part in &self.parts {
            match part {
                Part::Text(text) => body.push_str(text),
                Part::Field(field) => field.write(occurrence, delivery, self.escape, &mut body),
            }
        }
        body
    }
}

impl Field {
    fn write(self, occurrence: &Occurrence, delivery: &str, escape: Escape, body: &mut String) {
        let task = occurrence.task.as_deref();
        let number = match self {
            Self::Timestamp => Some(u64::try_from(occurrence.at_ms / 1000).unwrap_or(0)),
            Self::TotalBytes => Some(task.map_or(0, |task| task.total_bytes)),
            Self::DownloadedBytes => Some(task.map_or(0, |task| task.downloaded_bytes)),
            _ => None,
        };
        if let Some(number) = number {
            let _a_string_takes_all = write!(body, "{number}");
            return;
        }
        let of_task = |member: fn(&TaskDto) -> &str| task.map_or("", member).to_owned();
        let text = match self {
            Self::Event => occurrence.kind.name().to_owned(),
            Self::Delivery => delivery.to_owned(),
            Self::Time => time(occurrence.at_ms),
            Self::Summary => summary(occurrence),
            Self::TaskId => of_task(|task| &task.task_id),
            Self::FileName => of_task(|task| &task.file_name),
            Self::Url => of_task(|task| &task.url),
            Self::SaveDir => of_task(|task| &task.save_dir),
            Self::ErrorMessage => of_task(|task| &task.error_message),
            Self::ErrorKind => of_task(|task| &task.error_kind),
            Self::GroupId => of_task(|task| &task.group_id),
            Self::QueueId => occurrence.queue.queue_id.clone(),
            Self::QueueName => occurrence.queue.name.clone(),
            Self::Timestamp | Self::TotalBytes | Self::DownloadedBytes => String::new(),
        };
        let value: String = text.chars().take(MAX_VALUE_CHARS).collect();
        escape.write(&value, body);
    }
}

/// As RFC 3339.
pub(crate) fn time(at_ms: i64) -> String {
    let second = at_ms.div_euclid(1000);
    jiff::Timestamp::from_second(second).map_or_else(|_| String::new(), |at| at.to_string())
}

/// What happened, for people.
fn summary(occurrence: &Occurrence) -> String {
    let Some(task) = occurrence.task.as_deref() else {
        let queue = &occurrence.queue;
        let name = if queue.name.is_empty() {
            &queue.queue_id
        } else {
            &queue.name
        };
        return format!("Queue {name} has nothing left to do");
    };
    let verb = match occurrence.kind {
        EventKind::TaskCreated => "Added",
        EventKind::TaskStarted => "Started",
        EventKind::TaskMetaProbed => "Found",
        EventKind::TaskCompleted => "Completed",
        EventKind::TaskFailed => "Failed",
        EventKind::TaskPaused => "Paused",
        EventKind::TaskCancelled => "Cancelled",
        EventKind::QueueDrained => "Drained",
    };
    let mut text = format!("{verb}: {}", task.file_name);
    if task.total_bytes > 0 {
        let _a_string_takes_all = write!(text, " ({})", ByteCount(task.total_bytes));
    }
    if !task.error_message.is_empty() {
        let _a_string_takes_all = write!(text, ": {}", task.error_message);
    }
    text
}

fn parts(text: &str) -> Result<Vec<Part>, String> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once("{{") {
        let (name, after) = behind.split_once("}}").ok_or("a {{ of the template has no }}")?;
        if !before.is_empty() {
            parts.push(Part::Text(before.to_owned()));
        }
        let name = name.trim();
        let Some((_, field)) = FIELDS.iter().find(|(known, _)| *known == name) else {
            let shown: String = name.chars().filter(|c| !c.is_control()).take(40).collect();
            let known: Vec<_> = FIELDS.iter().map(|(known, _)| *known).collect();
            return Err(format!("{{{{{shown}}}}} is no field; there are {}", known.join(", ")));
        };
        parts.push(Part::Field(*field));
        rest = after;
    }
    if !rest.is_empty() {
        parts.push(Part::Text(rest.to_owned()));
    }
    Ok(parts)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    fn named_file(name: &str) -> Occurrence {
        let mut occurrence = Occurrence::example(EventKind::TaskCompleted, 1_700_000_000_000);
        if let Some(task) = &mut occurrence.task {
            name.clone_into(&mut task.file_name);
        }
        occurrence
    }

    #[test]
    fn presets_are_what_their_services_accept() {
        for preset in Preset::ALL {
            assert_eq!(Preset::parse(preset.name()), Some(preset));
            let Some(text) = preset.template() else { continue };
            let template = Template::compile(text, Escape::of(preset.media_type())).unwrap();
            let body = template.fill(&named_file("a.iso"), "d");
            assert!(body.contains("Completed: a.iso (1 MiB)"), "{body}");
        }
    }

    #[test]
    fn a_template_is_refused_with_what_is_wrong() {
        let refused = |text: &str| Template::compile(text, Escape::Json).unwrap_err();
        assert!(refused(r#"{"a":"{{task.name}}"}"#).contains("{{task.name}} is no field; there are event"));
        assert!(refused(r#"{"a":"{{event"}"#).contains("has no }}"));
        assert!(refused(r#"{"a":{{task.fileName}}}"#).contains("between quotation marks"));
        assert!(refused("plain").contains("not JSON"));
        assert!(refused(&format!("\"{}\"", "x".repeat(MAX_TEMPLATE_BYTES))).contains("the limit is"));
        assert!(Template::compile("plain {{event}}", Escape::Plain).is_ok());
        assert!(Template::compile(r#"{"bytes":{{ task.totalBytes }}}"#, Escape::Json).is_ok());
    }

    #[test]
    fn values_cannot_leave_a_form_or_a_line() {
        let evil = named_file("a&b=c\r\nd");
        let fill = |escape| {
            Template::compile("f={{task.fileName}}", escape)
                .unwrap()
                .fill(&evil, "d")
        };
        assert_eq!(fill(Escape::Form), "f=a%26b%3Dc%0D%0Ad");
        assert_eq!(fill(Escape::Plain), "f=a&b=c  d");
    }

    proptest! {
        #[test]
        fn whatever_a_file_is_called_the_body_is_json_with_that_name(name in any::<String>()) {
            let template = Template::compile(r#"{"n":"{{task.fileName}}"}"#, Escape::Json).unwrap();
            let body = template.fill(&named_file(&name), "d");
            let read: Value = serde_json::from_str(&body).unwrap();
            let expected: String = name.chars().take(MAX_VALUE_CHARS).collect();
            prop_assert_eq!(read["n"].as_str(), Some(expected.as_str()));
        }
    }
}
