//! `svc plugin test --record`: executes one call against live sites and saves it as a fixture.

use std::{collections::BTreeMap, fs, path::Path};

use anyhow::Context as _;
use clap::ValueEnum;
use cli::{parse_pair, read_value};
use command::{Exit, UsageError, print_lines};
use plugin_host::{
    author::Candidate,
    fixture::{FixtureCall, Input, Recorded},
};

/// The schema of fixtures, relative to a fixture in a folder of `svc plugin new`.
const SCHEMA: &str = "../schema/fixture.schema.json";

/// How one call is recorded.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Recording")]
pub(super) struct RecordArgs {
    /// Ask the plugin about this URL, for real, and write down what happens
    #[arg(id = "record", long = "record", value_name = "URL")]
    pub(super) url: Option<String>,
    /// What to ask
    #[arg(long, value_enum, requires = "record")]
    call: Option<CallName>,
    /// Name of the fixture's file [default: the call and the last part of the URL]
    #[arg(long, requires = "record")]
    name: Option<String>,
    /// The entry that linkFor is asked for
    #[arg(long, value_name = "ID", requires = "record")]
    entry: Option<String>,
    /// The variant of the entry
    #[arg(long, value_name = "ID", requires = "entry")]
    variant: Option<String>,
    /// The page that more is asked for
    #[arg(long, value_name = "TOKEN", requires = "record")]
    page: Option<String>,
    /// A setting of the plugin; KEY=- is read from standard input
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = parse_pair, requires = "record")]
    settings: Vec<(String, String)>,
    /// Write over a fixture of the same name
    #[arg(long, requires = "record")]
    overwrite: bool,
}

/// What a plugin can be asked.
#[derive(Debug, Clone, Copy, ValueEnum)]
#[value(rename_all = "camelCase")]
enum CallName {
    Resolve,
    More,
    LinkFor,
    Preview,
    Feed,
}

impl From<CallName> for FixtureCall {
    fn from(name: CallName) -> Self {
        match name {
            CallName::Resolve => Self::Resolve,
            CallName::More => Self::More,
            CallName::LinkFor => Self::LinkFor,
            CallName::Preview => Self::Preview,
            CallName::Feed => Self::Feed,
        }
    }
}

pub(super) async fn run(candidate: &Candidate, folder: &Path, url: &str, args: &RecordArgs) -> anyhow::Result<Exit> {
    let call = args.call.unwrap_or(CallName::Resolve);
    let name = match &args.name {
        Some(name) => name.clone(),
        None => usual_name(call, url),
    };
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if name.is_empty() || !name.chars().all(is_plain) {
        return Err(UsageError::new("--name", "a name is of letters, digits, - and _").into());
    }
    let path = folder.join("fixtures").join(format!("{name}.json"));
    if path.exists() && !args.overwrite {
        let problem = format!("{} is there; choose another name, or --overwrite", path.display());
        return Err(UsageError::new("--name", problem).into());
    }
    let input = Input {
        url: url.to_owned(),
        token: args.page.clone().unwrap_or_default(),
        entry: args.entry.clone().unwrap_or_default(),
        variant: args.variant.clone(),
        ..Input::default()
    };
    let recorded = candidate.record(call.into(), input, &settings(&args.settings)?).await;
    let mut recorded = recorded.map_err(|error| UsageError::new("--record", error.to_string()))?;
    recorded.fixture.schema = folder.join("schema").is_dir().then(|| SCHEMA.to_owned());
    let mut text = serde_json::to_string_pretty(&recorded.fixture)?;
    text.push('\n');
    fs::create_dir_all(folder.join("fixtures")).with_context(|| format!("cannot make {}", folder.display()))?;
    fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    print_lines(lines(candidate, &recorded, &path))
}

fn lines(candidate: &Candidate, recorded: &Recorded, path: &Path) -> Vec<String> {
    let mut lines = vec![format!(
        "recorded {} exchanges in {}; everything was allowed that plugin.json asks for{}",
        recorded.fixture.exchanges.len(),
        path.display(),
        if candidate.needed().descriptions().is_empty() {
            " (nothing)"
        } else {
            ":"
        }
    )];
    let needed = candidate.needed().descriptions();
    lines.extend(needed.iter().map(|permission| format!("  {permission}")));
    lines.extend(
        recorded
            .lines
            .iter()
            .map(|line| format!("  the plugin says: {}", line.text)),
    );
    if let Some(code) = recorded.fixture.expect.get("error") {
        lines.push(format!(
            "the call failed with {code}, which is what the fixture expects now"
        ));
    }
    lines.push("review it: the expectation may be too strict, and pages may contain personal data".to_owned());
    lines
}

fn settings(pairs: &[(String, String)]) -> anyhow::Result<BTreeMap<String, String>> {
    let value = |value: &String| match value.as_str() {
        "-" => read_value(),
        value => Ok(value.to_owned()),
    };
    let pairs = pairs.iter().map(|(key, text)| Ok((key.clone(), value(text)?)));
    pairs.collect()
}

/// The default file name: the call and the last segment of the URL.
fn usual_name(call: CallName, url: &str) -> String {
    let path = url.split(['?', '#']).next().unwrap_or_default();
    let last = path.rsplit('/').find(|part| !part.is_empty()).unwrap_or_default();
    let name = call.to_possible_value();
    let call = name.as_ref().map_or("call", clap::builder::PossibleValue::get_name);
    let text = format!("{call}-{last}");
    let plain = text.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' });
    plain.take(60).collect::<String>().trim_end_matches('-').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_name_is_one_of_a_file() {
        for (url, name) in [
            ("https://example.org/s/1?token=x", "resolve-1"),
            ("https://example.org/pub/größe/", "resolve-gr--e"),
            ("https://example.org", "resolve-example-org"),
        ] {
            assert_eq!(usual_name(CallName::Resolve, url), name);
        }
    }
}
