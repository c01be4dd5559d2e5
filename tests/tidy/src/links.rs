//! Links of the documentation lead somewhere: to a file, to a heading of a page, or to a test by its name, which is how a
//! claim names what shows it. A number of cases that a link gives is the one that its page gives.

use std::path::{Component, Path, PathBuf};

use crate::files::{File, all_files, check_none, root};

/// A link of a page to something in the workspace.
struct Link<'a> {
    page: &'a File,
    line: usize,
    text: &'a str,
    /// As it is written, without the fragment.
    path: &'a str,
    fragment: &'a str,
}

impl Link<'_> {
    /// Where it leads, seen from the workspace's root.
    fn target(&self) -> PathBuf {
        let mut target = self.page.path.clone();
        if !self.path.is_empty() {
            target.pop();
        }
        for part in Path::new(self.path).components() {
            match part {
                Component::ParentDir => _ = target.pop(),
                Component::Normal(name) => target.push(name),
                _ => {}
            }
        }
        target
    }

    fn complaint(&self, what: &str) -> String {
        let (page, line) = (self.page.path.display(), self.line);
        format!("{page}:{line}: {}#{}: {what}", self.path, self.fragment)
    }
}

fn is_page(file: &File) -> bool {
    file.path.extension().is_some_and(|extension| extension == "md")
}

/// Lines of a page outside of blocks of code, with their numbers.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut is_code = false;
    text.lines().enumerate().filter_map(move |(index, line)| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        (!is_code && !is_fence).then_some((index + 1, line))
    })
}

fn links(page: &File) -> Vec<Link<'_>> {
    let mut links = Vec::new();
    for (line, text) in prose(&page.text) {
        for (at, _) in text.match_indices("](") {
            let destination = text[at + 2..].split(')').next().unwrap_or("");
            if destination.contains("://") || destination.starts_with("mailto:") {
                continue;
            }
            let (path, fragment) = destination.split_once('#').unwrap_or((destination, ""));
            let text = text[..at].rsplit('[').next().unwrap_or("");
            links.push(Link {
                page,
                line,
                text,
                path,
                fragment,
            });
        }
    }
    links
}

/// The fragment by which a heading is linked to.
fn slug(heading: &str) -> String {
    let kept = heading
        .trim()
        .chars()
        .filter(|letter| letter.is_alphanumeric() || " -_".contains(*letter));
    kept.flat_map(char::to_lowercase)
        .map(|letter| if letter == ' ' { '-' } else { letter })
        .collect()
}

fn has_heading(page: &str, fragment: &str) -> bool {
    let headings = prose(page).filter(|(_, line)| line.starts_with('#'));
    let headings = headings.map(|(_, line)| line.trim_start_matches('#'));
    headings.map(slug).any(|known| known == fragment)
}

fn has_test(source: &str, name: &str) -> bool {
    let mut is_test = false;
    source.lines().map(str::trim).any(|line| {
        let is_it = is_test && line.contains(&format!("fn {name}("));
        is_test = line.starts_with("#[test]") || line.starts_with("#[tokio::test") || is_test && line.starts_with("#[");
        is_it
    })
}

#[test]
fn every_link_leads_to_a_file_a_heading_or_a_test() {
    let files = all_files();
    let mut dead = Vec::new();
    for link in files.iter().filter(|file| is_page(file)).flat_map(links) {
        let target = link.target();
        let file = files.iter().find(|file| file.path == target);
        // Pictures are files, and no text.
        let exists = file.is_some() || root().join(&target).exists();
        let is_known = match file {
            _ if link.fragment.is_empty() => true,
            Some(file) if is_page(file) => has_heading(&file.text, link.fragment),
            Some(file) => has_test(&file.text, link.fragment),
            None => false,
        };
        if !exists {
            dead.push(link.complaint("no such file"));
        } else if !is_known {
            dead.push(link.complaint("no such heading or test"));
        }
    }
    check_none(&dead, "links that lead nowhere");
}

#[test]
fn a_number_of_cases_is_the_one_of_the_page_that_lists_them() {
    let files = all_files();
    let mut wrong = Vec::new();
    let mut count = 0;
    for link in files.iter().filter(|file| is_page(file)).flat_map(links) {
        let number = link.text.split(' ').next().unwrap_or("");
        let target = link.target();
        let page = files
            .iter()
            .find(|file| file.path == target && file.text.contains(" ways in which "));
        let Some(page) = page.filter(|_| number.parse::<usize>().is_ok()) else {
            continue;
        };
        count += 1;
        if !page.text.contains(&format!("\n{number} ways in which ")) {
            wrong.push(link.complaint("the page lists another number of cases"));
        }
    }
    assert!(count > 0, "the pages of cases are linked to with their numbers");
    check_none(&wrong, "numbers of cases");
}
