//! Which tools exist, which of them the user allows, and what the crate is given at its start.

use std::{
    ffi::OsString,
    fmt,
    path::{Path, PathBuf},
    str::FromStr,
};

use egress::Names;

/// A program that the service can use. There are no others: arguments and output of each are known here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Tool {
    /// Joins audio and video, and changes containers.
    Ffmpeg,
    /// Finds the media of a page.
    YtDlp,
}

impl Tool {
    /// Every tool.
    pub const ALL: [Self; 2] = [Self::Ffmpeg, Self::YtDlp];

    /// The name of the program.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ffmpeg => "ffmpeg",
            Self::YtDlp => "yt-dlp",
        }
    }

    /// The configuration key that allows it; its values are those of [`Choice`].
    pub fn key(self) -> &'static str {
        match self {
            Self::Ffmpeg => "tool_ffmpeg",
            Self::YtDlp => "tool_yt_dlp",
        }
    }
}

impl fmt::Display for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Whether a tool may be used, and which program it is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Choice {
    /// It is never started, except to read its version for `svc doctor`.
    #[default]
    Off,
    /// The first one in `PATH`.
    Auto,
    /// This program; the path is absolute.
    At(PathBuf),
}

/// A text that is no [`Choice`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("must be off, auto (the program in PATH) or the absolute path of the program")]
pub struct InvalidChoice;

impl FromStr for Choice {
    type Err = InvalidChoice;

    fn from_str(text: &str) -> Result<Self, InvalidChoice> {
        match text.trim() {
            "" | "off" => Ok(Self::Off),
            "auto" => Ok(Self::Auto),
            path if Path::new(path).is_absolute() && !path.contains('\0') => Ok(Self::At(path.into())),
            _ => Err(InvalidChoice),
        }
    }
}

/// What the user allows. Nothing by default.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Settings {
    /// For [`Tool::Ffmpeg`].
    pub ffmpeg: Choice,
    /// For [`Tool::YtDlp`].
    pub yt_dlp: Choice,
}

impl Settings {
    /// The choice for `tool`.
    pub fn of(&self, tool: Tool) -> &Choice {
        match tool {
            Tool::Ffmpeg => &self.ffmpeg,
            Tool::YtDlp => &self.yt_dlp,
        }
    }
}

/// How tools are found and started.
#[derive(Debug, Clone)]
pub struct Launcher {
    /// The executable that becomes a supervisor: `svc`.
    pub supervisor: PathBuf,
    /// The arguments with which it runs [`crate::supervisor_main`] with those that follow them.
    pub arguments: Vec<OsString>,
    /// The directories in which programs are searched, separated as in `PATH`; what they get as theirs.
    pub path: OsString,
}

/// What does not change while the service runs.
#[derive(Debug)]
pub struct Config {
    /// How tools are found and started.
    pub launcher: Launcher,
    /// A directory of the service's own for the temporary directories of runs. It is emptied at the start, because a
    /// process that was killed leaves its own there.
    pub scratch: PathBuf,
    /// The resolver for the proxy of [`Tool::YtDlp`].
    pub names: Names,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_are_off_until_the_user_names_them() {
        assert_eq!(Settings::default().of(Tool::Ffmpeg), &Choice::Off);
        for (text, choice) in [
            ("", Choice::Off),
            (" off ", Choice::Off),
            ("auto", Choice::Auto),
            ("/usr/bin/ffmpeg", Choice::At("/usr/bin/ffmpeg".into())),
        ] {
            assert_eq!(text.parse(), Ok(choice), "{text:?}");
        }
        for text in ["ffmpeg", "./ffmpeg", "../bin/ffmpeg", "-h", "/usr/bin/\0"] {
            assert_eq!(text.parse::<Choice>(), Err(InvalidChoice), "{text:?}");
        }
    }
}
