//! The tasks of a Metalink document that a request brings along.

use std::path::{Path, PathBuf};

use data_encoding::BASE64;
use engine::TaskSpec;
use metalink_reader::{Document, File, Preference};
use protocol::{CreateTaskRequest, RpcError};
use transfer::FileName;

use crate::{options, refusal::invalid};

/// The specifications of the document's files, each with the other options of the request. Names with directories lie
/// below the request's directory, or below `usual_dir` if it has none.
pub(super) fn specs(mut request: CreateTaskRequest, usual_dir: &Path) -> Result<Vec<TaskSpec>, RpcError> {
    let refuse = |message: String| invalid("metalinkB64", message);
    let text = request.metalink_b64.take().unwrap_or_default();
    let bytes = BASE64
        .decode(text.trim().as_bytes())
        .map_err(|_| refuse("the Metalink document is not in base64".to_owned()))?;
    check_alone(&request)?;
    let document = Document::read(&bytes, &Preference::default()).map_err(|error| refuse(error.to_string()))?;
    if document.files.is_empty() {
        let message = "the Metalink document has no file with a URL that can be downloaded";
        return Err(refuse(message.to_owned()));
    }
    let mut files = document.files.into_iter();
    let first = files.next().into_iter().map(|file| spec(request.clone(), file));
    let mut specs = first.collect::<Result<Vec<_>, _>>()?;
    if specs[0].has_too_much_for(files.len() + 1) {
        let message = "the options of all files of the document would have more than 16 MiB: give shorter ones";
        return Err(refuse(message.to_owned()));
    }
    for file in files {
        specs.push(spec(request.clone(), file)?);
    }
    for spec in &mut specs {
        // Relative so far: the directories in the document.
        let below = spec.save_dir.take().unwrap_or_default();
        let dir = Some(request.save_dir.trim()).filter(|dir| !dir.is_empty());
        let has_own = !below.as_os_str().is_empty();
        spec.save_dir = match dir {
            Some(dir) => Some(Path::new(dir).join(below)),
            None => has_own.then(|| usual_dir.join(below)),
        };
    }
    Ok(specs)
}

/// Refuses what a document says itself, and secrets: they belong to the site that they are for, and a document chooses
/// the sites.
fn check_alone(request: &CreateTaskRequest) -> Result<(), RpcError> {
    let given = [
        ("url", !request.url.trim().is_empty()),
        ("mirrors", !request.mirrors.is_empty()),
        ("fileName", !request.file_name.trim().is_empty()),
        ("checksum", !request.checksum.trim().is_empty()),
        ("pieceHashes", !request.piece_hashes.is_empty()),
        ("expectedSizeBytes", request.expected_size_bytes.is_some()),
        ("torrentB64", request.torrent_b64.is_some()),
        ("torrentBlobId", request.torrent_blob_id.is_some()),
        ("torrent", request.torrent.is_some()),
        ("method", request.method.is_some()),
        ("body", request.body.is_some()),
    ];
    if let Some((field, _)) = given.into_iter().find(|(_, is_given)| *is_given) {
        return Err(invalid(field, format!("{field} and metalinkB64 exclude each other")));
    }
    let without_document = CreateTaskRequest {
        url: "http://document.invalid/".to_owned(),
        ..request.clone()
    };
    if options::spec(without_document, None)?.request.drop_secrets() {
        let message = "cookies, logins and secret headers are for one site, and a Metalink document names others: \
             store them for their site";
        return Err(invalid("metalinkB64", message));
    }
    Ok(())
}

fn spec(request: CreateTaskRequest, file: File) -> Result<TaskSpec, RpcError> {
    let mut urls = file.urls.iter().map(|url| url.expose().to_owned());
    let request = CreateTaskRequest {
        url: urls.next().unwrap_or_default(),
        mirrors: urls.collect(),
        save_dir: String::new(),
        ..request
    };
    let spec = options::spec(request, None)?;
    let below: PathBuf = file.path.directories.iter().map(FileName::as_str).collect();
    Ok(TaskSpec {
        file_name: Some(file.path.name),
        save_dir: Some(below),
        checksum: file.checksum,
        pieces: file.pieces,
        promised_size: file.size,
        max_connections: spec.max_connections.into_iter().chain(file.max_connections).min(),
        ..spec
    })
}
