//! What `svc get` will do: the resolved form of its options, checked as a whole before anything starts.

use std::{
    fs,
    io::{self, Read as _},
    path::{Path, PathBuf},
    time::SystemTime,
};

use engine::{ProxyChoice, TaskSpec};
use transfer::{Checksum, Credentials, FileName, OnConflict, RequestBody, RequestOptions, SafeUrl, Secret};

use super::{
    args::{ConnectionArgs, GetArgs, RequestArgs},
    cookies::CookieJar,
    file_options,
    input_file::{self, Entry},
    request,
};
use crate::cli::UsageError;

/// The largest input file; two million lines.
const MAX_INPUT_BYTES: u64 = 256 * 1024 * 1024;

/// The largest file that `--data-file` sends, as the engine takes it; it is held in memory once per file under way.
const MAX_DATA_BYTES: u64 = 8 * 1024 * 1024;

/// The largest cookie file; browsers keep a few thousand cookies of at most 4 KiB.
const MAX_COOKIES_BYTES: u64 = 32 * 1024 * 1024;

/// The largest password file.
const MAX_PASSWORD_BYTES: u64 = 64 * 1024;

/// What is to be done, and how.
#[derive(Debug)]
pub(super) struct Plan {
    /// Files at a time.
    pub(super) jobs: u16,
    /// For all files together; 0 is no limit.
    pub(super) limit_bytes_per_second: u64,
    /// How many files there are.
    pub(super) count: usize,
    urls: Vec<String>,
    mirrors: Vec<String>,
    /// The text of the input file. Its entries are made from it when their turn comes, so that a long list does not
    /// cost memory for every file in it.
    list: String,
    /// What all files have in common; it has no URL yet.
    pattern: TaskSpec,
    cookies: CookieJar,
    schemes: &'static [&'static str],
}

impl Plan {
    /// Resolves `args`: reads the files they name and checks every value. `schemes` are those that can be moved.
    pub(super) fn new(args: GetArgs, schemes: &'static [&'static str]) -> Result<Self, UsageError> {
        require_one_file(&args)?;
        let list = match &args.files.input_file {
            Some(path) => read_text("--input-file", path, MAX_INPUT_BYTES)?,
            None => String::new(),
        };
        let cookies = match &args.request.load_cookies {
            Some(path) => CookieJar::parse(&read_text("--load-cookies", path, MAX_COOKIES_BYTES)?, unix_seconds())
                .map_err(|problem| UsageError::new("--load-cookies", problem))?,
            None => CookieJar::default(),
        };
        let plan = Self {
            jobs: args.speed.jobs,
            limit_bytes_per_second: args.speed.limit,
            count: 0,
            pattern: pattern(&args)?,
            urls: args.urls,
            mirrors: args.files.mirror,
            list,
            cookies,
            schemes,
        };
        let count = plan.resolve_all().try_fold(0, |count, task| task.map(|_| count + 1))?;
        if count == 0 {
            return Err(UsageError::new("--input-file", "there is no URL in it"));
        }
        Ok(Self { count, ..plan })
    }

    /// The files, in order; each is made when it is asked for.
    pub(super) fn tasks(&self) -> impl Iterator<Item = TaskSpec> {
        self.resolve_all()
            .map(|task| task.expect("every task was resolved once, from the same text, in Plan::new"))
    }

    fn resolve_all(&self) -> impl Iterator<Item = Result<TaskSpec, UsageError>> {
        let given = self.urls.iter().enumerate().map(|(index, url)| {
            let urls = std::iter::once(url).chain(&self.mirrors);
            let names = std::iter::once(format!("URL {}", index + 1)).chain(std::iter::repeat("--mirror".to_owned()));
            self.resolve(names.zip(urls.map(String::as_str)), &[])
        });
        let listed = input_file::entries(&self.list).map(|entry| {
            let Entry { line, urls, options } = entry?;
            self.resolve(
                urls.into_iter().map(|url| (format!("--input-file, line {line}"), url)),
                &options,
            )
        });
        given.chain(listed)
    }

    fn resolve<'a>(
        &self,
        urls: impl Iterator<Item = (String, &'a str)>,
        options: &[input_file::FileOption<'_>],
    ) -> Result<TaskSpec, UsageError> {
        let mut task = self.pattern.clone();
        let mut first_field = String::new();
        for (field, url) in urls {
            task.urls.push(self.url(&field, url)?);
            if first_field.is_empty() {
                first_field = field;
            }
        }
        let own_cookies = self.cookies.for_url(&task.urls[0]);
        if !own_cookies.is_empty() {
            let given = task.request.cookies.expose();
            let separator = if given.is_empty() { "" } else { "; " };
            task.request.cookies = Secret::new(format!("{given}{separator}{own_cookies}"));
        }
        file_options::apply(&mut task, options)?;
        task.validate()
            .map_err(|refusal| UsageError::new(first_field, refusal.to_string()))?;
        Ok(task)
    }

    fn url(&self, field: &str, text: &str) -> Result<SafeUrl, UsageError> {
        let url = SafeUrl::parse(text).map_err(|problem| {
            UsageError::new(field, format!("{problem}; write it whole, such as https://host/file"))
        })?;
        if !self.schemes.contains(&url.scheme()) {
            let known = self.schemes.join(", ");
            return Err(UsageError::new(
                field,
                format!("cannot download {}: URLs; known are {known}", url.scheme()),
            ));
        }
        Ok(url)
    }
}

/// Some options describe one file; they must not be given for several.
fn require_one_file(args: &GetArgs) -> Result<(), UsageError> {
    let is_one = args.urls.len() == 1 && args.files.input_file.is_none();
    let given = [
        ("--out", args.files.out.is_some()),
        ("--checksum", args.files.checksum.is_some()),
        ("--mirror", !args.files.mirror.is_empty()),
    ];
    match given.into_iter().find(|(_, is_given)| *is_given && !is_one) {
        Some((option, _)) => Err(UsageError::new(
            option,
            "describes one file, so it goes with exactly one URL; for several files write it into an --input-file",
        )),
        None => Ok(()),
    }
}

fn pattern(args: &GetArgs) -> Result<TaskSpec, UsageError> {
    let proxy = args
        .connection
        .proxy
        .as_deref()
        .map(|text| request::proxy("--proxy", text))
        .transpose()?;
    let given_dir = args.files.dir.as_deref().unwrap_or(Path::new("."));
    let dir = std::path::absolute(given_dir).map_err(|error| UsageError::new("--dir", error.to_string()))?;
    let mut task = TaskSpec {
        save_dir: Some(dir),
        segments: args.speed.segments,
        max_connections: Some(args.speed.max_connections),
        min_split_bytes: Some(args.speed.min_split),
        request: request_options(&args.request)?,
        proxy: proxy.map_or(ProxyChoice::Direct, ProxyChoice::Through),
        ignore_tls_errors: args.connection.insecure,
        checksum: args
            .files
            .checksum
            .as_deref()
            .map(|text| checksum("--checksum", text))
            .transpose()?,
        on_conflict: Some(OnConflict::from(args.files.conflict)),
        retry: Some(args.connection.retries.policy(args.connection.retry_wait)),
        adopt: !args.files.no_resume,
        use_server_time: Some(args.files.server_time),
        ..TaskSpec::default()
    };
    if let Some(out) = &args.files.out {
        place("--out", &mut task, out)?;
    }
    Ok(task)
}

/// Lets the file of `task` be `out`, which may lead into another directory.
pub(super) fn place(field: &str, task: &mut TaskSpec, out: &Path) -> Result<(), UsageError> {
    let refuse = || UsageError::new(field, "write the name of a file, not of a directory");
    let is_directory = out.to_string_lossy().ends_with(std::path::is_separator);
    let name = out.file_name().filter(|_| !is_directory).ok_or_else(refuse)?;
    task.file_name = Some(FileName::sanitise_or_none(&name.to_string_lossy()).ok_or_else(refuse)?);
    if let (Some(dir), Some(parent)) = (&mut task.save_dir, out.parent()) {
        dir.push(parent);
    }
    Ok(())
}

pub(super) fn checksum(field: &str, text: &str) -> Result<Checksum, UsageError> {
    text.parse().map_err(|error| UsageError::new(field, format!("{error}")))
}

fn request_options(args: &RequestArgs) -> Result<RequestOptions, UsageError> {
    let headers = args
        .header
        .iter()
        .map(|header| request::header("--header", header))
        .collect::<Result<_, _>>()?;
    let text = |field: &str, value: &Option<String>| {
        value
            .as_deref()
            .map_or(Ok(String::new()), |value| request::header_value(field, value))
    };
    let body = body(args)?;
    Ok(RequestOptions {
        method: request::method("--method", args.method.as_deref(), body.is_some())?,
        body,
        headers,
        cookies: Secret::new(text("--cookie", &args.cookie)?),
        referrer: text("--referer", &args.referer)?,
        user_agent: text("--user-agent", &args.user_agent)?,
        credentials: credentials(args)?,
    })
}

fn credentials(args: &RequestArgs) -> Result<Option<Credentials>, UsageError> {
    let Some(user) = args.http_user.clone() else {
        // The variable may be set for another command; only an explicit file is surely meant for this one.
        return match args.http_password_file {
            Some(_) => Err(UsageError::new("--http-password-file", "needs --http-user with it")),
            None => Ok(None),
        };
    };
    let password = match &args.http_password_file {
        Some(path) => {
            let text = read_text("--http-password-file", path, MAX_PASSWORD_BYTES)?;
            text.lines().next().unwrap_or("").to_owned()
        }
        None => args.http_password.clone().unwrap_or_default(),
    };
    Ok(Some(Credentials {
        user,
        password: Secret::new(password),
    }))
}

fn body(args: &RequestArgs) -> Result<Option<RequestBody>, UsageError> {
    if let Some(text) = &args.data {
        return Ok(Some(RequestBody::UrlEncoded(text.clone())));
    }
    if let Some(path) = &args.data_file {
        let bytes = read("--data-file", path, MAX_DATA_BYTES)?;
        return Ok(Some(RequestBody::Raw {
            bytes,
            content_type: None,
        }));
    }
    if args.form.is_empty() {
        return Ok(None);
    }
    request::form("--form", &args.form).map(|fields| Some(RequestBody::FormData(fields)))
}

/// How to connect, as the HTTP transport takes it.
pub(super) fn transport_config(args: &ConnectionArgs) -> transfer_http::Config {
    let default = transfer_http::Config::default();
    transfer_http::Config {
        connect_timeout: args.connect_timeout.unwrap_or(default.connect_timeout),
        response_timeout: args.timeout.unwrap_or(default.response_timeout),
        stall_timeout: args.timeout.unwrap_or(default.stall_timeout),
        ca_certificate: args.ca_certificate.clone(),
        ..default
    }
}

fn read_text(field: &str, path: &PathBuf, limit: u64) -> Result<String, UsageError> {
    String::from_utf8(read(field, path, limit)?)
        .map_err(|_| UsageError::new(field, format!("{} is not text in UTF-8", path.display())))
}

/// Reads a file that an option names; `-` is standard input.
fn read(field: &str, path: &PathBuf, limit: u64) -> Result<Vec<u8>, UsageError> {
    let open = || -> io::Result<Box<dyn io::Read>> {
        if path.as_os_str() == "-" {
            Ok(Box::new(io::stdin()))
        } else {
            Ok(Box::new(fs::File::open(path)?))
        }
    };
    let mut bytes = Vec::new();
    open()
        .and_then(|file| file.take(limit + 1).read_to_end(&mut bytes))
        .map_err(|error| UsageError::new(field, format!("cannot read {}: {error}", path.display())))?;
    if bytes.len() as u64 > limit {
        return Err(UsageError::new(
            field,
            format!("{} is longer than the limit of {limit} bytes", path.display()),
        ));
    }
    Ok(bytes)
}

fn unix_seconds() -> u64 {
    SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .map_or(0, |elapsed| elapsed.as_secs())
}

#[cfg(test)]
mod tests;
