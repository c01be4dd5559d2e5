//! `svc import aria2`.

use std::{
    fs,
    path::{Path, PathBuf},
};

use aria2::{
    files::{self, Entry},
    option::{self, Options, Row},
};
use command::{Exit, UsageError, environment::Environment};
use protocol::{Method, RuntimeStats};
use transfer::SafeUrl;

use super::Report;
use crate::service::ServiceArgs;

pub(super) const EXAMPLES: &str = "Examples:
  svc import aria2 ~/.aria2/session.txt            what aria2c --save-session wrote
  svc import aria2 --conf ~/.aria2/aria2.conf ~/.aria2/session.txt

Stop aria2c first. A download that was added by an earlier import is not added again.";

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

pub(super) async fn run(args: &Aria2Args, environment: &Environment) -> anyhow::Result<Exit> {
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
        report.create(&mut client, title, params).await?;
    }
    report.print_result(args.service.json, "added")
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_as_with_aria2_is_said() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("f.bin.aria2"), "").unwrap();
        let text = format!(
            "http://a/f?key=1\n dir={}\n out=f.bin\n always-resume=false\n dry-run=true\n bogus=1\n",
            directory.path().display()
        );
        let entries = files::list(&text);
        let mut report = Report::default();
        report.note(&entries[0], &Options::default(), Path::new("/d"), "http://a/f");
        let notes: Vec<_> = report.notes.into_iter().collect();
        let [path, always_resume, dry_run, bogus] = &notes[..] else {
            panic!("{notes:#?}")
        };
        assert!(path.contains("f.bin: what aria2 has of it is not used"), "{path}");
        assert!(bogus.ends_with("no option of a download: bogus=1"), "{bogus}");
        assert!(dry_run.contains("'--dry-run' is not supported"), "{dry_run}");
        assert!(
            always_resume.starts_with("always-resume: changes nothing"),
            "{always_resume}"
        );
    }
}
