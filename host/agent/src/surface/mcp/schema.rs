//! What tools take and give, as JSON Schema. Records are described by what describes them everywhere else.

use serde_json::{Map, Value, json};
use utoipa::{
    ToSchema,
    openapi::{RefOr, Schema},
};

/// An object with these members, described in `properties`.
pub(super) fn object(required: &[&str], properties: &Value) -> Value {
    json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
}

/// What a tool takes: the record, of which everything is said that may be left out.
pub(super) fn taken<T: ToSchema>() -> Value {
    let mut schema = whole::<T>();
    for (name, empty) in [("properties", json!({})), ("required", json!([]))] {
        if schema.get(name).is_none() {
            schema[name] = empty;
        }
    }
    schema
}

/// An object with the member `name`, made of `T` by `shape`, beside what `more` describes.
pub(super) fn with_record<T: ToSchema>(name: &str, shape: impl FnOnce(Value) -> Value, more: Value) -> Value {
    let (record, definitions) = record::<T>();
    let mut properties = more;
    properties[name] = shape(record);
    let required: Vec<String> = properties
        .as_object()
        .into_iter()
        .flat_map(Map::keys)
        .cloned()
        .collect();
    let mut schema = json!({ "type": "object", "properties": properties, "required": required });
    if !definitions.is_empty() {
        schema["$defs"] = definitions.into();
    }
    schema
}

/// A record itself.
pub(super) fn whole<T: ToSchema>() -> Value {
    let (mut schema, definitions) = record::<T>();
    if !definitions.is_empty() {
        schema["$defs"] = definitions.into();
    }
    schema
}

fn record<T: ToSchema>() -> (Value, Map<String, Value>) {
    let mut named: Vec<(String, RefOr<Schema>)> = Vec::new();
    T::schemas(&mut named);
    let definitions = named.into_iter().map(|(name, schema)| (name, local(&schema)));
    (local(&T::schema()), definitions.collect())
}

/// A description that refers to what lies beside it.
fn local(schema: &RefOr<Schema>) -> Value {
    let text = serde_json::to_string(schema).expect("a description has text keys only");
    serde_json::from_str(&text.replace("#/components/schemas/", "#/$defs/")).expect("what was encoded decodes")
}
