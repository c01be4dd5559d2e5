//! Directories of a download, made of what its title says.

use super::Candidate;

/// What a template may name.
const FIELDS: &[(&str, Field)] = &[
    ("series", Field::Series),
    ("season", Field::Season),
    ("episode", Field::Episode),
    ("title", Field::Title),
    ("source", Field::Source),
];

/// A checked template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Template(transfer::Template<Field>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Field {
    Series,
    Season,
    Episode,
    Title,
    Source,
}

impl Template {
    /// Checks a template; the empty one is none. The error says what is wrong with it.
    pub(super) fn compile(text: &str) -> Result<Option<Self>, String> {
        Ok(transfer::Template::compile(text, FIELDS)?.map(Self))
    }

    /// The directories for a candidate. One of which nothing is known is left out.
    pub(super) fn fill(&self, candidate: Candidate<'_>) -> Vec<String> {
        let value = |field| match field {
            Field::Series if candidate.release.series.is_empty() => Some(candidate.feed.to_owned()),
            Field::Series => Some(candidate.release.series.clone()),
            Field::Season => candidate.release.season().map(|season| format!("{season:02}")),
            Field::Episode => {
                let key = candidate.release.key(candidate.feed);
                key.rsplit_once('#').map(|(_, episode)| episode.to_owned())
            }
            Field::Title => Some(candidate.title.to_owned()),
            Field::Source => Some(candidate.feed.to_owned()),
        };
        let filled = self.0.fill(value).flatten();
        filled.map(|name| name.as_str().to_owned()).collect()
    }
}
