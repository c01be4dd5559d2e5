//! Hook commands of `--on-…`; their arguments are GID, number of files, and path of the first file.

use std::process::Stdio;

use aria2::{Kind, option::Options};
use tokio::{process::Command, task::JoinSet};

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Hooks {
    start: Option<String>,
    pause: Option<String>,
    stop: Option<String>,
    complete: Option<String>,
    error: Option<String>,
    bt_complete: Option<String>,
}

impl Hooks {
    pub(super) fn new(options: &Options) -> Self {
        let command = |name: &str| {
            let command = options.get(name);
            command.filter(|command| !command.is_empty()).map(str::to_owned)
        };
        Self {
            start: command("on-download-start"),
            pause: command("on-download-pause"),
            stop: command("on-download-stop"),
            complete: command("on-download-complete"),
            error: command("on-download-error"),
            bt_complete: command("on-bt-download-complete"),
        }
    }

    /// The command for a notification. `--on-download-stop` applies to completed and failed downloads without their own
    /// hook.
    pub(super) fn command(&self, kind: Kind) -> Option<&str> {
        let command = match kind {
            Kind::Start => &self.start,
            Kind::Pause => &self.pause,
            Kind::Stop => &self.stop,
            Kind::BtComplete => &self.bt_complete,
            Kind::Complete => return self.complete.as_deref().or(self.stop.as_deref()),
            Kind::Error => return self.error.as_deref().or(self.stop.as_deref()),
        };
        command.as_deref()
    }
}

/// Running hooks. As with aria2, they may outlive this program.
#[derive(Debug, Default)]
pub(super) struct Callers(JoinSet<()>);

impl Callers {
    /// Starts a hook; a failure is returned as a message.
    pub(super) fn call(&mut self, command: &str, gid: &str, files: usize, path: &str) -> Result<(), String> {
        while self.0.try_join_next().is_some() {}
        let child = Command::new(command)
            .args([gid, &files.to_string(), path])
            .stdin(Stdio::null())
            .spawn();
        let mut child = child.map_err(|error| format!("Could not execute user command: {command}: {error}"))?;
        self.0.spawn(async move {
            let _how_it_ended_is_its_own = child.wait().await;
        });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use aria2::option::Row;

    use super::*;

    #[test]
    fn the_command_for_what_stopped_stands_in_for_the_two_of_how() {
        let mut options = Options::default();
        for name in ["on-download-stop", "on-download-error"] {
            options.put(Row::of(name).unwrap(), name.to_owned(), false);
        }
        let hooks = Hooks::new(&options);
        assert_eq!(
            (hooks.command(Kind::Start), hooks.command(Kind::BtComplete)),
            (None, None)
        );
        assert_eq!(hooks.command(Kind::Stop), Some("on-download-stop"));
        assert_eq!(hooks.command(Kind::Complete), Some("on-download-stop"));
        assert_eq!(hooks.command(Kind::Error), Some("on-download-error"));
    }
}
