//! JSON Schemas of arguments and results, derived from the same descriptions as the `OpenAPI` document.

use serde_json::{Map, Value, json};
use utoipa::{
    ToSchema,
    openapi::{RefOr, Schema},
};

/// An object with these required members, described in `properties`.
pub(super) fn object(required: &[&str], properties: &Value) -> Value {
    json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
}

/// The schema of a tool's arguments.
pub(super) fn taken<T: ToSchema>() -> Value {
    let mut schema = record_schema::<T>();
    for (name, empty) in [("properties", json!({})), ("required", json!([]))] {
        if schema.get(name).is_none() {
            schema[name] = empty;
        }
    }
    schema
}

/// An object with the member `name`, whose schema `shape` makes of that of `T`, and the members in `more`.
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

/// The schema of a record itself.
pub(super) fn record_schema<T: ToSchema>() -> Value {
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

/// Resolves a reference to a schema beside it.
fn local(schema: &RefOr<Schema>) -> Value {
    let text = serde_json::to_string(schema).expect("a description has text keys only");
    serde_json::from_str(&text.replace("#/components/schemas/", "#/$defs/")).expect("what was encoded decodes")
}
