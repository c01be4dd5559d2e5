//! File names that are safe to make on any file system.

use std::fmt;

use unicode_normalization::UnicodeNormalization as _;

/// The longest name in bytes. Below the 255 that file systems allow, so that suffixes still fit.
pub const MAX_NAME_BYTES: usize = 200;

/// Suffix of a part file.
pub const PART_SUFFIX: &str = ".svcpart";

/// Suffix of a part file's journal.
pub const JOURNAL_SUFFIX: &str = ".svcpart.journal";

/// Suffix of a new journal, before it is renamed over the old one.
pub const NEW_JOURNAL_SUFFIX: &str = ".svcpart.journal-new";

/// The last number tried in `name (n).ext` before the name counts as taken.
pub(crate) const LAST_NUMBER: u32 = 9999;

/// The name of a file without any other.
const FALLBACK: &str = "download";

/// The longest extension that is kept when a name is truncated.
const MAX_EXTENSION_BYTES: usize = 20;

/// Names that Windows reserves for devices, whatever their extension.
const RESERVED: [&str; 6] = ["con", "prn", "aux", "nul", "conin$", "conout$"];

/// One component of a path, never more: no separator, no `..`, no control character, no reserved device name, no dot or
/// space at its end, in Unicode normalisation form C, at most [`MAX_NAME_BYTES`] long. It never ends like a part file
/// or journal: a server must not be able to name a file that a later download would trust. Only created by sanitising.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileName(String);

impl FileName {
    /// Makes a safe name of `text`; an empty result becomes `download`.
    pub fn sanitise(text: &str) -> Self {
        Self::sanitise_or_none(text).unwrap_or_else(|| Self(FALLBACK.to_owned()))
    }

    /// Makes a safe name of `text`, or `None` if nothing usable is left of it.
    pub fn sanitise_or_none(text: &str) -> Option<Self> {
        let replaced = replace(text);
        let trimmed = trim(&replaced);
        if trimmed.is_empty() || trimmed.chars().all(|c| c == '_') {
            return None;
        }
        Some(Self::of_trimmed(trimmed))
    }

    /// Like [`sanitise_or_none`](Self::sanitise_or_none), for a file among others of an archive: it may be hidden, and
    /// its name may be `_`.
    pub fn sanitise_entry(text: &str) -> Option<Self> {
        let replaced = replace(text);
        let trimmed = replaced.trim_start().trim_end_matches(is_trimmed);
        (!trimmed.is_empty()).then(|| Self::of_trimmed(trimmed))
    }

    /// Whether this is a path below a directory, with `/` between safe names, as `sanitise_entry` leaves them.
    pub fn is_path(text: &str) -> bool {
        text.split('/')
            .all(|part| Self::sanitise_entry(part).is_some_and(|name| name.as_str() == part))
    }

    /// Whether Windows would open a device instead of a file of this name.
    pub fn is_device(text: &str) -> bool {
        is_reserved(text)
    }

    fn of_trimmed(trimmed: &str) -> Self {
        let named = if is_reserved(trimmed) {
            format!("_{trimmed}")
        } else {
            trimmed.to_owned()
        };
        let short = shorten(&named, MAX_NAME_BYTES);
        if ends_like_part_file(&short) {
            return Self(format!("{}_", truncate(&short, MAX_NAME_BYTES - 1)));
        }
        Self(short)
    }

    /// This name, and then its numbered alternatives.
    pub fn alternatives(&self) -> impl Iterator<Item = Self> {
        let numbered = (1..=LAST_NUMBER).map(|number| self.numbered(number));
        std::iter::once(self.clone()).chain(numbered)
    }

    /// This name, and then its numbered alternatives for a directory: what follows the last dot stays where it is.
    pub fn directories(&self) -> impl Iterator<Item = Self> {
        let numbered = (1..=LAST_NUMBER).map(|number| self.numbered_before("", number));
        std::iter::once(self.clone()).chain(numbered)
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name without its extension, and the extension with its dot (empty if there is none). Compound endings of
    /// compressed archives (`.tar.gz`) stay together.
    pub fn split_extension(&self) -> (&str, &str) {
        split_extension(&self.0)
    }

    /// The `n`th alternative of the name, `stem (n).ext`. A name that has a number already counts on from it.
    #[must_use]
    pub fn numbered(&self, n: u32) -> Self {
        self.numbered_before(self.split_extension().1, n)
    }

    /// The `n`th alternative of the name, with the number before `extension`, which it ends with.
    fn numbered_before(&self, extension: &str, n: u32) -> Self {
        let stem = &self.0[..self.0.len() - extension.len()];
        let (stem, first) = split_number(stem).unwrap_or((stem, 0));
        let suffix = format!(" ({}){extension}", first.saturating_add(n));
        Self(format!("{}{suffix}", truncate(stem, MAX_NAME_BYTES - suffix.len())))
    }

    /// The name with `suffix` at its end (`.svcpart`).
    pub fn with_suffix(&self, suffix: &str) -> String {
        format!("{}{suffix}", self.0)
    }
}

impl fmt::Display for FileName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The stem before a number of at most three digits, and the number. Longer ones are years: `Film (1999)`.
fn split_number(stem: &str) -> Option<(&str, u32)> {
    let (before, number) = stem.strip_suffix(')')?.rsplit_once(" (")?;
    let is_number = matches!(number.len(), 1..=3) && number.bytes().all(|byte| byte.is_ascii_digit());
    let is_plain = is_number && !number.starts_with('0') && !before.is_empty();
    Some((before, number.parse().ok()?)).filter(|_| is_plain)
}

/// Characters that separate paths, that Windows forbids, or that control a terminal.
fn is_forbidden(c: char) -> bool {
    c.is_control() || matches!(c, '<' | '>' | ':' | '"' | '/' | '\\' | '|' | '?' | '*')
}

/// Invisible characters that change how a name is displayed, such as the overrides that make `exe.jpg` of `gpj.exe`.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2064}' | '\u{2066}'..='\u{206f}' | '\u{feff}')
}

/// Whether some file system could treat `name` as that of a part file or journal: compared without case and without
/// characters that file systems ignore.
fn ends_like_part_file(name: &str) -> bool {
    let seen: String = name.chars().filter(|c| !is_ignorable(*c)).collect();
    // Through upper case, so that letters that share one (`s` and `\u{17f}`) are the same.
    let folded = seen.to_uppercase().to_lowercase();
    [PART_SUFFIX, JOURNAL_SUFFIX, NEW_JOURNAL_SUFFIX]
        .iter()
        .any(|suffix| folded.ends_with(suffix))
}

/// Characters that are ignored where names are compared without case (Unicode's `Default_Ignorable_Code_Point`).
fn is_ignorable(c: char) -> bool {
    is_invisible(c)
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
            | '\u{2065}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{ffa0}' | '\u{fff0}'..='\u{fff8}'
            | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// `text` in normalisation form C, without characters that no name may have.
fn replace(text: &str) -> String {
    let composed: String = text.nfc().filter(|c| !is_invisible(*c)).collect();
    let replaced = composed.chars().map(|c| if is_forbidden(c) { '_' } else { c });
    replaced.collect()
}

fn trim(text: &str) -> &str {
    text.trim_matches(is_trimmed)
}

fn is_trimmed(c: char) -> bool {
    c == '.' || c.is_whitespace()
}

/// `name` as it is compared where two names that differ in case, or in how characters are composed, are one file.
/// Through upper case, so that letters that share one (`s` and `\u{17f}`, `ß` and `ss`) are the same.
pub fn fold(name: &str) -> String {
    if name.is_ascii() {
        return name.to_ascii_lowercase();
    }
    let folded = name.nfc().collect::<String>().to_uppercase().to_lowercase();
    folded.nfc().collect()
}

/// Whether Windows would open a device instead of a file: the part before the first dot counts, in any case, trailing
/// spaces ignored; `COM1` to `COM9` and `LPT1` to `LPT9` also with superscript digits.
fn is_reserved(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or("").trim_end().to_lowercase();
    if RESERVED.contains(&stem.as_str()) {
        return true;
    }
    let digit = stem.strip_prefix("com").or_else(|| stem.strip_prefix("lpt"));
    digit.is_some_and(|rest| {
        matches!(
            rest,
            "1" | "2" | "3" | "4" | "5" | "6" | "7" | "8" | "9" | "¹" | "²" | "³"
        )
    })
}

fn split_extension(name: &str) -> (&str, &str) {
    let Some(dot) = name.rfind('.').filter(|dot| *dot > 0) else {
        return (name, "");
    };
    let extension = &name[dot..];
    if extension.len() < 2 || extension.len() > MAX_EXTENSION_BYTES || extension.contains(' ') {
        return (name, "");
    }
    let stem = &name[..dot];
    let is_compressed = matches!(
        extension.to_ascii_lowercase().as_str(),
        ".gz" | ".bz2" | ".xz" | ".zst" | ".lz" | ".z"
    );
    match stem.to_ascii_lowercase().strip_suffix(".tar") {
        Some(rest) if is_compressed && !rest.is_empty() => name.split_at(rest.len()),
        _ => (stem, extension),
    }
}

/// Truncates `name` to `limit` bytes, keeping its extension.
fn shorten(name: &str, limit: usize) -> String {
    if name.len() <= limit {
        return name.to_owned();
    }
    let (stem, extension) = split_extension(name);
    format!("{}{extension}", truncate(stem, limit - extension.len()))
}

/// The longest start of `text` of at most `limit` bytes that ends between characters and not in a dot or space.
fn truncate(text: &str, limit: usize) -> &str {
    let end = (0..=limit.min(text.len()))
        .rev()
        .find(|end| text.is_char_boundary(*end))
        .unwrap_or(0);
    text[..end].trim_end_matches(is_trimmed)
}

#[cfg(test)]
mod tests;
