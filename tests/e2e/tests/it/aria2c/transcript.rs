//! What a run of `aria2c` did and said, without what differs from run to run: times, ids, speeds, places.

use std::{fmt::Write as _, fs, path::Path, process::Output};

use super::content;
use crate::place::Place;

/// Exit code, output, messages and files, a line each. The order of lines counts unless several downloads ran at a time.
pub(super) fn transcript(output: &Output, place: &Place, base: &str) -> Vec<String> {
    let own = place.path().display().to_string();
    let told = |bytes: &[u8], mark: &str| -> Vec<String> {
        let text = String::from_utf8_lossy(bytes);
        let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with("[#"));
        let plain = lines.map(|line| plain(line).replace(&own, "<dir>").replace(base, "{}"));
        plain.map(|line| format!("{mark}{line}")).collect()
    };
    let mut said = told(&output.stdout, "");
    if said.iter().any(|line| line.contains("Downloading 2 item(s)")) {
        said.sort();
    }
    let mut lines = vec![format!("exit {:?}", output.status.code())];
    lines.append(&mut said);
    lines.extend(told(&output.stderr, "stderr: "));
    let mut files = Vec::new();
    list(place.path(), place.path(), &mut files);
    files.sort();
    lines.extend(files);
    lines
}

/// Every file below a directory, and what is in it.
fn list(root: &Path, directory: &Path, files: &mut Vec<String>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            list(root, &path, files);
            continue;
        }
        let name = path.strip_prefix(root).unwrap().display().to_string();
        let what = if content().difference(&path).unwrap().is_none() {
            "the whole file".to_owned()
        } else {
            format!("{} bytes", fs::metadata(&path).unwrap().len())
        };
        files.push(format!("file {name}: {what}"));
    }
}

/// A line without colours, time, connection, source line, id and speed.
fn plain(line: &str) -> String {
    let mut pieces = line.split("\u{1b}[");
    let first = pieces.next().unwrap_or_default().to_owned();
    let coloured = pieces.map(|piece| piece.split_once('m').map_or(piece, |(_, text)| text));
    let mut line = first + &coloured.collect::<String>();
    // `11/22 17:28:08 [NOTICE] …`
    if let Some(at) = line.find(" [").filter(|at| *at == "11/22 17:28:08".len()) {
        line.drain(..=at);
    }
    for (start, end) in [("CUID#", " - "), ("[", ".cc:")] {
        let Some(at) = line.find(start) else { continue };
        let Some(length) = line[at..].find(end) else { continue };
        let until = if end == ".cc:" { "] " } else { end };
        let length = length + line[at + length..].find(until).unwrap_or_default() + until.len();
        line.drain(at..at + length);
    }
    if let Some(at) = line.find("GID#") {
        let id = at + "GID#".len();
        let length = line[id..].find(' ').unwrap_or(line.len() - id);
        line.drain(id..id + length);
    }
    if let [id, state, _speed, path] = line.split('|').collect::<Vec<_>>()[..]
        && id.len() == 6
        && id != "gid   "
    {
        line = format!("gid|{}|speed|{path}", state.trim());
    }
    line.replace("/usr/bin/aria2c", "aria2c")
}

/// The lines of only one of the two, in order: `-` for the first, `+` for the second.
pub(super) fn difference(first: &[String], second: &[String]) -> String {
    // The length of the longest common rest, from each pair of places on.
    let mut rest = vec![vec![0_usize; second.len() + 1]; first.len() + 1];
    for i in (0..first.len()).rev() {
        for j in (0..second.len()).rev() {
            rest[i][j] = if first[i] == second[j] {
                rest[i + 1][j + 1] + 1
            } else {
                rest[i + 1][j].max(rest[i][j + 1])
            };
        }
    }
    let (mut i, mut j, mut text) = (0, 0, String::new());
    while i < first.len() || j < second.len() {
        if i < first.len() && j < second.len() && first[i] == second[j] {
            (i, j) = (i + 1, j + 1);
        } else if j == second.len() || (i < first.len() && rest[i + 1][j] >= rest[i][j + 1]) {
            writeln!(text, "- {}", first[i]).expect("writing to a string");
            i += 1;
        } else {
            writeln!(text, "+ {}", second[j]).expect("writing to a string");
            j += 1;
        }
    }
    text
}
