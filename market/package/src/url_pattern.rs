//! Patterns of URLs, and the table that finds the plugins for a URL. The table has the patterns of all plugins and is
//! made when they change, so that no plugin code runs to find out whether a plugin handles a URL.

use std::{cmp::Reverse, collections::HashMap, fmt, str::FromStr};

use url::Url;

/// The longest pattern in bytes.
const MAX_PATTERN_BYTES: usize = 512;

/// `https://drive.acme.com/s/*`: which URLs a plugin claims. The scheme is `https`, `http` or `*` for both; the host is
/// a name, `*.name` (the names below it) or `*`, any host on any port; a port is else the scheme's own unless it is
/// written. In the path, `*` stands for any text. A pattern with `?` is compared with path and query, one without it
/// with the path alone.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct UrlPattern {
    scheme: Schemes,
    host: Hosts,
    port: Option<u16>,
    path: Glob,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Schemes {
    Https,
    Http,
    Both,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Hosts {
    Exact(String),
    Below(String),
    Any,
}

/// A text in which `*` stands for any text, split at the stars.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Glob {
    pieces: Vec<String>,
    has_query: bool,
}

/// Why a text is not a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidUrlPattern {
    /// The text does not have the form of a pattern.
    #[error("a pattern is scheme://host/path, with https, http or * as scheme and name, *.name or * as host")]
    Form,
    /// The text is too long.
    #[error("a pattern has at most {MAX_PATTERN_BYTES} bytes")]
    TooLong,
}

/// How specific a pattern is; more specific patterns go first. An exact host is more specific than the names below a
/// host, a longer name than a shorter one, and a path with more letters than one with fewer.
type Specificity = (u8, usize, usize);

/// The most sites of a text. Each of them is looked up for the URLs of its own host only.
const MAX_SITES: usize = 1000;

impl UrlPattern {
    /// The patterns of all URLs of the sites that a user names, one a line: a host with those below it, with a port if it is
    /// not the usual one, or `*` for every site. What is no host is left out.
    pub fn of_sites(lines: &str) -> impl Iterator<Item = Self> {
        let lines = lines.lines().map(str::trim).filter(|line| !line.is_empty());
        let hosts = lines.take(MAX_SITES).flat_map(|line| match line {
            "*" => vec!["*".to_owned()],
            host => {
                let host = host.strip_prefix("*.").unwrap_or(host);
                vec![host.to_owned(), format!("*.{host}")]
            }
        });
        // A slash would end the host, and more would be a path, which is not asked for.
        let hosts = hosts.filter(|host| !host.contains('/'));
        hosts.filter_map(|host| format!("*://{host}/*").parse().ok())
    }

    /// Whether the pattern claims the URL.
    pub fn claims(&self, url: &Url) -> bool {
        let host = url.host_str().unwrap_or("");
        let claims_host = match &self.host {
            Hosts::Exact(name) => host == name,
            Hosts::Below(name) => suffixes(host).skip(1).any(|suffix| suffix == name),
            Hosts::Any => !host.is_empty(),
        };
        claims_host && self.claims_rest(url)
    }

    fn claims_rest(&self, url: &Url) -> bool {
        let claims_scheme = match self.scheme {
            Schemes::Https => url.scheme() == "https",
            Schemes::Http => url.scheme() == "http",
            Schemes::Both => matches!(url.scheme(), "https" | "http"),
        };
        let claims_port = self.host == Hosts::Any || url.port() == self.port;
        claims_scheme && claims_port && self.path.claims(url)
    }

    fn specificity(&self) -> Specificity {
        let (rank, length) = match &self.host {
            Hosts::Exact(name) => (2, name.len()),
            Hosts::Below(name) => (1, name.len()),
            Hosts::Any => (0, 0),
        };
        (rank, length, self.path.pieces.iter().map(String::len).sum())
    }
}

impl Glob {
    fn new(text: &str) -> Self {
        Self {
            pieces: text.split('*').map(str::to_owned).collect(),
            has_query: text.contains('?'),
        }
    }

    fn claims(&self, url: &Url) -> bool {
        match url.query().filter(|_| self.has_query) {
            Some(query) => self.matches(&format!("{}?{query}", url.path())),
            None => self.matches(url.path()),
        }
    }

    /// Whether the pieces occur in `text` in their order, the first at its start and the last at its end. Taking the
    /// first occurrence of each piece is correct and needs no backtracking, so the time is linear in the length of the
    /// URL.
    fn matches(&self, text: &str) -> bool {
        let Some((first, rest)) = self.pieces.split_first() else {
            return false;
        };
        let Some((last, middle)) = rest.split_last() else {
            return text == first;
        };
        let Some(mut left) = text.strip_prefix(first.as_str()) else {
            return false;
        };
        for piece in middle {
            let Some(at) = left.find(piece.as_str()) else {
                return false;
            };
            left = &left[at + piece.len()..];
        }
        left.ends_with(last.as_str())
    }
}

impl FromStr for UrlPattern {
    type Err = InvalidUrlPattern;

    fn from_str(text: &str) -> Result<Self, InvalidUrlPattern> {
        if text.len() > MAX_PATTERN_BYTES {
            return Err(InvalidUrlPattern::TooLong);
        }
        let (scheme, rest) = text.split_once("://").ok_or(InvalidUrlPattern::Form)?;
        let scheme = match scheme {
            "https" => Schemes::Https,
            "http" => Schemes::Http,
            "*" => Schemes::Both,
            _ => return Err(InvalidUrlPattern::Form),
        };
        let slash = rest.find('/').ok_or(InvalidUrlPattern::Form)?;
        let (authority, path) = rest.split_at(slash);
        if path.contains('#') {
            return Err(InvalidUrlPattern::Form);
        }
        let path = Glob::new(path);
        if authority == "*" {
            let host = Hosts::Any;
            return Ok(Self {
                scheme,
                host,
                port: None,
                path,
            });
        }
        let (is_below, name) = match authority.strip_prefix("*.") {
            Some(name) => (true, name),
            None => (false, authority),
        };
        if name.contains(['*', '@', '?', '#', '\\']) {
            return Err(InvalidUrlPattern::Form);
        }
        // Parsed as a URL, so that the name is spelled as in the URLs it is compared with.
        let form = if scheme == Schemes::Http { "http" } else { "https" };
        let url = Url::parse(&format!("{form}://{name}/")).map_err(|_| InvalidUrlPattern::Form)?;
        let name = url.host_str().ok_or(InvalidUrlPattern::Form)?.to_owned();
        Ok(Self {
            scheme,
            host: if is_below {
                Hosts::Below(name)
            } else {
                Hosts::Exact(name)
            },
            port: url.port(),
            path,
        })
    }
}

impl fmt::Display for UrlPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.scheme {
            Schemes::Https => "https://",
            Schemes::Http => "http://",
            Schemes::Both => "*://",
        })?;
        match &self.host {
            Hosts::Exact(name) => f.write_str(name)?,
            Hosts::Below(name) => write!(f, "*.{name}")?,
            Hosts::Any => f.write_str("*")?,
        }
        if let Some(port) = self.port {
            write!(f, ":{port}")?;
        }
        f.write_str(&self.path.pieces.join("*"))
    }
}

/// A table of patterns, each with a key that identifies its plugin.
#[derive(Debug, Clone)]
pub struct Matcher<K> {
    exact: HashMap<String, Vec<Rule<K>>>,
    below: HashMap<String, Vec<Rule<K>>>,
    any: Vec<Rule<K>>,
}

#[derive(Debug, Clone)]
struct Rule<K> {
    key: K,
    priority: i32,
    pattern: UrlPattern,
}

impl<K: Clone + Ord> Matcher<K> {
    /// Creates a table of `(key, priority, pattern)`.
    pub fn new(rules: impl IntoIterator<Item = (K, i32, UrlPattern)>) -> Self {
        let mut table = Self {
            exact: HashMap::new(),
            below: HashMap::new(),
            any: Vec::new(),
        };
        for (key, priority, pattern) in rules {
            let rules = match &pattern.host {
                Hosts::Exact(name) => table.exact.entry(name.clone()).or_default(),
                Hosts::Below(name) => table.below.entry(name.clone()).or_default(),
                Hosts::Any => &mut table.any,
            };
            rules.push(Rule { key, priority, pattern });
        }
        table
    }

    /// The keys of the patterns that claim the URL: by priority, highest first, then by specificity, then by key.
    pub fn claims(&self, url: &Url) -> Vec<K> {
        let host = url.host_str().unwrap_or("");
        let below = suffixes(host).skip(1).filter_map(|suffix| self.below.get(suffix));
        let any = Some(&self.any).filter(|_| !host.is_empty());
        let mut found: Vec<_> = self
            .exact
            .get(host)
            .into_iter()
            .chain(below)
            .chain(any)
            .flatten()
            .filter(|rule| rule.pattern.claims_rest(url))
            .collect();
        found.sort_by_key(|rule| {
            (
                Reverse(rule.priority),
                Reverse(rule.pattern.specificity()),
                rule.key.clone(),
            )
        });
        let mut keys: Vec<K> = Vec::new();
        for rule in found {
            if !keys.contains(&rule.key) {
                keys.push(rule.key.clone());
            }
        }
        keys
    }
}

/// `a.b.c`, `b.c`, `c`.
fn suffixes(host: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(host), |name| name.split_once('.').map(|(_, rest)| rest))
}

crate::text::text_in_json!(UrlPattern);

#[cfg(test)]
mod tests;
