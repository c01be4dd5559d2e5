//! `addTorrent`.

use data_encoding::{BASE64, BASE64_NOPAD};
use metainfo::{Metainfo, MetainfoError};
use protocol::CreateTaskRequest;

use super::{add::gid, outcome::Outcome};
use crate::{
    caller::Caller,
    option::{self, OptionScope, Options},
    vocabulary::{fault::Fault, params::Params},
};

/// The largest torrent file within a command; a larger one is uploaded.
const MAX_INLINE_BYTES: usize = 256 * 1024;

/// Reads a torrent file in base64, whose trackers `options` may leave out.
fn torrent(text: &str, options: &Options) -> Result<(Metainfo, Vec<u8>), Fault> {
    let text = text.trim_end_matches('=').as_bytes();
    let decoded = BASE64_NOPAD.decode(text).or_else(|_| BASE64.decode(text));
    // As in aria2, for which such a text is an empty file.
    let file = decoded.map_err(|_| unreadable())?;
    let mut torrent = Metainfo::parse(&file).map_err(|error| match error {
        MetainfoError::Bencode(_) => unreadable(),
        error => Fault::new(error.to_string()),
    })?;
    if !option::excludes_trackers(options) {
        return Ok((torrent, file));
    }
    let is_admitted = option::admitted(options);
    for tier in &mut torrent.trackers {
        tier.retain(|tracker| is_admitted(tracker.expose()));
    }
    torrent.trackers.retain(|tier| !tier.is_empty());
    let file = torrent.encode();
    Ok((torrent, file))
}

fn unreadable() -> Fault {
    Fault::new("Bencode decoding failed")
}

impl Caller {
    pub(crate) async fn add_torrent(&self, params: &Params) -> Outcome {
        let text = params.text(0)?;
        let webseeds = params.optional_texts(1)?;
        let options = Options::read(params.optional_map(2)?, OptionScope::WithDownload)?;
        self.check_options(&options)?;
        self.check_shared(&options)?;
        let position = self.position(params, 3)?;
        let options = option::of_torrent(&options.over(&self.usual_options()));
        let (torrent, file) = torrent(text, &options)?;
        let mut request = self.torrent_request(&torrent, &options)?;
        let is_web = |uri: &&str| uri.starts_with("http://") || uri.starts_with("https://");
        let webseeds: Vec<String> = webseeds.into_iter().filter(is_web).map(str::to_owned).collect();
        if !webseeds.is_empty() {
            request.torrent.get_or_insert_default().webseeds = webseeds;
        }
        if file.len() <= MAX_INLINE_BYTES {
            request.torrent_b64 = Some(BASE64.encode(&file));
        } else {
            request.torrent_blob_id = Some(self.dialect.service.keep_torrent(file).await?);
        }
        self.confine(&mut request);
        let task_id = self.make_at(request, &options, position).await?;
        gid(&task_id)
    }

    /// The request for a torrent.
    fn torrent_request(&self, torrent: &Metainfo, options: &Options) -> Result<CreateTaskRequest, Fault> {
        let mut request = CreateTaskRequest::default();
        let info = &torrent.info;
        let count = u32::try_from(info.files().len()).unwrap_or(u32::MAX);
        option::apply(options, &mut request, &self.usual_dir(options)?)?;
        for file in request.torrent.iter_mut().flat_map(|torrent| &mut torrent.paths) {
            file.path = option::below_top(&file.path, info.name().as_str()).to_owned();
        }
        if let Some(wanted) = &mut request.torrent
            && !wanted.files.is_empty()
        {
            wanted.files.retain(|place| *place < count);
            if wanted.files.is_empty() {
                return Err(Fault::new(format!(
                    "select-file names no file of this torrent, which has {count}."
                )));
            }
            if wanted.files.len() == info.files().len() {
                wanted.files.clear();
            }
        }
        Ok(request)
    }
}
