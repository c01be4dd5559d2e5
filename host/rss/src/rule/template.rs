//! Directories of a download, made of what its title says.

use transfer::FileName;

use super::Candidate;

/// The deepest directories that a template makes.
const MAX_DEPTH: usize = 8;

const FIELDS: &str = "{series}, {season}, {episode}, {title} and {source}";

/// A checked template: path components, each of literal text and fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Template(Vec<Vec<Part>>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Text(String),
    Series,
    Season,
    Episode,
    Title,
    Source,
}

impl Template {
    /// Checks a template; the empty one is none. The error says what is wrong with it.
    pub(super) fn compile(text: &str) -> Result<Option<Self>, String> {
        if text.trim().is_empty() {
            return Ok(None);
        }
        if text.starts_with(['/', '\\']) || text.contains('\\') {
            return Err("a template is relative to the save directory, with `/` between directories".to_owned());
        }
        let components = text.split('/').filter(|component| !component.trim().is_empty());
        let components: Vec<_> = components.map(parts).collect::<Result<_, _>>()?;
        if components.len() > MAX_DEPTH {
            return Err(format!(
                "{} directories inside each other; the limit is {MAX_DEPTH}",
                components.len()
            ));
        }
        Ok(Some(Self(components)))
    }

    /// The directories for a candidate. One of which nothing is known is left out.
    pub(super) fn fill(&self, candidate: Candidate<'_>) -> Vec<String> {
        let filled = self.0.iter().map(|parts| {
            let value = |part: &Part| match part {
                Part::Text(text) => Some(text.clone()),
                Part::Series if candidate.release.series.is_empty() => Some(candidate.feed.to_owned()),
                Part::Series => Some(candidate.release.series.clone()),
                Part::Season => candidate.release.season().map(|season| format!("{season:02}")),
                Part::Episode => {
                    let key = candidate.release.key(candidate.feed);
                    key.rsplit_once('#').map(|(_, episode)| episode.to_owned())
                }
                Part::Title => Some(candidate.title.to_owned()),
                Part::Source => Some(candidate.feed.to_owned()),
            };
            let values: Option<Vec<_>> = parts.iter().map(value).collect();
            FileName::sanitise_or_none(&values?.concat())
        });
        filled.flatten().map(|name| name.as_str().to_owned()).collect()
    }
}

fn parts(component: &str) -> Result<Vec<Part>, String> {
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
        parts.push(match name {
            "series" => Part::Series,
            "season" => Part::Season,
            "episode" => Part::Episode,
            "title" => Part::Title,
            "source" => Part::Source,
            _ => return Err(format!("`{{{name}}}` is no field; there are {FIELDS}")),
        });
        rest = after;
    }
    if !rest.is_empty() {
        parts.push(Part::Text(rest.to_owned()));
    }
    Ok(parts)
}
