//! Finds the program of a tool.

use std::{
    env,
    ffi::OsStr,
    path::{Path, PathBuf},
};

use crate::{Choice, Tool, ToolError, sys};

/// The program that `choice` means.
pub(crate) fn locate(tool: Tool, choice: &Choice, path: &OsStr) -> Result<PathBuf, ToolError> {
    match choice {
        Choice::Off => Err(ToolError::Off { tool }),
        Choice::Auto => search(tool, path).ok_or(ToolError::NotFound { tool }),
        Choice::At(program) if is_program(program) => Ok(program.clone()),
        Choice::At(program) => Err(ToolError::NotExecutable {
            tool,
            path: program.clone(),
        }),
    }
}

/// The first program of that name. Relative directories of `PATH` are left out: what they mean depends on where the
/// service was started.
pub(crate) fn search(tool: Tool, path: &OsStr) -> Option<PathBuf> {
    let directories = env::split_paths(path).filter(|directory| directory.is_absolute());
    let mut programs = directories.map(|directory| directory.join(tool.name()));
    programs.find(|program| is_program(program))
}

fn is_program(path: &Path) -> bool {
    path.is_file() && sys::is_executable(path)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt as _};

    use super::*;

    #[test]
    fn the_first_program_in_absolute_directories_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let [empty, first, second] = ["empty", "first", "second"].map(|name| folder.path().join(name));
        for directory in [&empty, &first, &second] {
            fs::create_dir(directory).unwrap();
        }
        fs::create_dir(empty.join("ffmpeg")).unwrap();
        fs::write(first.join("yt-dlp"), "").unwrap();
        for directory in [&first, &second] {
            fs::write(directory.join("ffmpeg"), "").unwrap();
            fs::set_permissions(directory.join("ffmpeg"), fs::Permissions::from_mode(0o755)).unwrap();
        }
        let path = env::join_paths([Path::new("."), &empty, &first, &second]).unwrap();
        let found = locate(Tool::Ffmpeg, &Choice::Auto, &path);
        assert_eq!(found.unwrap(), first.join("ffmpeg"));
        // It is no program for want of permission.
        let found = locate(Tool::YtDlp, &Choice::Auto, &path);
        assert!(matches!(found, Err(ToolError::NotFound { .. })), "{found:?}");
        let found = locate(Tool::YtDlp, &Choice::At(first.join("yt-dlp")), &path);
        assert!(matches!(found, Err(ToolError::NotExecutable { .. })), "{found:?}");
        let found = locate(Tool::Ffmpeg, &Choice::Off, &path);
        assert!(matches!(found, Err(ToolError::Off { .. })), "{found:?}");
    }
}
