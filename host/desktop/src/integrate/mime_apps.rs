//! `mimeapps.list` (Association between MIME types and applications 1.0.1): which program opens which type. Pure.
//!
//! A default is a list of programs, of which the first that is installed counts. Ours is put in front and taken out again,
//! so that the one before is back without anybody having to remember it.

/// Where defaults stand.
const DEFAULTS: &str = "[Default Applications]";

/// The file with `program` (a desktop file's name) as the first default of `types`.
pub(super) fn with_default(text: &str, program: &str, types: &[&str]) -> String {
    let mut lines: Vec<String> = text.lines().map(ToOwned::to_owned).collect();
    if !lines.iter().any(|line| line.trim() == DEFAULTS) {
        if lines.last().is_some_and(|line| !line.trim().is_empty()) {
            lines.push(String::new());
        }
        lines.push(DEFAULTS.to_owned());
    }
    for kind in types {
        let (start, end) = section(&lines);
        let place = (start..end).find(|at| key_of(&lines[*at]) == Some(*kind));
        match place {
            Some(at) => {
                let others = programs(&lines[at]).filter(|other| *other != program);
                let others: String = others.flat_map(|other| [other, ";"]).collect();
                lines[at] = format!("{kind}={program};{others}");
            }
            None => lines.insert(end_of_entries(&lines, start, end), format!("{kind}={program};")),
        }
    }
    joined(&lines)
}

/// The file without `program` in any default. Other sections and their comments stay as they are.
pub(super) fn without(text: &str, program: &str) -> String {
    let mut lines: Vec<String> = text.lines().map(ToOwned::to_owned).collect();
    let (start, end) = section(&lines);
    for at in (start..end).rev() {
        let Some(kind) = key_of(&lines[at]).map(ToOwned::to_owned) else {
            continue;
        };
        if !programs(&lines[at]).any(|other| other == program) {
            continue;
        }
        let others = programs(&lines[at]).filter(|other| *other != program);
        let others: String = others.flat_map(|other| [other, ";"]).collect();
        if others.is_empty() {
            lines.remove(at);
        } else {
            lines[at] = format!("{kind}={others}");
        }
    }
    joined(&lines)
}

/// The lines between the heading of the defaults and the next one.
fn section(lines: &[String]) -> (usize, usize) {
    let Some(heading) = lines.iter().position(|line| line.trim() == DEFAULTS) else {
        return (lines.len(), lines.len());
    };
    let start = heading + 1;
    let next = lines[start..]
        .iter()
        .position(|line| line.trim_start().starts_with('['));
    (start, next.map_or(lines.len(), |next| start + next))
}

/// Behind the last entry, before empty lines.
fn end_of_entries(lines: &[String], start: usize, end: usize) -> usize {
    let last = (start..end).rev().find(|at| !lines[*at].trim().is_empty());
    last.map_or(start, |at| at + 1)
}

fn key_of(line: &str) -> Option<&str> {
    let (key, _) = line.split_once('=')?;
    Some(key.trim()).filter(|key| !key.starts_with('#'))
}

fn programs(line: &str) -> impl Iterator<Item = &str> {
    let value = line.split_once('=').map_or("", |(_, value)| value);
    value.split(';').map(str::trim).filter(|program| !program.is_empty())
}

fn joined(lines: &[String]) -> String {
    let mut text = lines.join("\n");
    if !text.is_empty() {
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const OURS: &str = "svc.desktop";

    #[test]
    fn the_default_before_is_the_next_one_and_comes_back() {
        let before = "# mine\n[Added Associations]\nx-scheme-handler/magnet=svc.desktop;\n\n[Default Applications]\n\
                      text/html=firefox.desktop\nx-scheme-handler/magnet=transmission.desktop\n\n[Other]\na=b\n";
        let types = ["x-scheme-handler/svc", "x-scheme-handler/magnet"];
        let with = with_default(before, OURS, &types);
        let expected = "# mine\n[Added Associations]\nx-scheme-handler/magnet=svc.desktop;\n\n[Default Applications]\n\
                        text/html=firefox.desktop\nx-scheme-handler/magnet=svc.desktop;transmission.desktop;\n\
                        x-scheme-handler/svc=svc.desktop;\n\n[Other]\na=b\n";
        assert_eq!(with, expected);
        assert_eq!(with_default(&with, OURS, &types), with, "a second time changes nothing");
        let after = without(&with, OURS);
        assert_eq!(after, before.replace("=transmission.desktop", "=transmission.desktop;"));
        assert_eq!(without(&after, OURS), after);
    }

    #[test]
    fn a_file_without_defaults_gets_a_section() {
        let with = with_default("", OURS, &["a/b"]);
        assert_eq!(with, "[Default Applications]\na/b=svc.desktop;\n");
        assert_eq!(without(&with, OURS), "[Default Applications]\n");
        assert_eq!(without("", OURS), "");
        let with = with_default("[Added Associations]\na/b=c.desktop", OURS, &["a/b"]);
        assert_eq!(
            with,
            "[Added Associations]\na/b=c.desktop\n\n[Default Applications]\na/b=svc.desktop;\n"
        );
    }
}
