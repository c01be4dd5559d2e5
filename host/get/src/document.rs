//! Metalink documents on the command line: each of their files is a task. Documents come from a file that the user named,
//! or from a download that turned out to be one.

use std::path::Path;

use command::UsageError;
use engine::TaskSpec;
use metalink_reader::{Document, File, Preference, Unreadable};
use transfer::{GivenBy, SafeUrl, UserHost};

/// Whether an operand is the name of a document instead of a URL.
pub(super) fn is_document(operand: &str) -> bool {
    !operand.contains("://") && metalink_reader::is_document_name(operand)
}

/// The files of a document that the user named.
pub(super) fn read(operand: &str, bytes: &[u8]) -> Result<Vec<File>, UsageError> {
    let document = Document::read(bytes, &Preference::default());
    let files = document
        .map_err(|error| UsageError::new(operand, error.to_string()))?
        .files;
    if files.is_empty() {
        return Err(UsageError::new(
            operand,
            "it has no file with a URL that can be downloaded",
        ));
    }
    Ok(files)
}

/// The files of a document that was downloaded from `url`, and who gave their URLs.
pub(super) fn read_followed(bytes: &[u8], url: &SafeUrl) -> Result<(Vec<File>, GivenBy), Unreadable> {
    let folder = url.join(".").map(|folder| folder.without_login());
    let preference = Preference {
        base: folder.map(|folder| folder.expose().to_owned()).unwrap_or_default(),
        ..Preference::default()
    };
    let files = Document::read(bytes, &preference)?.files;
    let user_host = UserHost::typed(url.as_url());
    Ok((files, GivenBy::Other { user_host }))
}

/// The task of a file: what the document says of it, and for the rest `pattern`. Its directories are below the one of
/// `pattern`; the name in `pattern` goes before the file's own.
pub(super) fn task(pattern: &TaskSpec, file: File) -> Result<TaskSpec, String> {
    let mut task = TaskSpec {
        urls: file.urls,
        checksum: pattern.checksum.clone().or(file.checksum),
        pieces: file.pieces,
        promised_size: file.size,
        max_connections: pattern.max_connections.into_iter().chain(file.max_connections).min(),
        ..pattern.clone()
    };
    if task.file_name.is_none() {
        let below = file.path.directories.iter().map(|name| Path::new(name.as_str()));
        match &mut task.save_dir {
            Some(dir) => dir.extend(below),
            None if file.path.directories.is_empty() => {}
            None => {
                let problem = "puts its files into directories; name the one that they are in with --dir";
                return Err(problem.to_owned());
            }
        }
        task.file_name = Some(file.path.name);
    }
    Ok(task)
}
