//! Commands of curl, as the developer tools of browsers copy them.

use std::{collections::BTreeMap, path::Path};

use protocol::{CreateTaskRequest, RequestBody};
use transfer::SafeUrl;

use crate::{Download, Found, ImportError, words};

/// Options with a value that change nothing here: the service has limits and times of its own, or it is about the terminal.
const IGNORED_WITH_VALUE: [&str; 22] = [
    "--cacert",
    "--capath",
    "--connect-timeout",
    "--continue-at",
    "--cookie-jar",
    "--dns-servers",
    "--dump-header",
    "--interface",
    "--keepalive-time",
    "--max-redirs",
    "--max-time",
    "--parallel-max",
    "--retry-delay",
    "--retry-max-time",
    "--speed-limit",
    "--speed-time",
    "--stderr",
    "--tls-max",
    "--trace",
    "--trace-ascii",
    "--write-out",
    "--ciphers",
];

/// Options without a value that change nothing here, or what the service does anyway.
const IGNORED: [&str; 40] = [
    "--anyauth",
    "--basic",
    "--compressed",
    "--create-dirs",
    "--digest",
    "--fail",
    "--fail-early",
    "--fail-with-body",
    "--ftp-pasv",
    "--globoff",
    "--http1.0",
    "--http1.1",
    "--http2",
    "--http2-prior-knowledge",
    "--http3",
    "--ipv4",
    "--ipv6",
    "--location",
    "--no-buffer",
    "--no-keepalive",
    "--no-progress-meter",
    "--parallel",
    "--path-as-is",
    "--progress-bar",
    "--proto-default",
    "--raw",
    "--remote-header-name",
    "--remote-name",
    "--remote-name-all",
    "--retry-all-errors",
    "--retry-connrefused",
    "--show-error",
    "--silent",
    "--ssl-reqd",
    "--tcp-fastopen",
    "--tcp-nodelay",
    "--tlsv1.2",
    "--tlsv1.3",
    "--tr-encoding",
    "--verbose",
];

/// The long form of a letter; `None` if it is unknown.
fn long(letter: char) -> Option<&'static str> {
    Some(match letter {
        '#' => "--progress-bar",
        '0' => "--http1.0",
        '4' => "--ipv4",
        '6' => "--ipv6",
        'A' => "--user-agent",
        'C' => "--continue-at",
        'D' => "--dump-header",
        'F' => "--form",
        'G' => "--get",
        'H' => "--header",
        'I' => "--head",
        'J' => "--remote-header-name",
        'L' => "--location",
        'N' => "--no-buffer",
        'O' => "--remote-name",
        'S' => "--show-error",
        'T' => "--upload-file",
        'X' => "--request",
        'Y' => "--speed-limit",
        'Z' => "--parallel",
        'b' => "--cookie",
        'c' => "--cookie-jar",
        'd' => "--data",
        'e' => "--referer",
        'f' => "--fail",
        'g' => "--globoff",
        'k' => "--insecure",
        'm' => "--max-time",
        'o' => "--output",
        'r' => "--range",
        's' => "--silent",
        'u' => "--user",
        'v' => "--verbose",
        'w' => "--write-out",
        'x' => "--proxy",
        'y' => "--speed-time",
        _ => return None,
    })
}

/// Headers that the service decides itself: for each of its connections another value is right.
const OWN_HEADERS: [&str; 8] = [
    "accept-encoding",
    "connection",
    "content-length",
    "host",
    "if-modified-since",
    "if-none-match",
    "if-range",
    "range",
];

/// Reads commands in a text, one after the other.
pub fn commands(text: &str) -> Result<Found, ImportError> {
    let mut found = Found::default();
    match words::commands(text) {
        Ok(commands) => {
            for command in commands {
                add(&mut found, command)?;
            }
        }
        Err(error) => found.refuse("curl", error.to_string()),
    }
    Ok(found)
}

/// Reads the words of one command, as a shell has split them; with or without `curl` at its beginning.
pub fn command(words: Vec<String>) -> Result<Found, ImportError> {
    let mut found = Found::default();
    add(&mut found, words)?;
    Ok(found)
}

fn add(found: &mut Found, words: Vec<String>) -> Result<(), ImportError> {
    let program = words.first().map(String::as_str).unwrap_or_default();
    let is_curl = Path::new(program).file_stem().is_some_and(|name| name == "curl");
    let mut asked = Asked::default();
    if let Err(reason) = asked.read(words.into_iter().skip(usize::from(is_curl))) {
        let title = asked
            .urls
            .first()
            .map_or_else(|| "curl".to_owned(), ToString::to_string);
        found.refuse(title, reason);
        return Ok(());
    }
    let is_one = asked.urls.len() == 1;
    let urls = std::mem::take(&mut asked.urls);
    if urls.is_empty() {
        found.refuse("curl", "the command names no URL");
    }
    for (number, url) in urls.into_iter().enumerate() {
        let output = asked.outputs.get(number).map(String::as_str).unwrap_or_default();
        match asked.request(&url, output) {
            Ok(request) => {
                let key = serde_json::to_vec(&request).unwrap_or_default();
                found.add(Download {
                    title: url.to_string(),
                    request,
                    torrent: None,
                    key: [b"curl\0", &key[..]].concat(),
                })?;
            }
            Err(reason) => found.refuse(url.to_string(), reason),
        }
    }
    if !is_one && !asked.request.cookies.is_empty() {
        found.note("cookies of a command with several URLs go to each of them, as by curl");
    }
    Ok(())
}

/// What a command asks for.
#[derive(Default)]
struct Asked {
    request: CreateTaskRequest,
    urls: Vec<SafeUrl>,
    outputs: Vec<String>,
    directory: String,
    data: Vec<String>,
    form: BTreeMap<String, Vec<String>>,
    is_json: bool,
    data_is_query: bool,
}

impl Asked {
    fn read(&mut self, mut words: impl Iterator<Item = String>) -> Result<(), String> {
        let mut only_urls = false;
        while let Some(word) = words.next() {
            if only_urls || !word.starts_with('-') || word == "-" {
                self.url(&word)?;
            } else if word == "--" {
                only_urls = true;
            } else if word.starts_with("--") {
                let (name, given) = match word.split_once('=') {
                    Some((name, value)) => (name, Some(value.to_owned())),
                    None => (word.as_str(), None),
                };
                self.option(name, || given.or_else(|| words.next()))?;
            } else {
                self.letters(&word[1..], &mut words)?;
            }
        }
        Ok(())
    }

    /// Letters together, of which the last may have a value behind it.
    fn letters(&mut self, letters: &str, words: &mut impl Iterator<Item = String>) -> Result<(), String> {
        let mut rest = letters.chars();
        while let Some(letter) = rest.next() {
            let name = long(letter).ok_or_else(|| unknown(&format!("-{letter}")))?;
            let mut is_used = false;
            let behind = rest.as_str().to_owned();
            self.option(name, || {
                is_used = true;
                if behind.is_empty() { words.next() } else { Some(behind) }
            })?;
            if is_used {
                return Ok(());
            }
        }
        Ok(())
    }

    fn url(&mut self, text: &str) -> Result<(), String> {
        let with_scheme = |error| {
            if text.contains("://") {
                Err(error)
            } else {
                SafeUrl::parse(&format!("http://{text}"))
            }
        };
        let url = SafeUrl::parse(text)
            .or_else(with_scheme)
            .map_err(|error| error.to_string())?;
        self.urls.push(url);
        Ok(())
    }

    fn option(&mut self, name: &str, value: impl FnOnce() -> Option<String>) -> Result<(), String> {
        let value = || value().ok_or_else(|| format!("{name} has no value; paste the whole command"));
        let request = &mut self.request;
        match name {
            "--url" => return self.url(&value()?),
            "--header" => self.header(&value()?),
            "--cookie" => {
                let cookies = value()?;
                if !cookies.contains('=') {
                    return Err("--cookie names a file; import it with svc cookies import".to_owned());
                }
                request.cookies = cookies;
            }
            "--user-agent" => request.user_agent = value()?,
            "--referer" => {
                let referrer = value()?;
                referrer
                    .strip_suffix(";auto")
                    .unwrap_or(&referrer)
                    .clone_into(&mut request.referrer);
            }
            "--user" => {
                let login = value()?;
                let (user, password) = login.split_once(':').unwrap_or((&login, ""));
                user.clone_into(&mut request.http_user);
                password.clone_into(&mut request.http_password);
            }
            "--oauth2-bearer" => {
                let token = value()?;
                self.header(&format!("Authorization: Bearer {token}"));
            }
            "--proxy" | "--preproxy" | "--socks5" | "--socks5-hostname" | "--socks4" => {
                request.proxy_url = proxy(name, value()?);
            }
            "--insecure" => request.ignore_tls_errors = true,
            "--request" => request.method = Some(value()?).filter(|method| method != "GET"),
            "--data" | "--data-raw" | "--data-binary" | "--data-ascii" | "--data-urlencode" | "--json" => {
                let data = value()?;
                if data.starts_with('@') && name != "--data-raw" {
                    return Err(format!("{name} names a file, which is not read: write its text"));
                }
                self.is_json |= name == "--json";
                self.data.push(if name == "--data-urlencode" {
                    encoded(&data)
                } else {
                    data
                });
            }
            "--form" | "--form-string" => {
                let field = value()?;
                let (field, text) = field.split_once('=').ok_or("--form is written name=value")?;
                if name == "--form" && text.starts_with(['@', '<']) {
                    return Err("--form names a file; uploads are not downloads".to_owned());
                }
                self.form.entry(field.to_owned()).or_default().push(text.to_owned());
            }
            "--get" => self.data_is_query = true,
            "--output" => self.outputs.push(value()?),
            "--output-dir" => self.directory = value()?,
            "--limit-rate" => {
                request.speed_limit_bytes = rate(&value()?).ok_or("--limit-rate is a number such as 500K")?;
            }
            "--retry" => {
                let retries: u32 = value()?.parse().map_err(|_| "--retry is a number")?;
                request.max_tries = Some(retries.saturating_add(1));
            }
            "--remote-time" => request.use_server_time = Some(true),
            "--head" | "--upload-file" | "--range" => {
                return Err(format!("{name} asks for no whole file"));
            }
            name if IGNORED_WITH_VALUE.contains(&name) => drop(value()?),
            name if IGNORED.contains(&name) => {}
            name => return Err(unknown(name)),
        }
        Ok(())
    }

    fn header(&mut self, text: &str) {
        // "Name;" is an empty header, and "Name:" removes one that curl would send.
        let Some((name, value)) = text.split_once(':') else {
            return;
        };
        let (name, value) = (name.trim(), value.trim().to_owned());
        if value.is_empty() || name.starts_with(':') || OWN_HEADERS.contains(&&*name.to_ascii_lowercase()) {
            return;
        }
        match &*name.to_ascii_lowercase() {
            "cookie" => self.request.cookies = value,
            "user-agent" => self.request.user_agent = value,
            "referer" => self.request.referrer = value,
            _ => {
                let headers = self.request.headers.get_or_insert_default();
                headers.insert(name.to_owned(), value);
            }
        }
    }

    fn request(&self, url: &SafeUrl, output: &str) -> Result<CreateTaskRequest, String> {
        let mut request = self.request.clone();
        url.expose().clone_into(&mut request.url);
        let output = Path::new(output);
        let directory = Path::new(&self.directory).join(output.parent().unwrap_or(Path::new("")));
        if !directory.as_os_str().is_empty() {
            let directory = std::path::absolute(&directory).map_err(|error| error.to_string())?;
            request.save_dir = directory.display().to_string();
        }
        let name = output.file_name().map(|name| name.to_string_lossy().into_owned());
        request.file_name = name.unwrap_or_default();
        if self.is_json {
            let headers = request.headers.get_or_insert_default();
            headers
                .entry("Accept".to_owned())
                .or_insert_with(|| "application/json".to_owned());
        }
        let data = self.data.join(if self.is_json { "" } else { "&" });
        if !self.form.is_empty() {
            request.body = Some(RequestBody::FormData {
                fields: self.form.clone(),
            });
        } else if self.data_is_query && !data.is_empty() {
            let mut with_query = url.as_url().clone();
            let query = with_query
                .query()
                .map_or_else(|| data.clone(), |query| format!("{query}&{data}"));
            with_query.set_query(Some(&query));
            request.url = with_query.to_string();
        } else if !self.data.is_empty() {
            request.body = Some(self.body(&mut request, data));
        }
        if request.body.is_some() && request.method.is_none() {
            request.method = Some("POST".to_owned());
        }
        Ok(request)
    }

    fn body(&self, request: &mut CreateTaskRequest, data: String) -> RequestBody {
        let headers = request.headers.get_or_insert_default();
        let name = headers
            .keys()
            .find(|name| name.eq_ignore_ascii_case("content-type"))
            .cloned();
        let media_type = name.and_then(|name| headers.remove(&name));
        let media_type = media_type.or_else(|| self.is_json.then(|| "application/json".to_owned()));
        match media_type {
            Some(media_type) if !media_type.starts_with("application/x-www-form-urlencoded") => RequestBody::Raw {
                bytes_b64: data_encoding::BASE64.encode(data.as_bytes()),
                content_type: Some(media_type),
            },
            _ => RequestBody::UrlEncoded { raw: data },
        }
    }
}

/// The URL of a proxy; the option says its kind if the value does not.
fn proxy(option: &str, value: String) -> String {
    let scheme = match option {
        _ if value.contains("://") => return value,
        "--socks4" => "socks4",
        "--socks5" | "--socks5-hostname" => "socks5",
        _ => "http",
    };
    format!("{scheme}://{value}")
}

fn unknown(name: &str) -> String {
    format!("{name} is not understood; leave it out, or add the download with svc add")
}

/// A value of `--data-urlencode`: `content`, `=content` or `name=content`.
fn encoded(data: &str) -> String {
    const KEPT: &[u8] = b"-._~";
    let (name, content) = match data.split_once('=') {
        Some((name, content)) => (name, content),
        None => ("", data),
    };
    let mut text = name.to_owned();
    if !name.is_empty() {
        text.push('=');
    }
    for byte in content.bytes() {
        if byte.is_ascii_alphanumeric() || KEPT.contains(&byte) {
            text.push(char::from(byte));
        } else {
            text.push('%');
            text.push_str(&data_encoding::HEXUPPER.encode(&[byte]));
        }
    }
    text
}

/// Bytes per second, with curl's letters for powers of 1024.
fn rate(text: &str) -> Option<u64> {
    let unit = match text.chars().last()?.to_ascii_lowercase() {
        'k' => 1 << 10,
        'm' => 1 << 20,
        'g' => 1 << 30,
        _ => 1,
    };
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    digits.parse::<u64>().ok()?.checked_mul(unit)
}
