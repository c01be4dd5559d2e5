//! Paths made of what is known about a download: `{series}/Season {season}`.

use crate::file_name::FileName;

/// The deepest path that a template makes, in components.
const MAX_DEPTH: usize = 8;

/// A checked template: path components, each of literal text and fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template<F>(Vec<Vec<Part<F>>>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part<F> {
    Text(String),
    Field(F),
}

impl<F: Copy> Template<F> {
    /// Checks a template with the fields of `fields`; the empty one is none. The error says what is wrong with it.
    pub fn compile(text: &str, fields: &[(&str, F)]) -> Result<Option<Self>, String> {
        if text.trim().is_empty() {
            return Ok(None);
        }
        if text.starts_with(['/', '\\']) || text.contains('\\') {
            return Err("a template is relative to the save directory, with `/` between directories".to_owned());
        }
        let components = text.split('/').filter(|component| !component.trim().is_empty());
        let components: Vec<_> = components
            .map(|component| parts(component, fields))
            .collect::<Result<_, _>>()?;
        if components.len() > MAX_DEPTH {
            return Err(format!(
                "{} directories inside each other; the limit is {MAX_DEPTH}",
                components.len()
            ));
        }
        Ok(Some(Self(components)))
    }

    /// The components, safe as names of files. `None` is a component of which a field is unknown, or of which nothing
    /// is left.
    pub fn fill(&self, value: impl Fn(F) -> Option<String>) -> impl Iterator<Item = Option<FileName>> {
        self.0.iter().map(move |parts| {
            let values = parts.iter().map(|part| match part {
                Part::Text(text) => Some(text.clone()),
                Part::Field(field) => value(*field),
            });
            let values: Option<Vec<_>> = values.collect();
            FileName::sanitise_or_none(&values?.concat())
        })
    }
}

fn parts<F: Copy>(component: &str, fields: &[(&str, F)]) -> Result<Vec<Part<F>>, String> {
    if matches!(component.trim(), "." | "..") {
        return Err("`.` and `..` name no directory here".to_owned());
    }
    let mut parts = Vec::new();
    let mut rest = component;
    while let Some((text, behind)) = rest.split_once('{') {
        let (name, after) = behind.split_once('}').ok_or("a `{` has no `}`")?;
        if !text.is_empty() {
            parts.push(Part::Text(text.to_owned()));
        }
        let field = fields.iter().find(|(known, _)| *known == name);
        let Some((_, field)) = field else {
            return Err(format!("`{{{name}}}` is no field; there are {}", listed(fields)));
        };
        parts.push(Part::Field(*field));
        rest = after;
    }
    if !rest.is_empty() {
        parts.push(Part::Text(rest.to_owned()));
    }
    Ok(parts)
}

/// `{a}, {b} and {c}`.
fn listed<F>(fields: &[(&str, F)]) -> String {
    let names: Vec<_> = fields.iter().map(|(name, _)| format!("{{{name}}}")).collect();
    match names.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => names.concat(),
    }
}
