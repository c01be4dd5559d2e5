//! Log lines for programs: one JSON object per line with `time`, `level`, `target`, `message` and `fields`. The fields of
//! the spans around an event (the id of a request, for example) are among its fields.

use std::fmt::{self, Debug, Write as _};

use serde_json::{Map, Value, json};
use tracing::{
    Event, Subscriber,
    field::{Field, Visit},
};
use tracing_subscriber::{
    field::RecordFields,
    fmt::{
        FmtContext, FormatEvent, FormatFields, FormattedFields,
        format::Writer,
        time::{FormatTime as _, SystemTime},
    },
    registry::{LookupSpan, Scope},
};

/// The name that `tracing` has for the text of an event.
const MESSAGE: &str = "message";

/// Formats events.
pub(super) struct JsonEvents;

/// Formats the fields of a span as an object, to be read when an event within it is formatted.
pub(super) struct JsonFields;

impl<S, N> FormatEvent<S, N> for JsonEvents
where
    S: Subscriber + for<'l> LookupSpan<'l>,
    N: for<'w> FormatFields<'w> + 'static,
{
    fn format_event(&self, context: &FmtContext<'_, S, N>, mut writer: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let mut time = String::new();
        SystemTime.format_time(&mut Writer::new(&mut time))?;
        let mut fields = Map::new();
        for span in context.event_scope().into_iter().flat_map(Scope::from_root) {
            let extensions = span.extensions();
            let written = extensions
                .get::<FormattedFields<N>>()
                .map_or("", |fields| fields.as_str());
            // Fields that are recorded later are written behind the first ones, as another object.
            let objects = serde_json::Deserializer::from_str(written).into_iter::<Map<String, Value>>();
            fields.extend(objects.flatten().flatten());
        }
        let mut own = Fields::default();
        event.record(&mut own);
        let message = own.0.remove(MESSAGE).unwrap_or_else(|| "".into());
        fields.extend(own.0);
        let metadata = event.metadata();
        let line = json!({
            "time": time,
            "level": metadata.level().as_str(),
            "target": metadata.target(),
            "message": message,
            "fields": fields,
        });
        writeln!(writer, "{line}")
    }
}

impl<'w> FormatFields<'w> for JsonFields {
    fn format_fields<R: RecordFields>(&self, mut writer: Writer<'w>, fields: R) -> fmt::Result {
        let mut found = Fields::default();
        fields.record(&mut found);
        write!(writer, "{}", Value::Object(found.0))
    }
}

#[derive(Default)]
struct Fields(Map<String, Value>);

impl Fields {
    fn put(&mut self, field: &Field, value: Value) {
        self.0.insert(field.name().to_owned(), value);
    }
}

impl Visit for Fields {
    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, value.into());
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field, value.into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, value.into());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let mut text = String::new();
        // A value whose own formatting fails is cut off there.
        let _failed = write!(text, "{value:?}");
        self.put(field, text.into());
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io,
        sync::{Arc, Mutex},
    };

    use tracing_subscriber::{fmt, layer::SubscriberExt as _};

    use super::*;

    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Written {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn every_line_is_an_object_with_the_fields_of_its_spans() {
        let written = Written::default();
        let writer = written.clone();
        let layer = fmt::layer()
            .event_format(JsonEvents)
            .fmt_fields(JsonFields)
            .with_writer(move || writer.clone());
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || {
            let outer = tracing::info_span!("request", id = "r-1", status = tracing::field::Empty);
            let _in_outer = outer.enter();
            outer.record("status", 200);
            let _in_inner = tracing::info_span!("call", id = "c-2").entered();
            tracing::warn!(target: "here", bytes = 7_u64, is_new = true, path = %"/a \"b\"\nc", "two\nlines \u{1b}[31m");
            tracing::info!(half = 0.5, broken = f64::NAN);
        });
        let text = String::from_utf8(written.0.lock().unwrap().clone()).unwrap();
        let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines.len(), 2, "{text}");
        assert!(!text.contains('\u{1b}'), "{text}");
        let first = lines[0].as_object().unwrap();
        let names: Vec<_> = first.keys().map(String::as_str).collect();
        assert_eq!(names, ["fields", "level", "message", "target", "time"]);
        assert_eq!(
            (&first["level"], &first["target"], &first["message"]),
            (&json!("WARN"), &json!("here"), &json!("two\nlines \u{1b}[31m"))
        );
        // The innermost of equal names counts.
        let fields = json!({"id": "c-2", "status": 200, "bytes": 7, "is_new": true, "path": "/a \"b\"\nc"});
        assert_eq!(first["fields"], fields);
        assert!(first["time"].as_str().unwrap().ends_with('Z'), "{first:?}");
        assert_eq!(
            (&lines[1]["message"], &lines[1]["fields"]["half"]),
            (&json!(""), &json!(0.5))
        );
    }
}
