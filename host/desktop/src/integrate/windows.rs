//! Windows: classes and a start entry in the registry of the current user, written with `reg.exe`. No machine with Windows
//! has run this yet.

use super::{
    Wish,
    pieces::{Act, Step, text_of},
};

/// The classes that Svc owns, by which `OpenWithProgids` refers to it.
const CLASS: &str = r"HKCU\Software\Classes\Svc.Link";
const SCHEME: &str = r"HKCU\Software\Classes\svc";
const RUN: &str = r"HKCU\Software\Microsoft\Windows\CurrentVersion\Run";
const CAPABILITIES: &str = r"HKCU\Software\Svc\Capabilities";
const REGISTERED: &str = r"HKCU\Software\RegisteredApplications";

/// File types that Svc offers to open. Which program does is the user's choice in the settings of Windows, which
/// programs cannot make.
const EXTENSIONS: [&str; 3] = [".torrent", ".metalink", ".meta4"];

/// A value of the registry; an empty name is the key's default value.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    key: String,
    name: String,
    value: String,
}

impl Entry {
    fn new(key: impl Into<String>, name: &str, value: impl Into<String>) -> Self {
        Self {
            key: key.into(),
            name: name.to_owned(),
            value: value.into(),
        }
    }

    fn shown(&self) -> String {
        format!(
            r"{}\{}",
            self.key,
            if self.name.is_empty() { "(Default)" } else { &self.name }
        )
    }
}

fn entries(wish: &Wish) -> anyhow::Result<Vec<Entry>> {
    let program = text_of(&wish.program)?;
    let open = format!("\"{program}\" open \"%1\"");
    let mut entries = vec![
        Entry::new(SCHEME, "", "URL:Svc"),
        Entry::new(SCHEME, "URL Protocol", ""),
        Entry::new(format!(r"{SCHEME}\shell\open\command"), "", &open),
        Entry::new(CLASS, "", "Svc"),
        Entry::new(format!(r"{CLASS}\shell\open\command"), "", &open),
        Entry::new(CAPABILITIES, "ApplicationName", "Svc"),
        Entry::new(REGISTERED, "Svc", r"Software\Svc\Capabilities"),
    ];
    if !wish.keeps_defaults {
        entries.push(Entry::new(
            format!(r"{CAPABILITIES}\URLAssociations"),
            "magnet",
            "Svc.Link",
        ));
        for extension in EXTENSIONS {
            entries.push(Entry::new(
                format!(r"{CAPABILITIES}\FileAssociations"),
                extension,
                "Svc.Link",
            ));
            let offers = format!(r"HKCU\Software\Classes\{extension}\OpenWithProgids");
            entries.push(Entry::new(offers, "Svc.Link", ""));
        }
    }
    if wish.has_autostart {
        entries.push(Entry::new(RUN, "Svc", format!("\"{program}\" agent")));
    }
    Ok(entries)
}

/// The arguments of `reg.exe` for an entry: values are removed one by one, so that a key that another program shares stays.
fn arguments(entry: &Entry, is_removal: bool) -> Vec<String> {
    let mut arguments = vec![if is_removal { "delete" } else { "add" }.to_owned(), entry.key.clone()];
    if entry.name.is_empty() {
        arguments.push("/ve".to_owned());
    } else {
        arguments.extend(["/v".to_owned(), entry.name.clone()]);
    }
    if !is_removal {
        arguments.extend([
            "/t".to_owned(),
            "REG_SZ".to_owned(),
            "/d".to_owned(),
            entry.value.clone(),
        ]);
    }
    arguments.push("/f".to_owned());
    arguments
}

/// Runs `reg.exe` with the arguments of each entry; `run` says whether it succeeded.
fn apply(
    wish: &Wish,
    is_dry_run: bool,
    mut run: impl FnMut(&[String]) -> std::io::Result<bool>,
) -> anyhow::Result<Vec<Step>> {
    let mut steps = Vec::new();
    for entry in entries(wish)? {
        let is_done = is_dry_run || run(&arguments(&entry, wish.is_removal))?;
        match (wish.is_removal, is_done) {
            (true, true) => steps.push(Step::new(entry.shown(), Act::Removed)),
            // There was none.
            (true, false) => {}
            (false, true) => steps.push(Step::new(entry.shown(), Act::Created)),
            (false, false) => anyhow::bail!("the registry does not take {}", entry.shown()),
        }
    }
    Ok(steps)
}

#[cfg(windows)]
pub(super) fn carry_out(wish: &Wish, is_dry_run: bool) -> anyhow::Result<Vec<Step>> {
    apply(wish, is_dry_run, |arguments| {
        let output = std::process::Command::new("reg.exe").args(arguments).output();
        output.map(|output| output.status.success())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_that_is_added_is_removed_again() {
        let wish = Wish {
            program: r"C:\Program Files\Svc\svc.exe".into(),
            is_removal: false,
            has_autostart: true,
            keeps_defaults: false,
        };
        let mut added = Vec::new();
        let mut removed = Vec::new();
        let record = |list: &mut Vec<String>, arguments: &[String]| {
            list.push(arguments[1..4].join(" "));
            Ok(true)
        };
        apply(&wish, false, |arguments| record(&mut added, arguments)).unwrap();
        let removal = Wish {
            is_removal: true,
            ..wish.clone()
        };
        apply(&removal, false, |arguments| record(&mut removed, arguments)).unwrap();
        assert_eq!(added.len(), removed.len());
        let command = entries(&wish).unwrap().remove(2);
        assert_eq!(command.value, r#""C:\Program Files\Svc\svc.exe" open "%1""#);
        assert_eq!(arguments(&command, false)[0], "add");
        assert!(apply(&wish, true, |_| unreachable!("a dry run changes nothing")).is_ok());
    }
}
