//! Compares responses with the `OpenAPI` description.

use std::sync::LazyLock;

use serde_json::Value;

static DOCUMENT: LazyLock<Value> = LazyLock::new(|| serde_json::from_str(&agent::openapi()).unwrap());

/// Every route: method and path.
pub(crate) fn routes() -> Vec<(String, String)> {
    let paths = DOCUMENT["paths"].as_object().unwrap();
    let methods = |item: &Value| item.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    let of_path = |(path, item): (&String, &Value)| {
        let path = path.clone();
        methods(item)
            .into_iter()
            .map(move |method| (method.to_uppercase(), path.clone()))
    };
    paths.iter().flat_map(of_path).collect()
}

/// Fails if `line` (method and target) is described and its answer's status is not.
pub(crate) fn check(line: &str, status: u16) {
    let (method, target) = line.split_once(' ').unwrap();
    let path = target.split('?').next().unwrap();
    let fits = |template: &str| {
        let (mut template, mut path) = (template.split('/'), path.split('/'));
        loop {
            match (template.next(), path.next()) {
                (None, None) => return true,
                (Some(name), Some(_)) if name.starts_with('{') => {}
                (Some(name), Some(segment)) if name == segment => {}
                _ => return false,
            }
        }
    };
    let paths = DOCUMENT["paths"].as_object().unwrap();
    // A literal path takes precedence over one with parameters.
    let item = paths.get(path).or_else(|| {
        let mut items = paths.iter();
        items.find(|(template, _)| fits(template)).map(|(_, item)| item)
    });
    let Some(operation) = item.and_then(|item| item.get(method.to_lowercase())) else {
        return;
    };
    let is_listed = operation["responses"].get(status.to_string()).is_some();
    assert!(
        is_listed,
        "{line} answered {status}, which its description does not list"
    );
}
