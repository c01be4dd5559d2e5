//! Linux and other systems with the desktop entries of freedesktop.org: an entry that handles links and files, the user's
//! defaults, an icon, and an entry that starts the service with the session.

use std::{
    fs, io,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::Context as _;
use command::{UsageError, directories};

use super::{
    Wish, mime_apps,
    pieces::{Act, MARK, Piece, Step, replace, text_of},
};

/// The same entries as in packages, where the executable is found by its name.
const ENTRY: &str = include_str!("../../../packaging/desktop/svc.desktop");
const AUTOSTART: &str = include_str!("../../../packaging/desktop/svc-autostart.desktop");
const ICON: &str = include_str!("../../../packaging/desktop/svc.svg");

/// The name of the entry, by which defaults refer to it.
const NAME: &str = "svc.desktop";

/// The type that no other program wants.
const OWN_TYPE: &str = "x-scheme-handler/svc";

/// Where a user's desktop looks.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Places {
    /// `$XDG_DATA_HOME`.
    data: PathBuf,
    /// `$XDG_CONFIG_HOME`.
    configuration: PathBuf,
}

pub(super) fn carry_out(wish: &Wish, is_dry_run: bool) -> anyhow::Result<Vec<Step>> {
    let missing = || UsageError::new("HOME", "there is no home directory to install in");
    let places = Places {
        data: directories::shared_data().ok_or_else(missing)?,
        configuration: directories::configuration().ok_or_else(missing)?,
    };
    let steps = in_places(&places, wish, is_dry_run)?;
    let applications = places.data.join("applications");
    if !is_dry_run && steps.iter().any(|step| step.act != Act::Unchanged) && applications.is_dir() {
        refresh(&applications);
    }
    Ok(steps)
}

fn in_places(places: &Places, wish: &Wish, is_dry_run: bool) -> anyhow::Result<Vec<Step>> {
    let program = text_of(&wish.program)?;
    let entry = Piece {
        path: places.data.join("applications").join(NAME),
        contents: with_program(ENTRY, program),
    };
    let icon = Piece {
        path: places.data.join("icons/hicolor/scalable/apps/svc.svg"),
        contents: ICON.to_owned(),
    };
    let autostart = Piece {
        path: places.configuration.join("autostart").join(NAME),
        contents: with_program(AUTOSTART, program),
    };
    let defaults = places.configuration.join("mimeapps.list");
    let mut steps = Vec::new();
    if wish.is_removal {
        for piece in [entry, icon, autostart] {
            steps.extend(piece.remove(is_dry_run)?);
        }
        steps.extend(change_defaults(&defaults, is_dry_run, |text| {
            mime_apps::without(text, NAME)
        })?);
        return Ok(steps);
    }
    let installed = entry.install(is_dry_run)?;
    // Another program's entry of that name must not become the handler of our links.
    let is_ours = installed.act != Act::Kept;
    steps.push(installed);
    steps.push(icon.install(is_dry_run)?);
    if wish.has_autostart {
        steps.push(autostart.install(is_dry_run)?);
    } else {
        steps.extend(autostart.remove(is_dry_run)?);
    }
    if is_ours {
        let types: Vec<&str> = types()
            .filter(|kind| *kind == OWN_TYPE || !wish.keeps_defaults)
            .collect();
        let with = |text: &str| mime_apps::with_default(&mime_apps::without(text, NAME), NAME, &types);
        steps.extend(change_defaults(&defaults, is_dry_run, with)?);
    }
    Ok(steps)
}

/// The types that the entry handles.
fn types() -> impl Iterator<Item = &'static str> {
    let line = ENTRY.lines().find_map(|line| line.strip_prefix("MimeType="));
    line.unwrap_or("").split(';').filter(|kind| !kind.is_empty())
}

/// An entry that starts the executable at this path.
fn with_program(entry: &str, program: &str) -> String {
    debug_assert!(entry.contains(MARK), "it would not be recognised as ours");
    entry.replace("Exec=svc ", &format!("Exec={} ", quoted(program)))
}

/// An argument of `Exec`: quoted (Desktop Entry Specification 1.5, "The Exec key"), then escaped as a value of type string.
fn quoted(argument: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+,:@".contains(c);
    if argument.chars().all(is_plain) {
        return argument.to_owned();
    }
    let mut text = String::from("\"");
    for character in argument.chars() {
        match character {
            '"' | '`' | '$' => text.extend(['\\', '\\', character]),
            '\\' => text.push_str("\\\\\\\\"),
            '%' => text.push_str("%%"),
            '\n' => text.push_str("\\n"),
            other => text.push(other),
        }
    }
    text.push('"');
    text
}

/// Changes the user's defaults; `None` if nothing is to be changed in a file that is not there.
fn change_defaults(path: &Path, is_dry_run: bool, change: impl FnOnce(&str) -> String) -> anyhow::Result<Option<Step>> {
    // It may be a link into the user's collection of settings, which stays one.
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let before = match fs::read_to_string(&target) {
        Ok(text) => Some(text),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
    };
    let after = change(before.as_deref().unwrap_or_default());
    let act = match &before {
        None if after.is_empty() => return Ok(None),
        None => Act::Created,
        Some(text) if *text == after => Act::Unchanged,
        Some(_) => Act::Updated,
    };
    if matches!(act, Act::Created | Act::Updated) && !is_dry_run {
        replace(&target, &after)?;
    }
    Ok(Some(Step::new(path, act)))
}

/// Updates the index of types, which programs use to list the handlers of a file. A desktop without the tool has no index.
fn refresh(applications: &Path) {
    let mut command = Command::new("update-desktop-database");
    command.arg("-q").arg(applications);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let _no_such_tool = command.status();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(root: &Path) -> Places {
        Places {
            data: root.join("data"),
            configuration: root.join("config"),
        }
    }

    fn wish() -> Wish {
        Wish {
            program: "/opt/My Apps/50%/svc".into(),
            is_removal: false,
            has_autostart: true,
            keeps_defaults: false,
        }
    }

    fn acts(steps: &[Step]) -> Vec<Act> {
        steps.iter().map(|step| step.act).collect()
    }

    #[test]
    fn a_path_is_quoted_as_desktops_read_it() {
        assert_eq!(quoted("/usr/bin/svc"), "/usr/bin/svc");
        assert_eq!(quoted("/a b/50%/$x\\"), r#""/a b/50%%/\\$x\\\\""#);
    }

    #[test]
    fn all_of_it_is_installed_once_and_removed() {
        let root = tempfile::tempdir().unwrap();
        let places = places(root.path());
        let first = in_places(&places, &wish(), false).unwrap();
        assert_eq!(acts(&first), [Act::Created; 4]);
        let entry = fs::read_to_string(places.data.join("applications/svc.desktop")).unwrap();
        assert!(entry.contains("Exec=\"/opt/My Apps/50%%/svc\" open %U\n"), "{entry}");
        assert_eq!(acts(&in_places(&places, &wish(), false).unwrap()), [Act::Unchanged; 4]);
        let defaults = fs::read_to_string(places.configuration.join("mimeapps.list")).unwrap();
        assert!(defaults.contains("x-scheme-handler/magnet=svc.desktop;"), "{defaults}");
        let less = Wish {
            has_autostart: false,
            keeps_defaults: true,
            ..wish()
        };
        let steps = in_places(&places, &less, false).unwrap();
        assert_eq!(
            acts(&steps),
            [Act::Unchanged, Act::Unchanged, Act::Removed, Act::Updated]
        );
        let defaults = fs::read_to_string(places.configuration.join("mimeapps.list")).unwrap();
        assert_eq!(defaults, "[Default Applications]\nx-scheme-handler/svc=svc.desktop;\n");
        let removal = Wish {
            is_removal: true,
            ..wish()
        };
        let would = in_places(&places, &removal, true).unwrap();
        let done = in_places(&places, &removal, false).unwrap();
        assert_eq!(
            (would, acts(&done)),
            (done.clone(), vec![Act::Removed, Act::Removed, Act::Updated])
        );
        let left = in_places(&places, &removal, false).unwrap();
        assert_eq!(acts(&left), [Act::Unchanged]);
    }

    #[test]
    fn an_entry_of_another_program_stays_and_gets_no_links() {
        let root = tempfile::tempdir().unwrap();
        let places = places(root.path());
        let entry = places.data.join("applications/svc.desktop");
        fs::create_dir_all(entry.parent().unwrap()).unwrap();
        fs::write(&entry, "[Desktop Entry]\nName=Another\n").unwrap();
        let steps = in_places(&places, &wish(), false).unwrap();
        assert_eq!(acts(&steps), [Act::Kept, Act::Created, Act::Created]);
        assert!(!places.configuration.join("mimeapps.list").exists());
        assert!(fs::read_to_string(&entry).unwrap().contains("Another"));
    }

    #[test]
    fn a_linked_list_of_defaults_stays_a_link() {
        let root = tempfile::tempdir().unwrap();
        let places = places(root.path());
        fs::create_dir_all(&places.configuration).unwrap();
        let real = root.path().join("dotfiles-mimeapps");
        fs::write(&real, "[Default Applications]\n").unwrap();
        let link = places.configuration.join("mimeapps.list");
        std::os::unix::fs::symlink(&real, &link).unwrap();
        in_places(&places, &wish(), false).unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert!(fs::read_to_string(&real).unwrap().contains("svc.desktop"));
    }
}
