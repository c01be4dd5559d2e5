//! Resolves URLs and input file of a command into tasks, completely validated before anything starts.

use std::{
    fs,
    io::{self, Read as _},
    path::Path,
    time::SystemTime,
};

use command::UsageError;
use engine::TaskSpec;
use metainfo::{MAX_METAINFO_BYTES, Magnet, Metainfo};
use metalink_reader::{File, MAX_DOCUMENT_BYTES};
use transfer::{ByteCount, CookieJar, Credentials, RequestBody, RequestOptions, SafeUrl, Secret};

use crate::{
    args::{RequestArgs, SourceArgs},
    document, file_options,
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
    /// Whether one of them is a torrent from the start.
    pub has_torrents: bool,
    operands: Vec<Operand>,
    mirrors: Vec<String>,
    /// The text of the input file. Tasks are created from it lazily, so that a long list costs no memory per file.
    list: String,
    /// Common to all files; without a URL.
    pattern: TaskSpec,
    cookies: CookieJar,
    schemes: Schemes,
}

/// What an argument stands for.
#[derive(Debug)]
enum Operand {
    Url(String),
    /// The name of a Metalink document, and one of its files.
    File(String, Box<File>),
    Torrent(TorrentFile),
}

/// A torrent file that the user named.
#[derive(Debug)]
pub struct TorrentFile {
    /// As the user wrote it.
    pub name: String,
    /// The URL of its task: a magnet link with its hash and name.
    pub url: SafeUrl,
    /// Its content.
    pub bytes: Vec<u8>,
    files: usize,
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
        let operands = operands(urls)?;
        require_one_file(&operands, &sources)?;
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
            has_torrents: false,
            pattern: complete(pattern, &sources, request)?,
            operands,
            mirrors: sources.mirror,
            list,
            cookies,
            schemes,
        };
        wanted.check_secrets()?;
        let (mut count, mut has_torrents) = (0, false);
        for task in wanted.resolve_all() {
            has_torrents |= task?.urls[0].scheme() == MAGNET;
            count += 1;
        }
        if count == 0 {
            return Err(UsageError::new("--input-file", "there is no URL in it"));
        }
        Ok(Self {
            count,
            has_torrents,
            ..wanted
        })
    }

    /// The tasks, in order, created lazily.
    pub fn tasks(&self) -> impl Iterator<Item = TaskSpec> {
        self.resolve_all()
            .map(|task| task.expect("every task was resolved once, from the same text, in Wanted::new"))
    }

    fn resolve_all(&self) -> impl Iterator<Item = Result<TaskSpec, UsageError>> {
        let given = self.operands.iter().enumerate().map(|(index, operand)| match operand {
            Operand::Url(url) => {
                let urls = std::iter::once(url).chain(&self.mirrors);
                let names =
                    std::iter::once(format!("URL {}", index + 1)).chain(std::iter::repeat("--mirror".to_owned()));
                self.resolve(names.zip(urls.map(String::as_str)), &[])
            }
            Operand::File(document, file) => self.resolve_file(document, (**file).clone()),
            Operand::Torrent(torrent) => self.resolve_torrent(torrent),
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
        if task.urls.iter().any(|url| url.scheme() == MAGNET) {
            self.check_torrent(&first_field, &task)?;
        }
        task.validate()
            .map_err(|refusal| UsageError::new(first_field, refusal.to_string()))?;
        Ok(task)
    }

    fn resolve_file(&self, document: &str, file: File) -> Result<TaskSpec, UsageError> {
        let name = file.path.to_string();
        let refuse = |problem: String| UsageError::new(document, format!("\"{name}\" {problem}"));
        let mut task = document::task(&self.pattern, file).map_err(refuse)?;
        for mirror in &self.mirrors {
            task.urls.push(self.url("--mirror", mirror)?);
        }
        task.urls.iter().try_for_each(|url| self.check_scheme(document, url))?;
        let own_cookies = self.cookies.for_url(&task.urls[0], unix_seconds());
        task.request.cookies = Secret::new(own_cookies);
        task.validate().map_err(|refusal| refuse(refusal.to_string()))?;
        Ok(task)
    }

    fn resolve_torrent(&self, torrent: &TorrentFile) -> Result<TaskSpec, UsageError> {
        let refuse = |problem: String| UsageError::new(&torrent.name, problem);
        self.check_scheme(&torrent.name, &torrent.url)?;
        let task = TaskSpec {
            urls: vec![torrent.url.clone()],
            ..self.pattern.clone()
        };
        self.check_torrent(&torrent.name, &task)?;
        let selected = task.torrent.as_ref().and_then(|options| options.files.last());
        if let Some(last) = selected.filter(|last| usize::try_from(**last).is_ok_and(|last| last >= torrent.files)) {
            return Err(refuse(format!(
                "--select-file names file {}, and it has {}",
                u64::from(*last) + 1,
                torrent.files
            )));
        }
        task.validate().map_err(|refusal| refuse(refusal.to_string()))?;
        Ok(task)
    }

    /// Refuses what torrents do not have.
    fn check_torrent(&self, field: &str, task: &TaskSpec) -> Result<(), UsageError> {
        let of_files = [
            ("--mirror", task.urls.len() > 1 || !self.mirrors.is_empty()),
            ("--checksum", task.checksum.is_some()),
        ];
        match of_files.into_iter().find(|(_, is_given)| *is_given) {
            Some((option, _)) => Err(UsageError::new(
                field,
                format!("is a torrent, which has the hashes and sources of its files itself: leave out {option}"),
            )),
            None => Ok(()),
        }
    }

    /// The torrent files among the arguments.
    pub fn torrent_files(&self) -> impl Iterator<Item = &TorrentFile> {
        self.operands.iter().filter_map(|operand| match operand {
            Operand::Torrent(torrent) => Some(torrent),
            Operand::Url(_) | Operand::File(..) => None,
        })
    }

    /// The torrent file that a task's URL stands for; `None` for every other URL.
    pub fn torrent_file(&self, url: &SafeUrl) -> Option<&TorrentFile> {
        self.torrent_files().find(|torrent| torrent.url == *url)
    }

    /// The tasks of a Metalink document that was downloaded from `url` into `dir`. Nothing that was given with the URL
    /// goes to other origins.
    pub(crate) fn follow(&self, bytes: &[u8], url: &SafeUrl, dir: &Path) -> Result<Vec<TaskSpec>, UsageError> {
        let refuse = |problem: String| UsageError::new(url.to_string(), problem);
        let (files, given_by) = document::read_followed(bytes, url).map_err(|error| refuse(error.to_string()))?;
        let mut pattern = TaskSpec {
            file_name: None,
            checksum: None,
            save_dir: Some(dir.to_owned()),
            given_by,
            ..self.pattern.clone()
        };
        let _gone = pattern.request.drop_secrets();
        let resolve = |file| {
            let task = document::task(&pattern, file).map_err(refuse)?;
            task.urls
                .iter()
                .try_for_each(|url| self.check_scheme("the document", url))?;
            task.validate().map_err(|refusal| refuse(refusal.to_string()))?;
            Ok(task)
        };
        files.into_iter().map(resolve).collect()
    }

    /// Refuses secrets together with a document: they are for one site, and the document chooses others.
    fn check_secrets(&self) -> Result<(), UsageError> {
        let document = self.operands.iter().find_map(|operand| match operand {
            Operand::File(document, _) => Some(document),
            Operand::Url(_) | Operand::Torrent(_) => None,
        });
        match document {
            Some(document) if self.pattern.request.clone().drop_secrets() => Err(UsageError::new(
                document,
                "it chooses the sites, so a login, cookies, secret headers or a body do not go with it; \
                 --netrc and --load-cookies give each site its own",
            )),
            _ => Ok(()),
        }
    }

    fn url(&self, field: &str, text: &str) -> Result<SafeUrl, UsageError> {
        let url = SafeUrl::parse(&protocol::unwrapped(text)).map_err(|problem| {
            UsageError::new(field, format!("{problem}; write it whole, such as https://host/file"))
        })?;
        self.check_scheme(field, &url)?;
        if url.scheme() == MAGNET {
            let magnet = url.expose().parse::<Magnet>();
            magnet.map_err(|error| UsageError::new(field, error.to_string()))?;
        }
        Ok(url)
    }

    fn check_scheme(&self, field: &str, url: &SafeUrl) -> Result<(), UsageError> {
        if let Schemes::Only(schemes) = self.schemes
            && !schemes.contains(&url.scheme())
        {
            let known = schemes.join(", ");
            return Err(UsageError::new(
                field,
                format!("cannot download {}: URLs; known are {known}", url.scheme()),
            ));
        }
        Ok(())
    }
}

/// The scheme of magnet links.
const MAGNET: &str = "magnet";

/// Whether an operand is the name of a torrent file instead of a URL.
fn is_torrent_name(operand: &str) -> bool {
    let ending = operand.len().checked_sub(".torrent".len());
    let ending = ending.and_then(|start| operand.get(start..));
    ending.is_some_and(|ending| ending.eq_ignore_ascii_case(".torrent"))
        && !operand.contains("://")
        && !operand.starts_with("magnet:")
}

fn read_torrent(name: String) -> Result<TorrentFile, UsageError> {
    let bytes = read(&name, Path::new(&name), MAX_METAINFO_BYTES as u64)?;
    let refuse = |problem: String| UsageError::new(&name, problem);
    let metainfo = Metainfo::parse(&bytes).map_err(|error| refuse(error.to_string()))?;
    let url = metainfo.own_link().to_string();
    Ok(TorrentFile {
        url: SafeUrl::parse(&url).map_err(|error| refuse(format!("has a name that no link can have: {error}")))?,
        files: metainfo.info.files().len(),
        name,
        bytes,
    })
}

/// Reads the documents and torrent files among the arguments.
fn operands(arguments: Vec<String>) -> Result<Vec<Operand>, UsageError> {
    let mut operands = Vec::with_capacity(arguments.len());
    for argument in arguments {
        if document::is_document(&argument) {
            let bytes = read(&argument, Path::new(&argument), MAX_DOCUMENT_BYTES as u64)?;
            let files = document::read(&argument, &bytes)?;
            operands.extend(
                files
                    .into_iter()
                    .map(|file| Operand::File(argument.clone(), Box::new(file))),
            );
        } else if is_torrent_name(&argument) {
            operands.push(Operand::Torrent(read_torrent(argument)?));
        } else {
            operands.push(Operand::Url(argument));
        }
    }
    Ok(operands)
}

/// Rejects options that describe one file if there are several.
fn require_one_file(operands: &[Operand], sources: &SourceArgs) -> Result<(), UsageError> {
    let is_one = operands.len() == 1 && sources.input_file.is_none();
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
        ssh_host_key: args.ssh_host_key,
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

fn read_text(field: &str, path: &Path, limit: u64) -> Result<String, UsageError> {
    String::from_utf8(read(field, path, limit)?)
        .map_err(|_| UsageError::new(field, format!("{} is not text in UTF-8", path.display())))
}

/// Reads the file of an option; `-` is standard input.
pub(crate) fn read(field: &str, path: &Path, limit: u64) -> Result<Vec<u8>, UsageError> {
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
