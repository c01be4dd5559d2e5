//! Methods that add downloads.

use data_encoding::{BASE64, BASE64_NOPAD};
use metainfo::{InvalidMagnet, Magnet};
use metalink_reader::{Document, File, Preference, Unreadable};
use protocol::{
    CreateTaskParams, CreateTaskRequest, CreatedTask, CreatedTasks, ErrorCode, MAX_REQUEST_BYTES, Method, Requester,
};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use super::outcome::{Outcome, json};
use crate::{
    caller::Caller,
    option::{self, OptionScope, Options},
    vocabulary::{
        fault::{CommandError, Fault},
        gid::Gid,
        params::Params,
    },
};

/// Bytes of tasks created by one call to the daemon; stays below its frame limit.
const MAX_BYTES: usize = MAX_REQUEST_BYTES / 2;

/// Bounds the options of a Metalink document, which every file gets a copy of.
const MAX_REPEATED_BYTES: usize = 16 * 1024 * 1024;

/// A batch of tasks, each encoded once.
#[derive(Serialize)]
struct Many<'a> {
    requests: &'a [Box<RawValue>],
    #[serde(skip_serializing_if = "Option::is_none")]
    requester: Option<Requester>,
}

/// The GID of a created task.
pub(super) fn gid(task_id: &str) -> Outcome {
    let gid = Gid::of_task(task_id).ok_or_else(|| Fault::new("A task was made whose id is no UUID."))?;
    json(&gid.to_string())
}

fn invalid_base64() -> Fault {
    Fault::new("The document is not in base64.")
}

impl Caller {
    /// The request of an `addUri` without a position, which can be batched with others.
    pub(crate) fn plain_add(&self, params: &Params) -> Option<CreateTaskRequest> {
        if params.0.len() > 2 {
            return None;
        }
        let (request, options) = self.request(params).ok()?;
        options.get("gid").is_none().then_some(request)
    }

    fn request(&self, params: &Params) -> Result<(CreateTaskRequest, Options), Fault> {
        params.list(0)?;
        let uris = params.texts(0)?;
        let options = Options::read(params.optional_map(1)?, OptionScope::WithDownload)?;
        // As in aria2: links of torrents are downloads of their own, of which the first counts if there is nothing else.
        let (magnets, others): (Vec<&str>, Vec<&str>) = uris.into_iter().partition(|uri| Magnet::is_magnet(uri));
        let is_torrent = others.is_empty() && !magnets.is_empty();
        let uris = if is_torrent { &magnets[..1] } else { &others[..] };
        let mut uris = uris.iter().copied().map(str::to_owned);
        let mut request = CreateTaskRequest {
            url: uris.next().ok_or_else(|| Fault::new("URI is not provided."))?,
            mirrors: uris.collect(),
            ..CreateTaskRequest::default()
        };
        if !request.url.contains(':') {
            return Err(Fault::new("No URI to download."));
        }
        self.check_options(&options)?;
        self.check_shared(&options)?;
        let mut options = options.over(&self.usual_options());
        if is_torrent {
            options = option::of_torrent(&options);
            request.url = admitted(&request.url, &options)?;
        }
        option::apply(&options, &mut request, &self.usual_dir(&options)?)?;
        self.confine(&mut request);
        Ok((request, options))
    }

    /// The default directory, if these options depend on it.
    pub(crate) fn usual_dir(&self, options: &Options) -> Result<String, Fault> {
        let matters = ["dir", "out"].into_iter().any(|name| options.get(name).is_some());
        if matters { self.save_dir() } else { Ok(String::new()) }
    }

    pub(crate) async fn add_uri(&self, params: &Params) -> Outcome {
        let (request, options) = self.request(params)?;
        let position = self.position(params, 2)?;
        gid(&self.make_at(request, &options, position).await?)
    }

    /// Creates a task under the GID that the options choose, at this position.
    pub(super) async fn make_at(
        &self,
        request: CreateTaskRequest,
        options: &Options,
        position: Option<usize>,
    ) -> Result<String, Fault> {
        let chosen = options.get("gid").and_then(Gid::chosen);
        if let Some(gid) = chosen
            && self.board()?.find(&gid.to_string()).is_ok()
        {
            return Err(not_unique(gid));
        }
        let task_id = self.make_one(request, chosen).await?;
        if let Some(position) = position {
            self.put_at(std::slice::from_ref(&task_id), position).await?;
        }
        Ok(task_id)
    }

    async fn make_one(&self, request: CreateTaskRequest, chosen: Option<Gid>) -> Result<String, Fault> {
        let params = CreateTaskParams {
            request,
            task_id: chosen.map(Gid::task_id),
            requester: self.requester(),
            ..CreateTaskParams::default()
        };
        let params = to_raw_value(&params).map_err(|error| Fault::new(error.to_string()))?;
        if params.get().len() > MAX_BYTES {
            return Err(Fault::new("The call is too large."));
        }
        let made = self.command_raw::<CreatedTask>(Method::TaskCreate, &params).await;
        made.map(|made| made.task_id).map_err(|error| match (chosen, &error) {
            (Some(gid), CommandError::Refused(error)) if error.application_code() == Some(ErrorCode::Conflict) => {
                not_unique(gid)
            }
            _ => error.into(),
        })
    }

    /// Creates tasks; one failure does not affect the others.
    pub(crate) async fn make_all(&self, requests: Vec<CreateTaskRequest>) -> Vec<Outcome> {
        if requests.len() == 1 {
            return self.make_each(requests).await;
        }
        let mut outcomes = Vec::with_capacity(requests.len());
        let (mut some, mut encoded, mut bytes) = (Vec::new(), Vec::new(), 0);
        for request in requests {
            let Ok(text) = to_raw_value(&request) else { continue };
            if bytes + text.get().len() > MAX_BYTES && !some.is_empty() {
                outcomes.extend(
                    self.make_some(std::mem::take(&mut some), std::mem::take(&mut encoded))
                        .await,
                );
                bytes = 0;
            }
            bytes += text.get().len();
            some.push(request);
            encoded.push(text);
        }
        outcomes.extend(self.make_some(some, encoded).await);
        outcomes
    }

    /// The requested position in the waiting list; ignored for a visitor, who must not reorder others' downloads.
    pub(super) fn position(&self, params: &Params, index: usize) -> Result<Option<usize>, Fault> {
        let position = params.position(index)?;
        Ok(position.filter(|_| self.visitor.is_none()))
    }

    /// Creates tasks in one call. If that is refused, each is created alone, so that only the faulty one fails.
    async fn make_some(&self, requests: Vec<CreateTaskRequest>, encoded: Vec<Box<RawValue>>) -> Vec<Outcome> {
        if requests.len() > 1 {
            let many = Many {
                requests: &encoded,
                requester: self.requester(),
            };
            match self.command::<CreatedTasks>(Method::TaskCreateMany, &many).await {
                Ok(made) => return made.task_ids.iter().map(|id| gid(id)).collect(),
                Err(CommandError::Refused(_)) => {}
                // They may have been created; a retry could create them twice.
                Err(error) => return requests.iter().map(|_| Err(error.clone().into())).collect(),
            }
        }
        self.make_each(requests).await
    }

    /// Creates each task by its own call.
    async fn make_each(&self, requests: Vec<CreateTaskRequest>) -> Vec<Outcome> {
        let mut outcomes = Vec::with_capacity(requests.len());
        for request in requests {
            let made = self.make_one(request, None).await;
            outcomes.push(made.and_then(|id| gid(&id)));
        }
        outcomes
    }

    pub(crate) async fn add_metalink(&self, params: &Params) -> Outcome {
        let text = params.text(0)?.trim_end_matches('=');
        let document = BASE64_NOPAD
            .decode(text.as_bytes())
            .or_else(|_| BASE64.decode(text.as_bytes()));
        let options = Options::read(params.optional_map(1)?, OptionScope::WithDownload)?;
        self.check_options(&options)?;
        self.check_shared(&options)?;
        let options = options.over(&self.usual_options());
        let position = self.position(params, 2)?;
        let document = document.map_err(|_| invalid_base64())?;
        let files = match Document::read(&document, &preference(&options)) {
            Ok(document) => document.files,
            // As in aria2, which finds no file in it.
            Err(Unreadable::NotMetalink) => Vec::new(),
            Err(Unreadable::NotXml | Unreadable::NotText) => return Err(unreadable()),
            Err(refused) => return Err(Fault::new(refused.to_string())),
        };
        let is_wanted = |file: &File| {
            let is = |name: &str, value: &Option<String>| {
                options.get(name).is_none_or(|asked| value.as_deref() == Some(asked))
            };
            is("metalink-language", &file.language)
                && is("metalink-os", &file.os)
                && is("metalink-version", &file.version)
        };
        let is_selected = option::selected(&options)?;
        let options = option::of_document(&options);
        let dir = self.save_dir()?;
        let mut requests = Vec::new();
        if files.len().saturating_mul(options.bytes()) > MAX_REPEATED_BYTES {
            let most = MAX_REPEATED_BYTES >> 20;
            return Err(Fault::new(format!(
                "The options of all files of the document would have more than {most} MiB: give shorter ones."
            )));
        }
        let numbered = files.into_iter().filter(is_wanted).zip(1..);
        for (file, _) in numbered.filter(|(_, index)| is_selected(*index)) {
            let mut request = request(file, &options, &dir)?;
            self.confine(&mut request);
            requests.push(request);
        }
        let mut ids: Vec<String> = Vec::with_capacity(requests.len());
        let mut refused = None;
        for made in self.make_all(requests).await {
            match made {
                Ok(made) => ids.push(serde_json::from_slice(&made).map_err(|error| Fault::new(error.to_string()))?),
                Err(fault) => refused = Some(fault),
            }
        }
        // The GIDs of what was made are needed more than the reason why another file was not.
        if let Some(fault) = refused.filter(|_| ids.is_empty()) {
            return Err(fault);
        }
        if let Some(position) = position {
            let tasks = self.task_ids(&ids)?;
            self.put_at(&tasks, position).await?;
        }
        json(&ids)
    }

    /// The ids of those that are tasks.
    fn task_ids(&self, gids: &[String]) -> Result<Vec<String>, Fault> {
        let board = self.board()?;
        let found = gids.iter().filter_map(|gid| board.find(gid).ok());
        Ok(found.map(|download| download.task.id().to_owned()).collect())
    }
}

fn not_unique(gid: Gid) -> Fault {
    Fault::new(format!("GID {gid} is not unique"))
}

/// A magnet link without the trackers that `bt-exclude-tracker` names.
fn admitted(url: &str, options: &Options) -> Result<String, Fault> {
    if !option::excludes_trackers(options) {
        return Ok(url.to_owned());
    }
    let mut magnet: Magnet = url
        .parse()
        .map_err(|error: InvalidMagnet| Fault::new(error.to_string()))?;
    let is_admitted = option::admitted(options);
    magnet.trackers.retain(|tracker| is_admitted(tracker.expose()));
    Ok(magnet.to_string())
}

fn unreadable() -> Fault {
    Fault::new("Could not parse Metalink XML document.")
}

fn preference(options: &Options) -> Preference {
    let text = |name: &str| options.get(name).unwrap_or_default();
    let protocol = Some(text("metalink-preferred-protocol")).filter(|protocol| !matches!(*protocol, "" | "none"));
    Preference {
        locations: text("metalink-location")
            .split(',')
            .map(|code| code.trim().to_ascii_lowercase())
            .collect(),
        protocol: protocol.map(str::to_owned),
        base: text("metalink-base-uri").to_owned(),
    }
}

/// The request for a file of a document: its name is relative to the directory, its hashes, its size and the most
/// connections to a server are the document's.
fn request(file: File, options: &Options, dir: &str) -> Result<CreateTaskRequest, Fault> {
    let mut urls = file.urls.iter().map(|url| url.expose().to_owned());
    let mut request = CreateTaskRequest {
        url: urls.next().unwrap_or_default(),
        mirrors: urls.collect(),
        piece_hashes: file.pieces.map(|pieces| pieces.to_string()).unwrap_or_default(),
        expected_size_bytes: file.size,
        ..CreateTaskRequest::default()
    };
    let checksum = file.checksum.map(|checksum| checksum.to_string());
    option::apply(&options.of_file(&file.path.to_string(), checksum), &mut request, dir)?;
    request.max_connections = match (request.max_connections, file.max_connections) {
        (Some(asked), Some(allowed)) => Some(asked.min(allowed)),
        (asked, allowed) => asked.or(allowed),
    };
    Ok(request)
}
