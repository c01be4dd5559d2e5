//! JSON Schemas of arguments and results, derived from the same descriptions as the `OpenAPI` document.

use serde_json::{Map, Value, json};
use utoipa::{
    ToSchema,
    openapi::{RefOr, Schema},
};

/// The schema of a tool's arguments. Clients expect both members in it, also where there are no arguments.
pub(super) fn arguments<T: ToSchema>() -> Value {
    let mut schema = record::<T>();
    for (name, empty) in [("properties", json!({})), ("required", json!([]))] {
        if schema.get(name).is_none() {
            schema[name] = empty;
        }
    }
    schema
}

/// The schema of a record, with those of the records in it.
pub(super) fn record<T: ToSchema>() -> Value {
    let mut named: Vec<(String, RefOr<Schema>)> = Vec::new();
    T::schemas(&mut named);
    let definitions: Map<_, _> = named.into_iter().map(|(name, schema)| (name, local(&schema))).collect();
    let mut schema = local(&T::schema());
    if !definitions.is_empty() {
        schema["$defs"] = definitions.into();
    }
    schema
}

/// Resolves a reference to a schema beside it.
fn local(schema: &RefOr<Schema>) -> Value {
    let text = serde_json::to_string(schema).expect("a description has text keys only");
    serde_json::from_str(&text.replace("#/components/schemas/", "#/$defs/")).expect("what was encoded decodes")
}
