//! Torrent files in requests.

use command::UsageError;
use data_encoding::BASE64;
use protocol::{BlobResult, CreateTaskRequest, MAX_BLOB_BYTES};
use transfer::ByteCount;

use crate::service::{Client, http};

/// A torrent file that is larger is uploaded by itself. In base64, it has a third more bytes.
const MAX_SENT_BYTES: usize = 512 * 1024;

/// Puts a torrent file into a request, or uploads it first if it is too large for a call.
pub(crate) async fn attach(
    client: &Client,
    request: &mut CreateTaskRequest,
    name: &str,
    bytes: Vec<u8>,
) -> anyhow::Result<()> {
    if bytes.len() <= MAX_SENT_BYTES {
        request.torrent_b64 = Some(BASE64.encode(&bytes));
        return Ok(());
    }
    if bytes.len() > MAX_BLOB_BYTES {
        let problem = format!(
            "has {}, and a service takes torrent files of at most {}; add its magnet link instead",
            ByteCount(bytes.len() as u64),
            ByteCount(MAX_BLOB_BYTES as u64)
        );
        return Err(UsageError::new(name, problem).into());
    }
    let answer = http::upload(&client.target, "/api/web/blobs/torrents", bytes).await?;
    let BlobResult { blob_id } = answer.read(&client.target)?;
    request.torrent_blob_id = Some(blob_id);
    Ok(())
}
