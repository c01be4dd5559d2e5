//! The two files by which an agent finds its daemon.

use std::{fs, io, path::PathBuf};

use private_files::FileError;
use protocol::{
    endpoint::{ENDPOINT_FILE, Endpoint, TOKEN_CHARS, TOKEN_FILE},
    proof::Token,
};
use store::DataDir;

/// Why the files cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum EndpointError {
    /// One of them cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// The token file is no token.
    #[error("{} is damaged: it must hold 64 hexadecimal digits; delete it and start again", .0.display())]
    Damaged(PathBuf),
    /// The operating system gives no random numbers.
    #[error(transparent)]
    NoRandom(#[from] protocol::proof::NoRandom),
}

/// Reads the long-term token, or creates it at the first start.
pub(crate) fn token(dir: &DataDir) -> Result<Token, EndpointError> {
    let path = dir.join(TOKEN_FILE);
    match fs::read_to_string(&path) {
        Ok(text) => {
            let text = text.trim();
            let is_token = text.len() == TOKEN_CHARS && text.bytes().all(|byte| byte.is_ascii_hexdigit());
            is_token.then(|| Token::new(text)).ok_or(EndpointError::Damaged(path))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let token = Token::random()?;
            private_files::replace(&path, token.expose().as_bytes())?;
            Ok(token)
        }
        Err(error) => Err(FileError::at("read", &path)(error).into()),
    }
}

/// Writes the file that says where the daemon listens.
pub(crate) fn publish(dir: &DataDir, endpoint: &Endpoint) -> Result<(), EndpointError> {
    let text = serde_json::to_string(endpoint).expect("our records always encode");
    Ok(private_files::replace(&dir.join(ENDPOINT_FILE), text.as_bytes())?)
}

/// Deletes that file.
pub(crate) fn withdraw(dir: &DataDir) {
    let path = dir.join(ENDPOINT_FILE);
    if let Err(error) = fs::remove_file(&path)
        && error.kind() != io::ErrorKind::NotFound
    {
        tracing::warn!(path = %path.display(), %error, "cannot remove the file that says where the daemon listens");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_token_is_made_once_and_private() {
        let root = tempfile::tempdir().unwrap();
        let dir = DataDir::lock(root.path().join("data")).unwrap();
        let first = token(&dir).unwrap();
        assert!(first.is(token(&dir).unwrap().expose()));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let mode = fs::metadata(dir.join(TOKEN_FILE)).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
        fs::write(dir.join(TOKEN_FILE), "short").unwrap();
        assert!(matches!(token(&dir), Err(EndpointError::Damaged(_))));
        assert_eq!(fs::read_to_string(dir.join(TOKEN_FILE)).unwrap(), "short");
    }
}
