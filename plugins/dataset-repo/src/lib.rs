//! Lists the files of repositories of models, datasets and spaces on Hugging Face.
//!
//! *Owns* which part of which repository a URL means (`target`) and how the site lists files (here). A branch is pinned
//! to its commit first, and all files are linked at that commit, so that they belong together.
//!
//! *Never* sees the user's token, and reaches no other host than huggingface.co.
//!
//! Start reading at [`DatasetRepo`].

mod target;

use serde::Deserialize;
use svc_plugin::{
    http::{Request, Response},
    prelude::*,
    text::{Url, encode_path, encode_segment},
};

use crate::target::{Kind, Target, is_name};

/// The longest id or token of a page that the host takes.
const MAX_ID_BYTES: usize = 1024;

/// The secret setting with the user's token, the field that carries it, and what is in that.
const TOKEN: &str = "token";
const AUTHORIZATION: (&str, &str) = ("Authorization", "Bearer {token}");

/// Lists repositories.
#[derive(Debug)]
pub struct DatasetRepo;

impl Resolver for DatasetRepo {
    fn resolve(call: &Call, out: &Listing<'_>) -> Result<()> {
        list(call, out)
    }

    fn more(call: &Call, token: &str, out: &Listing<'_>) -> Result<()> {
        let target = Target::of(call.url())?;
        let mut parts = token.splitn(3, ' ');
        let (Some(commit), Some(name), Some(cursor)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(Error::InvalidInput("no page of this plugin".to_owned()));
        };
        let snapshot = Snapshot::new(target.kind, name, commit)?;
        folder(&snapshot, &target.path, Some(cursor), out)
    }

    fn link(call: &Call, entry: &str, _: Option<&str>) -> Result<Link> {
        let target = Target::of(call.url())?;
        let (commit, path) = entry
            .split_once('/')
            .ok_or_else(|| Error::NotFound("no such file".to_owned()))?;
        Ok(Snapshot::new(target.kind, &target.name, commit)?.link(path))
    }
}

impl Preview for DatasetRepo {
    fn preview(call: &Call, out: &Listing<'_>) -> Result<()> {
        list(call, out)
    }
}

svc_plugin::plugin!(DatasetRepo: Resolver, Preview);

fn list(call: &Call, out: &Listing<'_>) -> Result<()> {
    let target = Target::of(call.url())?;
    let snapshot = Snapshot::of(&target)?;
    if target.is_file {
        return file(&snapshot, &target.path, out);
    }
    out.title(snapshot.name.rsplit('/').next().unwrap_or(&snapshot.name));
    folder(&snapshot, &target.path, None, out)
}

/// A repository at one of its commits.
struct Snapshot {
    kind: Kind,
    name: String,
    commit: String,
}

impl Snapshot {
    fn new(kind: Kind, name: &str, commit: &str) -> Result<Self> {
        if !is_commit(commit) || !name.split('/').all(is_name) {
            return Err(Error::Parse(format!(
                "{commit:?} of {name:?} is no commit of a repository"
            )));
        }
        Ok(Self {
            kind,
            name: name.to_owned(),
            commit: commit.to_owned(),
        })
    }

    /// What a branch or tag means now. Repositories move: the site also says what this one is called now.
    fn of(target: &Target) -> Result<Self> {
        if is_commit(&target.revision) {
            return Self::new(target.kind, &target.name, &target.revision);
        }
        let Target {
            kind, name, revision, ..
        } = target;
        let url = format!("{}/{name}/revision/{}", kind.api(), encode_segment(revision));
        // Without naming the fields, the answer lists all files.
        let answer = ask(http::get(url).query("expand", "sha"))?;
        Self::new(*kind, &answer.string("/id")?, &answer.string("/sha")?)
    }

    fn link(&self, path: &str) -> Link {
        let Self { kind, name, commit } = self;
        let url = format!("{}/{name}/resolve/{commit}/{}", kind.site(), encode_path(path));
        let link = Link::new(url);
        if vault::has(TOKEN) {
            let (field, value) = AUTHORIZATION;
            return link.secret_header(field, value);
        }
        link
    }
}

fn is_commit(revision: &str) -> bool {
    revision.len() == 40 && revision.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Sends a request as the user, if there is a token.
fn ask(request: Request) -> Result<Response> {
    let (field, value) = AUTHORIZATION;
    let request = if vault::has(TOKEN) {
        request.secret_header(field, value)
    } else {
        request
    };
    let answer = request.send_any()?;
    // The site tells nobody whether a repository is private or missing.
    match (answer.status(), answer.header("x-error-code").as_deref()) {
        (401 | 403, Some("GatedRepo")) => Err(Error::Forbidden(
            "its owner wants you to agree to terms there first".to_owned(),
        )),
        (404, Some("RevisionNotFound")) => Err(Error::NotFound("the repository has no such branch".to_owned())),
        _ => answer.successful(),
    }
}

/// What the site says about a file or folder.
#[derive(Deserialize)]
struct Record {
    r#type: String,
    path: String,
    #[serde(default)]
    size: Option<u64>,
    lfs: Option<LargeFile>,
}

/// Files that are not kept in Git itself. The others have a digest of Git, which is not that of their bytes.
#[derive(Deserialize)]
struct LargeFile {
    /// SHA-256.
    oid: String,
}

/// Adds one file.
fn file(snapshot: &Snapshot, path: &str, out: &Listing<'_>) -> Result<()> {
    let Snapshot { kind, name, commit } = snapshot;
    let url = format!("{}/{name}/paths-info/{commit}", kind.api());
    let records: Vec<Record> = ask(http::post(url).form([("paths", path)]))?.json("")?;
    let record = records
        .iter()
        .find(|record| record.path == path && record.r#type == "file");
    add(
        snapshot,
        record.ok_or_else(|| Error::NotFound("the repository has no such file".to_owned()))?,
        out,
    )
}

/// Adds a page of the files in a folder and the folders in it.
fn folder(snapshot: &Snapshot, path: &str, cursor: Option<&str>, out: &Listing<'_>) -> Result<()> {
    let Snapshot { kind, name, commit } = snapshot;
    let base = format!("{}/{name}/tree/{commit}", kind.api());
    let url = if path.is_empty() {
        base
    } else {
        format!("{base}/{}", encode_path(path))
    };
    let request = http::get(&url).query("recursive", "true");
    let answer = ask(match cursor {
        Some(cursor) => request.query("cursor", cursor),
        None => request,
    })?;
    for record in answer
        .json::<Vec<Record>>("")?
        .iter()
        .filter(|record| record.r#type == "file")
    {
        add(snapshot, record, out)?;
    }
    if let Some(cursor) = next_cursor(&answer)? {
        let token = format!("{commit} {name} {cursor}");
        if token.len() > MAX_ID_BYTES {
            return Err(Error::Parse("the site's name of the next page is too long".to_owned()));
        }
        out.next_page(&token);
    }
    Ok(())
}

/// Where the next page begins, from `Link: <https://…?cursor=…>; rel="next"`.
fn next_cursor(answer: &Response) -> Result<Option<String>> {
    let Some(links) = answer.header("link") else {
        return Ok(None);
    };
    let found = text::captures(r#"<([^>]*)>[^,<]*;\s*rel="?next\b"#, &links)?;
    let Some(next) = found.first().and_then(|groups| groups.get(1)?.as_deref()) else {
        return Ok(None);
    };
    let next = Url::parse(answer.url())?.join(next)?;
    let cursor = next
        .query("cursor")
        .ok_or_else(|| Error::Parse("the next page has no cursor".to_owned()))?;
    Ok(Some(cursor.to_owned()))
}

fn add(snapshot: &Snapshot, record: &Record, out: &Listing<'_>) -> Result<()> {
    let path = &record.path;
    let id = format!("{}/{path}", snapshot.commit);
    let leads_elsewhere = path.split('/').any(|part| matches!(part, "" | "." | ".."));
    if leads_elsewhere || id.len() > MAX_ID_BYTES {
        log::warn(format!("{path:?} is no name of a file; it is left out"));
        return Ok(());
    }
    let entry = out.add_path(&id, path);
    entry.link(snapshot.link(path));
    if let Some(size) = record.size {
        entry.size(size);
    }
    if let Some(LargeFile { oid }) = &record.lfs {
        if oid.len() != 64 || !oid.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(Error::Parse(format!("{oid:?} is no SHA-256")));
        }
        entry.checksum("sha256", oid);
    }
    Ok(())
}
