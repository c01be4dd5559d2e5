//! Resolves URLs and input file of a command into tasks, completely validated before anything starts.

use std::{
    fs,
    io::{self, Read as _},
    path::PathBuf,
    time::SystemTime,
};

use command::UsageError;
use engine::TaskSpec;
use transfer::{ByteCount, CookieJar, Credentials, RequestBody, RequestOptions, SafeUrl, Secret};

use crate::{
    args::{RequestArgs, SourceArgs},
    file_options,
    input_file::{self, Entry},
    request,
};

/// The largest input file; about two million lines.
const MAX_INPUT_BYTES: u64 = 256 * 1024 * 1024;

/// The largest `--data-file`, as limited by the engine; held in memory once per active file.
const MAX_DATA_BYTES: u64 = 8 * 1024 * 1024;

/// The largest cookie file; browsers keep a few thousand cookies of at most 4 KiB.
const MAX_COOKIES_BYTES: u64 = 32 * 1024 * 1024;

const MAX_PASSWORD_BYTES: u64 = 64 * 1024;

/// The requested files.
#[derive(Debug)]
pub struct Wanted {
    /// Number of files.
    pub count: usize,
    urls: Vec<String>,
    mirrors: Vec<String>,
    /// The text of the input file. Tasks are created from it lazily, so that a long list costs no memory per file.
    list: String,
    /// Common to all files; without a URL.
    pattern: TaskSpec,
    cookies: CookieJar,
    schemes: Schemes,
}

/// The URL schemes that are accepted.
#[derive(Debug, Clone, Copy)]
pub enum Schemes {
    /// These schemes.
    Only(&'static [&'static str]),
    /// The service decides.
    Undecided,
}

impl Wanted {
    /// Resolves the arguments: reads the files they name and validates every value. `pattern` has further settings of
    /// all files.
    pub fn new(
        urls: Vec<String>,
        sources: SourceArgs,
        request: &RequestArgs,
        pattern: TaskSpec,
        schemes: Schemes,
    ) -> Result<Self, UsageError> {
        require_one_file(&urls, &sources)?;
        let list = match &sources.input_file {
            Some(path) => read_text("--input-file", path, MAX_INPUT_BYTES)?,
            None => String::new(),
        };
        let cookies = match &request.load_cookies {
            Some(path) => CookieJar::parse(&read_text("--load-cookies", path, MAX_COOKIES_BYTES)?, unix_seconds())
                .map_err(|problem| UsageError::new("--load-cookies", problem.to_string()))?,
            None => CookieJar::default(),
        };
        let wanted = Self {
            count: 0,
            pattern: complete(pattern, &sources, request)?,
            urls,
            mirrors: sources.mirror,
            list,
            cookies,
            schemes,
        };
        let count = wanted
            .resolve_all()
            .try_fold(0, |count, task| task.map(|_| count + 1))?;
        if count == 0 {
            return Err(UsageError::new("--input-file", "there is no URL in it"));
        }
        Ok(Self { count, ..wanted })
    }

    /// The tasks, in order, created lazily.
    pub fn tasks(&self) -> impl Iterator<Item = TaskSpec> {
        self.resolve_all()
            .map(|task| task.expect("every task was resolved once, from the same text, in Wanted::new"))
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
        let own_cookies = self.cookies.for_url(&task.urls[0], unix_seconds());
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
        let url = SafeUrl::parse(&protocol::unwrapped(text)).map_err(|problem| {
            UsageError::new(field, format!("{problem}; write it whole, such as https://host/file"))
        })?;
        if let Schemes::Only(schemes) = self.schemes
            && !schemes.contains(&url.scheme())
        {
            let known = schemes.join(", ");
            return Err(UsageError::new(
                field,
                format!("cannot download {}: URLs; known are {known}", url.scheme()),
            ));
        }
        Ok(url)
    }
}

/// Rejects options that describe one file if there are several.
fn require_one_file(urls: &[String], sources: &SourceArgs) -> Result<(), UsageError> {
    let is_one = urls.len() == 1 && sources.input_file.is_none();
    let given = [
        ("--out", sources.out.is_some()),
        ("--checksum", sources.checksum.is_some()),
        ("--mirror", !sources.mirror.is_empty()),
    ];
    match given.into_iter().find(|(_, is_given)| *is_given && !is_one) {
        Some((option, _)) => Err(UsageError::new(
            option,
            "describes one file, so it goes with exactly one URL; for several files write it into an --input-file",
        )),
        None => Ok(()),
    }
}

/// `pattern` with the options that apply to every file.
fn complete(pattern: TaskSpec, sources: &SourceArgs, request: &RequestArgs) -> Result<TaskSpec, UsageError> {
    let given = sources.checksum.as_deref();
    let mut task = TaskSpec {
        request: request_options(request)?,
        checksum: given
            .map(|text| file_options::checksum("--checksum", text))
            .transpose()?,
        ..pattern
    };
    if let Some(out) = &sources.out {
        file_options::set_path("--out", &mut task, out)?;
    }
    Ok(task)
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
        // The variable may be meant for another command; an explicit file is meant for this one.
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

fn read_text(field: &str, path: &PathBuf, limit: u64) -> Result<String, UsageError> {
    String::from_utf8(read(field, path, limit)?)
        .map_err(|_| UsageError::new(field, format!("{} is not text in UTF-8", path.display())))
}

/// Reads the file of an option; `-` is standard input.
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
            format!("{} is longer than {}", path.display(), ByteCount(limit)),
        ));
    }
    Ok(bytes)
}

fn unix_seconds() -> u64 {
    SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .map_or(0, |elapsed| elapsed.as_secs())
}
