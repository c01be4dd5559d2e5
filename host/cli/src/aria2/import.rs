//! `svc import`: adds the downloads of another program to a service.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use aria2::{
    files::{self, Entry},
    option::{self, Options, Row},
};
use command::{Exit, UsageError, environment::Environment, print_json, print_lines};
use protocol::{CreatedTask, ErrorCode, Method, RuntimeStats};
use serde_json::json;
use transfer::SafeUrl;

use crate::service::{RemoteError, ServiceArgs};

const EXAMPLES: &str = "Examples:
  svc import aria2 ~/.aria2/session.txt            what aria2c --save-session wrote
  svc import aria2 --conf ~/.aria2/aria2.conf ~/.aria2/session.txt

Stop aria2c first. A download that was added by an earlier import is not added again.";

/// The format.
#[derive(Debug, clap::Subcommand)]
pub enum ImportCommand {
    /// Those of an aria2 session or input file
    #[command(after_help = EXAMPLES)]
    Aria2(Aria2Args),
}

#[derive(Debug, clap::Args)]
pub struct Aria2Args {
    /// The session or input file
    #[arg(value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    list: PathBuf,
    /// The aria2.conf whose options these downloads had
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    conf: Option<PathBuf>,
    #[command(flatten)]
    service: ServiceArgs,
}

/// The result of an import.
#[derive(Debug, Default)]
struct Report {
    added: Vec<String>,
    known: Vec<String>,
    refused: Vec<(String, String)>,
    notes: BTreeSet<String>,
}

pub(crate) async fn run(command: &ImportCommand, environment: &Environment) -> anyhow::Result<Exit> {
    let ImportCommand::Aria2(args) = command;
    aria2(args, environment).await
}

async fn aria2(args: &Aria2Args, environment: &Environment) -> anyhow::Result<Exit> {
    let mut report = Report::default();
    let usual = usual(args.conf.as_deref(), &mut report)?;
    let entries = files::list(&read(&args.list)?);
    let mut client = args.service.connect(environment).await?;
    let stats: RuntimeStats = client.ask(Method::RuntimeStats).await?;
    for entry in entries {
        let title = entry.uris.first().map_or("", String::as_str);
        let title = SafeUrl::parse(title).map_or_else(|_| title.to_owned(), |url| url.to_string());
        report.note(&entry, &usual, Path::new(&stats.save_dir), &title);
        let options = entry.options.over(&usual);
        let params = match option::created(&entry.uris, &options, &stats.save_dir) {
            Ok(params) => params,
            Err(refusal) => {
                report.refused.push((title, refusal.to_string()));
                continue;
            }
        };
        match client.call::<CreatedTask>(Method::TaskCreate, &params).await {
            Ok(created) => report.added.push(created.task_id),
            Err(RemoteError::Call(error)) if error.application_code() == Some(ErrorCode::Conflict) => {
                report.known.extend(params.task_id);
            }
            Err(RemoteError::Call(error)) => report.refused.push((title, error.message)),
            Err(error) => return Err(error.into()),
        }
    }
    report.print_result(args.service.json)
}

fn read(path: &Path) -> Result<String, UsageError> {
    fs::read_to_string(path).map_err(|error| UsageError::new(path.display().to_string(), error.to_string()))
}

/// The options that the configuration file sets for every download.
fn usual(path: Option<&Path>, report: &mut Report) -> Result<Options, UsageError> {
    let Some(path) = path else {
        return Ok(Options::default());
    };
    let home = dirs::home_dir().unwrap_or_default();
    let conf = files::conf(&read(path)?, &home.to_string_lossy())
        .map_err(|refused| UsageError::new(path.display().to_string(), refused.to_string()))?;
    let unknown = conf.unknown.iter();
    report
        .notes
        .extend(unknown.map(|line| format!("{}: no option of aria2: {line}", path.display())));
    Ok(conf
        .options
        .filtered(|row| row.allowed_in_input_file() && row.settable_by_rpc() && !row.per_download_only()))
}

impl Report {
    /// Records how a download differs from what aria2 would do.
    fn note(&mut self, entry: &Entry, usual: &Options, save_dir: &Path, title: &str) {
        let refused = entry.refused.iter().map(ToString::to_string);
        let unknown = entry
            .unknown
            .iter()
            .map(|line| format!("no option of a download:{line}"));
        self.notes
            .extend(refused.chain(unknown).map(|why| format!("{title}: {why}")));
        let inert = entry
            .options
            .iter()
            .filter(|(name, _)| Row::of(name).is_some_and(Row::is_inert));
        self.notes
            .extend(inert.map(|(name, _)| format!("{name}: changes nothing here; the file is the same")));
        let of = |name: &str| entry.options.get(name).or_else(|| usual.get(name));
        let has_secrets = ["http-user", "header"].into_iter().any(|name| of(name).is_some());
        let urls: Vec<_> = entry.uris.iter().filter_map(|uri| SafeUrl::parse(uri).ok()).collect();
        if has_secrets && urls.iter().any(|url| url.origin() != urls[0].origin()) {
            self.notes.insert(format!(
                "{title}: its login, cookies and headers go to the site of its first URI only; store logins for the others"
            ));
        }
        let Some(out) = of("out") else { return };
        let path = save_dir.join(of("dir").unwrap_or_default()).join(out);
        if files::control_file(&path).exists() {
            self.notes.insert(format!(
                "{}: what aria2 has of it is not used; it is fetched anew beside it, and the old bytes stay until you delete them",
                path.display()
            ));
        }
    }

    fn print_result(self, is_json: bool) -> anyhow::Result<Exit> {
        let Self {
            added,
            known,
            refused,
            notes,
        } = self;
        let exit = if refused.is_empty() { Exit::Success } else { Exit::Usage };
        if is_json {
            let refused: Vec<_> = refused
                .iter()
                .map(|(url, reason)| json!({"url": url, "reason": reason}))
                .collect();
            print_json(&json!({"added": added, "known": known, "refused": refused, "notes": notes}))?;
            return Ok(exit);
        }
        let lines = added.iter().map(|id| format!("added {id}"));
        let lines = lines.chain(known.iter().map(|id| format!("there already {id}")));
        let lines = lines.chain(
            refused
                .iter()
                .map(|(url, reason)| format!("not taken: {url}: {reason}")),
        );
        let lines = lines.chain(notes.iter().map(|note| format!("note: {note}")));
        print_lines(lines)?;
        Ok(exit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_as_with_aria2_is_said() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("f.bin.aria2"), "").unwrap();
        let text = format!(
            "http://a/f?key=1\n dir={}\n out=f.bin\n seed-time=1\n dry-run=true\n bogus=1\n",
            directory.path().display()
        );
        let entries = files::list(&text);
        let mut report = Report::default();
        report.note(&entries[0], &Options::default(), Path::new("/d"), "http://a/f");
        let notes: Vec<_> = report.notes.into_iter().collect();
        let [path, dry_run, bogus, seed_time] = &notes[..] else {
            panic!("{notes:#?}")
        };
        assert!(path.contains("f.bin: what aria2 has of it is not used"), "{path}");
        assert!(bogus.ends_with("no option of a download: bogus=1"), "{bogus}");
        assert!(dry_run.contains("'--dry-run' is not supported"), "{dry_run}");
        assert!(seed_time.starts_with("seed-time: changes nothing"), "{seed_time}");
    }
}
