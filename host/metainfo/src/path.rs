//! Names of files in a torrent: what is refused, and how the rest is made safe for any file system. Pure.

use std::collections::HashMap;

use chardetng::EncodingDetector;
use encoding_rs::Encoding;
use transfer::{FileName, file_name};

use crate::{
    error::{InvalidPath, PathProblem},
    limit::{MAX_COMPONENTS, MAX_PATH_BYTES},
};

/// Characters of a path that an error shows.
const SHOWN: usize = 120;

/// The last number that is tried for names that only became equal by being made safe.
const LAST_NUMBER: u32 = 9999;

/// The paths of a torrent's files: none of two files, none of a file and a directory, whatever the file system makes of
/// case. Its size follows that of the names in the torrent.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    nodes: HashMap<(u32, String), Node>,
}

#[derive(Debug)]
enum Node {
    Directory {
        id: u32,
        name: FileName,
    },
    File {
        /// As the torrent spells it.
        spelled: String,
        /// The last number that was given to another file, because its name became this one by being made safe.
        last_number: u32,
    },
}

impl Tree {
    /// Takes a file's path, and returns it with safe names, joined by `/`.
    pub(crate) fn add(&mut self, spelled: &[String]) -> Result<Box<str>, InvalidPath> {
        let refuse = |problem| refusal(&spelled.join("/"), problem);
        let Some((last, directories)) = spelled.split_last() else {
            return Err(refuse(PathProblem::Empty));
        };
        if spelled.len() > MAX_COMPONENTS {
            return Err(refuse(PathProblem::TooLong));
        }
        let mut path = String::new();
        let mut parent = 0;
        for component in directories {
            let name = safe(component).map_err(refuse)?;
            // The numbers of directories: none is removed, and 0 is the root.
            let next = u32::try_from(self.nodes.len() + 1).unwrap_or(u32::MAX);
            let node = self.nodes.entry((parent, file_name::fold(name.as_str())));
            let node = node.or_insert(Node::Directory { id: next, name });
            let Node::Directory { id, name } = node else {
                return Err(refuse(PathProblem::FileAndDirectory));
            };
            parent = *id;
            path.push_str(name.as_str());
            path.push('/');
        }
        let name = self.take(parent, last).map_err(refuse)?;
        path.push_str(name.as_str());
        Ok(path.into())
    }

    /// Takes a file's name in a directory.
    fn take(&mut self, parent: u32, spelled: &str) -> Result<FileName, PathProblem> {
        let name = safe(spelled)?;
        let key = (parent, file_name::fold(name.as_str()));
        let first = match self.nodes.get_mut(&key) {
            None => 0,
            Some(Node::Directory { .. }) => return Err(PathProblem::FileAndDirectory),
            Some(Node::File { spelled: other, .. }) if other == spelled => return Err(PathProblem::Duplicate),
            Some(Node::File { spelled: other, .. }) if file_name::fold(other) == file_name::fold(spelled) => {
                return Err(PathProblem::Case);
            }
            Some(Node::File { last_number, .. }) => {
                // Counting on from the last one: a torrent of such names costs no more than its length.
                *last_number += 1;
                *last_number
            }
        };
        let mut taken = name.clone();
        for number in first..=LAST_NUMBER {
            if number > 0 {
                taken = name.numbered(number);
            }
            let free = (parent, file_name::fold(taken.as_str()));
            if self.nodes.contains_key(&free) {
                continue;
            }
            if number > 0
                && let Some(Node::File { last_number, .. }) = self.nodes.get_mut(&key)
            {
                *last_number = number;
            }
            let spelled = spelled.to_owned();
            self.nodes.insert(
                free,
                Node::File {
                    spelled,
                    last_number: 0,
                },
            );
            return Ok(taken);
        }
        Err(PathProblem::Duplicate)
    }
}

/// The error for a path.
pub(crate) fn refusal(path: &str, problem: PathProblem) -> InvalidPath {
    let mut shown: String = path.chars().take(SHOWN).flat_map(char::escape_debug).collect();
    if path.chars().nth(SHOWN).is_some() {
        shown.push('…');
    }
    InvalidPath { path: shown, problem }
}

/// A component of a path, safe for any file system. Refused is what was written to leave a directory or to open a device;
/// other characters that some system forbids are replaced.
pub(crate) fn safe(component: &str) -> Result<FileName, PathProblem> {
    let separators = ['/', '\\'];
    let is_drive = |text: &str| {
        let mut characters = text.chars();
        characters.next().is_some_and(|letter| letter.is_ascii_alphabetic())
            && characters.next() == Some(':')
            && characters.next().is_some_and(|next| separators.contains(&next))
    };
    if component.is_empty() {
        Err(PathProblem::Empty)
    } else if component.len() > MAX_PATH_BYTES {
        Err(PathProblem::TooLong)
    } else if component.contains('\0') {
        Err(PathProblem::Nul)
    } else if component.split(separators).any(|part| matches!(part, "." | "..")) {
        Err(PathProblem::Parent)
    } else if component.starts_with(separators) || is_drive(component) {
        Err(PathProblem::Absolute)
    } else if component.contains('/') {
        Err(PathProblem::Separator)
    } else if FileName::is_device(component) {
        Err(PathProblem::Reserved)
    } else {
        FileName::sanitise_entry(component).ok_or(PathProblem::Empty)
    }
}

/// Reads names. Old programs wrote them in the encoding of their system, and did not say in which.
#[derive(Debug)]
pub(crate) struct Names(Option<&'static Encoding>);

impl Names {
    /// Finds out the encoding of names, from those that are not UTF-8. The same names give the same encoding, whether the
    /// torrent came as a file or from peers.
    pub(crate) fn of<'a>(names: impl Iterator<Item = &'a [u8]>) -> Self {
        let mut detector = EncodingDetector::new();
        let mut is_other = false;
        for name in names.filter(|name| std::str::from_utf8(name).is_err()) {
            is_other = true;
            detector.feed(name, false);
        }
        Self(is_other.then(|| {
            detector.feed(b"", true);
            detector.guess(None, false)
        }))
    }

    pub(crate) fn read(&self, name: &[u8]) -> String {
        if let Ok(text) = std::str::from_utf8(name) {
            return text.to_owned();
        }
        let decoded = self
            .0
            .and_then(|encoding| encoding.decode_without_bom_handling_and_without_replacement(name));
        decoded.map_or_else(
            || String::from_utf8_lossy(name).replace(char::REPLACEMENT_CHARACTER, "_"),
            std::borrow::Cow::into_owned,
        )
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn path(text: &str) -> Vec<String> {
        text.split('|').map(str::to_owned).collect()
    }

    fn problem(component: &str) -> Option<PathProblem> {
        safe(component).err()
    }

    #[test]
    fn what_leaves_a_directory_is_refused_by_its_name() {
        for (component, expected) in [
            ("..", PathProblem::Parent),
            (".", PathProblem::Parent),
            ("a/../b", PathProblem::Parent),
            ("a\\..\\b", PathProblem::Parent),
            ("/etc", PathProblem::Absolute),
            ("\\\\server\\share", PathProblem::Absolute),
            ("C:\\Windows", PathProblem::Absolute),
            ("c:/x", PathProblem::Absolute),
            ("a/b", PathProblem::Separator),
            ("a\0b", PathProblem::Nul),
            ("", PathProblem::Empty),
            ("...", PathProblem::Empty),
            ("con", PathProblem::Reserved),
            ("AUX.h", PathProblem::Reserved),
        ] {
            assert_eq!(problem(component), Some(expected), "{component:?}");
        }
        for (component, expected) in [("a:b", "a_b"), ("a\\b", "a_b"), (".hidden", ".hidden"), ("x.", "x")] {
            assert_eq!(safe(component).unwrap().as_str(), expected);
        }
    }

    #[test]
    fn two_files_never_share_a_path() {
        let mut tree = Tree::default();
        assert_eq!(&*tree.add(&path("d|a")).unwrap(), "d/a");
        let refused = |tree: &mut Tree, spelled| tree.add(&path(spelled)).unwrap_err().problem;
        assert_eq!(refused(&mut tree, "d|a"), PathProblem::Duplicate);
        assert_eq!(refused(&mut tree, "d|A"), PathProblem::Case);
        assert_eq!(refused(&mut tree, "D|A"), PathProblem::Case);
        assert_eq!(refused(&mut tree, "d"), PathProblem::FileAndDirectory);
        assert_eq!(refused(&mut tree, "d|a|b"), PathProblem::FileAndDirectory);
        // The first spelling of a directory is that of all its files.
        assert_eq!(&*tree.add(&path("D|b")).unwrap(), "d/b");
    }

    #[test]
    fn names_that_only_became_equal_are_numbered() {
        let mut tree = Tree::default();
        let names = ["a:b", "a?b", "a*b", "a_b (1)"].map(|name| tree.add(&path(name)).unwrap());
        assert_eq!(
            names.each_ref().map(|name| &**name),
            ["a_b", "a_b (1)", "a_b (2)", "a_b (3)"]
        );
    }

    #[test]
    fn depth_and_length_of_a_path_are_limited() {
        let mut tree = Tree::default();
        let deep = vec!["d".to_owned(); MAX_COMPONENTS + 1];
        assert_eq!(tree.add(&deep).unwrap_err().problem, PathProblem::TooLong);
        let long = vec!["n".repeat(MAX_PATH_BYTES + 1)];
        let refused = tree.add(&long).unwrap_err();
        assert_eq!(refused.problem, PathProblem::TooLong);
        assert!(refused.path.len() < 200);
    }

    #[test]
    fn names_that_are_not_utf_8_are_read_in_their_encoding() {
        // "かな漢字の名前.txt" as Windows wrote it in Japan.
        let name = b"\x82\xa9\x82\xc8\x8a\xbf\x8e\x9a\x82\xcc\x96\xbc\x91\x4f.txt";
        let names = Names::of([&name[..]].into_iter());
        assert_eq!(names.read(name), "かな漢字の名前.txt");
        assert_eq!(names.read("é".as_bytes()), "é");
    }

    proptest! {
        #[test]
        fn a_safe_path_stays_below_its_directory(spelled in prop::collection::vec(any::<String>(), 0..5)) {
            if let Ok(path) = Tree::default().add(&spelled) {
                prop_assert!(!path.starts_with('/') && !path.contains(['\0', '\\']));
                prop_assert!(path.split('/').all(|part| !matches!(part, "" | "." | "..")));
            }
        }

        #[test]
        fn the_paths_of_one_tree_differ_without_case(spelled in prop::collection::vec("[aAb:?]{1,2}(\\|[aAb:?]{1,2})?", 1..30)) {
            let mut tree = Tree::default();
            let mut seen = std::collections::HashSet::new();
            for spelled in spelled {
                if let Ok(taken) = tree.add(&path(&spelled)) {
                    prop_assert!(seen.insert(file_name::fold(&taken)), "{} twice", taken);
                }
            }
        }
    }
}
