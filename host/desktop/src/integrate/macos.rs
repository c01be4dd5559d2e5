//! macOS: an applet in the user's Applications that receives links and files (macOS hands links over as events, not as
//! arguments), and an agent of launchd that starts the service with the session. No machine with macOS has run this yet.

#[cfg(target_os = "macos")]
use std::{path::Path, process::Command};

use super::{
    Wish,
    pieces::{MARK, Piece, text_of},
};

/// The types in the applet's `Info.plist`.
const URL_TYPES: &str = r#"[{"CFBundleURLName":"Svc","CFBundleURLSchemes":["svc","magnet"]}]"#;
const OWN_URL_TYPES: &str = r#"[{"CFBundleURLName":"Svc","CFBundleURLSchemes":["svc"]}]"#;
const DOCUMENT_TYPES: &str = r#"[{"CFBundleTypeName":"Svc","CFBundleTypeRole":"Viewer","CFBundleTypeExtensions":["torrent","metalink","meta4"]}]"#;

/// The source of the applet.
fn applet(program: &str) -> String {
    let program = program.replace('\\', "\\\\").replace('"', "\\\"");
    let open = format!("do shell script quoted form of \"{program}\" & \" open \" & quoted form of");
    format!(
        "-- {MARK}\non open location link\n\t{open} link\nend open location\n\non open files\n\trepeat with each in files\n\
         \t\t{open} POSIX path of each\n\tend repeat\nend open\n\non run\n\tdo shell script quoted form of \"{program}\" & \
         \" open\"\nend run\n"
    )
}

/// The agent of launchd.
fn agent(program: &str) -> String {
    let program = program.replace('&', "&amp;").replace('<', "&lt;");
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!-- {MARK} -->\n<plist version=\"1.0\"><dict>\n\
         <key>Label</key><string>svc.agent</string>\n<key>ProgramArguments</key><array><string>{program}</string>\
         <string>agent</string></array>\n<key>RunAtLoad</key><true/>\n</dict></plist>\n"
    )
}

/// The changes of the applet's `Info.plist`, as arguments of `plutil`.
fn plist_changes(wish: &Wish) -> Vec<[&'static str; 4]> {
    let urls = if wish.keeps_defaults { OWN_URL_TYPES } else { URL_TYPES };
    let mut changes = vec![
        ["-replace", "CFBundleIdentifier", "-string", "svc.open"],
        ["-replace", "CFBundleURLTypes", "-json", urls],
        // No icon in the Dock for the moment that it runs.
        ["-replace", "LSUIElement", "-bool", "YES"],
    ];
    if !wish.keeps_defaults {
        changes.push(["-replace", "CFBundleDocumentTypes", "-json", DOCUMENT_TYPES]);
    }
    changes
}

/// The files beside the compiled applet: its source, by which it counts as ours, and the agent of launchd.
fn pieces(home: &std::path::Path, wish: &Wish) -> anyhow::Result<[Piece; 2]> {
    let program = text_of(&wish.program)?;
    Ok([
        Piece {
            path: home.join("Library/Application Support/svc/Svc.applescript"),
            contents: applet(program),
        },
        Piece {
            path: home.join("Library/LaunchAgents/svc.agent.plist"),
            contents: agent(program),
        },
    ])
}

#[cfg(target_os = "macos")]
pub(super) fn carry_out(wish: &Wish, is_dry_run: bool) -> anyhow::Result<Vec<super::pieces::Step>> {
    use super::pieces::{Act, Step};
    use anyhow::Context as _;

    let home = command::directories::home().context("there is no home directory to install in")?;
    let application = home.join("Applications/Svc.app");
    let [source, start] = pieces(&home, wish)?;
    let is_ours = source.path.exists() || !application.exists();
    let mut steps = Vec::new();
    if wish.is_removal {
        if source.path.exists() && application.exists() {
            if !is_dry_run {
                std::fs::remove_dir_all(&application).context("cannot remove the applet")?;
            }
            steps.push(Step::new(&application, Act::Removed));
        }
        steps.extend(source.remove(is_dry_run)?);
        steps.extend(start.remove(is_dry_run)?);
        return Ok(steps);
    }
    if !is_ours {
        return Ok(vec![Step::new(&application, Act::Kept)]);
    }
    steps.push(source.install(is_dry_run)?);
    if !is_dry_run {
        run(Command::new("osacompile").arg("-o").arg(&application).arg(&source.path))?;
        for change in plist_changes(wish) {
            let plist: &Path = &application.join("Contents/Info.plist");
            run(Command::new("plutil").args(change).arg(plist))?;
        }
    }
    steps.push(Step::new(&application, Act::Updated));
    if wish.has_autostart {
        steps.push(start.install(is_dry_run)?);
    } else {
        steps.extend(start.remove(is_dry_run)?);
    }
    Ok(steps)
}

#[cfg(target_os = "macos")]
fn run(command: &mut Command) -> anyhow::Result<()> {
    let status = command.status()?;
    anyhow::ensure!(status.success(), "{:?} fails ({status})", command.get_program());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_applet_hands_links_over_as_one_argument() {
        let source = applet(r#"/a "b"/svc"#);
        assert!(
            source.contains(r#"quoted form of "/a \"b\"/svc" & " open " & quoted form of link"#),
            "{source}"
        );
        let wish = Wish {
            program: "/a&b/svc".into(),
            is_removal: false,
            has_autostart: true,
            keeps_defaults: true,
        };
        let [source, start] = pieces(std::path::Path::new("/home"), &wish).unwrap();
        assert!(source.contents.contains(MARK) && start.contents.contains("/a&amp;b/svc"));
        assert!(plist_changes(&wish).iter().all(|change| !change[3].contains("magnet")));
    }
}
