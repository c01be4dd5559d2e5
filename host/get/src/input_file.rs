//! Parser for input files in aria2's format: one file per line, TAB-separated mirrors, indented `name=value` options
//! below it, `#` comments. Pure; [`super::wanted`] interprets the options.

use command::UsageError;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry<'a> {
    /// Counted from 1.
    pub(super) line: usize,
    /// As written; never empty.
    pub(super) urls: Vec<&'a str>,
    /// In order.
    pub(super) options: Vec<FileOption<'a>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FileOption<'a> {
    /// Counted from 1.
    pub(super) line: usize,
    pub(super) name: OptionName,
    /// Without surrounding white space.
    pub(super) value: &'a str,
}

macro_rules! option_names {
    ($($variant:ident = $text:literal),* $(,)?) => {
        /// The options of an input file, by aria2's names.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(super) enum OptionName { $($variant),* }

        impl OptionName {
            /// In the order of messages.
            pub(super) const ALL: &'static [Self] = &[$(Self::$variant),*];

            pub(super) fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text),* }
            }
        }
    };
}

option_names! {
    Out = "out",
    Dir = "dir",
    Checksum = "checksum",
    Header = "header",
    Referer = "referer",
    UserAgent = "user-agent",
    HttpUser = "http-user",
    HttpPassword = "http-passwd",
    AllProxy = "all-proxy",
    Split = "split",
    MaxConnectionPerServer = "max-connection-per-server",
    MinSplitSize = "min-split-size",
    MaxDownloadLimit = "max-download-limit",
    CheckCertificate = "check-certificate",
    RemoteTime = "remote-time",
    LowestSpeedLimit = "lowest-speed-limit",
    MaxFileNotFound = "max-file-not-found",
    CheckIntegrity = "check-integrity",
    NoNetrc = "no-netrc",
    SshHostKey = "ssh-host-key-md",
}

/// Parses the entries of `text` lazily, in order. Ends after the first error.
pub(super) fn entries(text: &str) -> Entries<'_> {
    Entries {
        lines: Lines {
            rest: text.strip_prefix('\u{feff}').unwrap_or(text),
            number: 0,
        },
        has_failed: false,
    }
}

#[derive(Debug, Clone)]
pub(super) struct Entries<'a> {
    lines: Lines<'a>,
    has_failed: bool,
}

impl<'a> Iterator for Entries<'a> {
    type Item = Result<Entry<'a>, UsageError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.has_failed {
            return None;
        }
        let entry = self.entry().transpose();
        self.has_failed = matches!(entry, Some(Err(_)));
        entry
    }
}

impl<'a> Entries<'a> {
    fn entry(&mut self) -> Result<Option<Entry<'a>>, UsageError> {
        let Some((line, text)) = self.lines.next() else {
            return Ok(None);
        };
        if is_indented(text) {
            return Err(refusal(
                line,
                "an option belongs below the URL that it is for; there is none above",
            ));
        }
        let urls = text.split('\t').map(str::trim).filter(|url| !url.is_empty()).collect();
        let mut entry = Entry {
            line,
            urls,
            options: Vec::new(),
        };
        while let Some((line, text)) = self.lines.next_if(is_indented) {
            entry.options.push(option(line, text.trim())?);
        }
        Ok(Some(entry))
    }
}

fn option(line: usize, text: &str) -> Result<FileOption<'_>, UsageError> {
    let Some((name, value)) = text.split_once('=') else {
        return Err(refusal(line, "an option is written name=value"));
    };
    let name = name.trim();
    let Some(known) = OptionName::ALL.iter().find(|known| known.as_str() == name) else {
        let all: Vec<_> = OptionName::ALL.iter().map(|known| known.as_str()).collect();
        return Err(refusal(
            line,
            &format!("unknown option {name:?}; known are {}", all.join(", ")),
        ));
    };
    Ok(FileOption {
        line,
        name: *known,
        value: value.trim(),
    })
}

fn refusal(line: usize, problem: &str) -> UsageError {
    UsageError::new(format!("--input-file, line {line}"), problem)
}

fn is_indented(line: &str) -> bool {
    line.starts_with([' ', '\t'])
}

/// Lines that are neither blank nor comments, with their numbers.
#[derive(Debug, Clone)]
struct Lines<'a> {
    rest: &'a str,
    number: usize,
}

impl<'a> Lines<'a> {
    fn next(&mut self) -> Option<(usize, &'a str)> {
        loop {
            if self.rest.is_empty() {
                return None;
            }
            let (line, rest) = self.rest.split_once('\n').unwrap_or((self.rest, ""));
            self.rest = rest;
            self.number += 1;
            let line = line.trim_end();
            if !line.is_empty() && !line.trim_start().starts_with('#') {
                return Some((self.number, line));
            }
        }
    }

    /// The next line, if `wanted` accepts it.
    fn next_if(&mut self, wanted: impl Fn(&str) -> bool) -> Option<(usize, &'a str)> {
        let before = self.clone();
        let next = self.next()?;
        if wanted(next.1) {
            return Some(next);
        }
        *self = before;
        None
    }
}

#[cfg(test)]
mod tests;
