//! Names of files. A document is untrusted, and a name that leads elsewhere, or that a file system would understand as
//! another one, is a reason to believe nothing of it: it is refused, not repaired.

use std::{collections::HashMap, fmt};

use transfer::{
    FileName,
    file_name::{MAX_NAME_BYTES, fold},
};

/// The longest name with its directories, in bytes. Paths of 4,096 bytes are what Linux takes, directory included.
const MAX_PATH_BYTES: usize = 1024;

/// The most directories of a name.
const MAX_DIRECTORIES: usize = 16;

/// Why a name is refused. Messages follow the name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidName {
    /// Empty, or a part of it is.
    #[error("is empty or has an empty part")]
    Empty,
    /// `/x`, `\x` or `C:x`.
    #[error("is an absolute path")]
    Absolute,
    /// `.` or `..`.
    #[error("leaves its directory")]
    Traversal,
    /// A control character, NUL included.
    #[error("has a control character")]
    Control,
    /// A backslash, a colon or another character with which Windows names something else.
    #[error("has a character that is not allowed in file names, one of \\ : * ? \" < > |")]
    Character,
    /// `.ssh`, `.config`.
    #[error("is hidden: a part of it begins with a dot")]
    Hidden,
    /// `CON`, `nul.txt`.
    #[error("is reserved for a device by Windows")]
    Reserved,
    /// `x.` and `x ` are `x` for Windows.
    #[error("has a part that begins or ends with a space, or ends with a dot")]
    Trimmed,
    /// More than [`MAX_PATH_BYTES`], or a part that no file system takes.
    #[error(
        "is too long: the limit is {MAX_PATH_BYTES} bytes, {MAX_NAME_BYTES} for each part, and {MAX_DIRECTORIES} directories"
    )]
    TooLong,
    /// It is another one when it is made safe, such as that of a part file.
    #[error("is not one that is given to files here")]
    Unusable,
    /// Two files differ in case or composition only, or one is the directory of the other.
    #[error("is also that of another file of the document, at least where upper and lower case are the same")]
    Taken,
}

/// The name of a file with its directories, each of them safe to make.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilePath {
    /// Outermost first.
    pub directories: Vec<FileName>,
    /// The file's own name.
    pub name: FileName,
}

impl FilePath {
    /// Checks a name as a document has it.
    pub fn parse(text: &str) -> Result<Self, InvalidName> {
        if text.len() > MAX_PATH_BYTES {
            return Err(InvalidName::TooLong);
        }
        if text.chars().any(char::is_control) {
            return Err(InvalidName::Control);
        }
        let has_drive =
            text.as_bytes().first().is_some_and(u8::is_ascii_alphabetic) && text.as_bytes().get(1) == Some(&b':');
        if text.starts_with(['/', '\\']) || has_drive {
            return Err(InvalidName::Absolute);
        }
        // A backslash separates directories on Windows, so what is behind one is looked at before it is refused.
        if text.split(['/', '\\']).any(|part| matches!(part, "." | "..")) {
            return Err(InvalidName::Traversal);
        }
        let mut directories = text.split('/').map(part).collect::<Result<Vec<_>, _>>()?;
        let name = directories.pop().ok_or(InvalidName::Empty)?;
        if directories.len() > MAX_DIRECTORIES {
            return Err(InvalidName::TooLong);
        }
        Ok(Self { directories, name })
    }

    /// What two paths have in common that are one where case does not count.
    fn key(parts: &[&FileName]) -> String {
        let folded: Vec<_> = parts.iter().map(|part| fold(part.as_str())).collect();
        folded.join("/")
    }

    fn parts(&self) -> Vec<&FileName> {
        self.directories.iter().chain([&self.name]).collect()
    }
}

impl fmt::Display for FilePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for directory in &self.directories {
            write!(f, "{directory}/")?;
        }
        self.name.fmt(f)
    }
}

fn part(text: &str) -> Result<FileName, InvalidName> {
    if text.is_empty() {
        return Err(InvalidName::Empty);
    }
    if text.contains(['\\', ':', '*', '?', '"', '<', '>', '|']) {
        return Err(InvalidName::Character);
    }
    if text.starts_with('.') {
        return Err(InvalidName::Hidden);
    }
    if text.trim() != text || text.ends_with('.') {
        return Err(InvalidName::Trimmed);
    }
    if FileName::is_device(text) {
        return Err(InvalidName::Reserved);
    }
    if text.len() > MAX_NAME_BYTES {
        return Err(InvalidName::TooLong);
    }
    // Composition changes a name that is fine; nothing else that sanitising changes is.
    let safe = FileName::sanitise_entry(text).filter(|safe| fold(safe.as_str()) == fold(text));
    safe.ok_or(InvalidName::Unusable)
}

/// The names of a document's files so far.
#[derive(Debug, Default)]
pub(crate) struct Names {
    /// Whether it is a file; otherwise it is a directory of one. Directories once again as they were first written.
    taken: HashMap<String, Option<String>>,
}

impl Names {
    /// Takes a name, or refuses it if another file has it.
    pub(crate) fn take(&mut self, path: &FilePath) -> Result<(), InvalidName> {
        let parts = path.parts();
        for depth in 1..parts.len() {
            let (key, written) = (FilePath::key(&parts[..depth]), written(&parts[..depth]));
            match self.taken.get(&key) {
                None => drop(self.taken.insert(key, Some(written))),
                Some(Some(known)) if *known == written => {}
                Some(_) => return Err(InvalidName::Taken),
            }
        }
        match self.taken.insert(FilePath::key(&parts), None) {
            None => Ok(()),
            Some(_) => Err(InvalidName::Taken),
        }
    }
}

fn written(parts: &[&FileName]) -> String {
    let parts: Vec<_> = parts.iter().map(|part| part.as_str()).collect();
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_that_lead_elsewhere_are_refused_by_what_is_wrong() {
        use InvalidName::*;
        for (name, why) in [
            ("", Empty),
            ("a//b", Empty),
            ("a/", Empty),
            ("/etc/passwd", Absolute),
            ("\\\\server\\share", Absolute),
            ("C:\\x", Absolute),
            ("c:x", Absolute),
            ("..", Traversal),
            ("../.ssh/authorized_keys", Traversal),
            ("a/../../b", Traversal),
            ("a\\..\\b", Traversal),
            ("a/./b", Traversal),
            ("a\0b", Control),
            ("a\u{1b}[2J", Control),
            ("a\nb", Control),
            ("a\\b", Character),
            ("a/b:c", Character),
            ("a?", Character),
            (".ssh/authorized_keys", Hidden),
            ("x/.config", Hidden),
            ("...", Hidden),
            ("CON", Reserved),
            ("a/nul.txt", Reserved),
            ("com1", Reserved),
            ("a.", Trimmed),
            (" a", Trimmed),
            ("a /b", Trimmed),
            ("x.svcpart", Unusable),
            ("x.svcpart.journal", Unusable),
            (&"x".repeat(201), TooLong),
            (&"x/".repeat(600), TooLong),
            (&format!("{}x", "x/".repeat(17)), TooLong),
        ] {
            assert_eq!(FilePath::parse(name), Err(why), "{name:?}");
        }
        for name in ["a", "a/b.iso", "Ünï/kod é.iso", "a b/c (1).tar.gz", "_"] {
            assert_eq!(FilePath::parse(name).unwrap().to_string(), name);
        }
    }

    #[test]
    fn two_files_never_have_one_name() {
        let take = |names: &[&str]| {
            let mut taken = Names::default();
            names
                .iter()
                .try_for_each(|name| taken.take(&FilePath::parse(name).unwrap()))
        };
        for names in [
            &["a", "a"][..],
            &["a", "A"],
            &["d/a", "D/a"],
            &["d/a", "D/b"],
            &["a", "a/b"],
            &["a/b", "A"],
            &["é", "e\u{301}"],
        ] {
            assert_eq!(take(names), Err(InvalidName::Taken), "{names:?}");
        }
        assert_eq!(take(&["a", "b", "d/a", "d/b", "d/e/a"]), Ok(()));
    }

    proptest! {
        #[test]
        fn what_is_taken_stays_inside_its_directory(text in "[a.b/\\\\:~ \\x00é-]{0,24}") {
            if let Ok(path) = FilePath::parse(&text) {
                for part in path.parts() {
                    prop_assert!(!part.as_str().contains(['/', '\\', '\0']) && !part.as_str().starts_with('.'));
                }
                prop_assert_eq!(FilePath::parse(&path.to_string()), Ok(path));
            }
        }
    }
}
