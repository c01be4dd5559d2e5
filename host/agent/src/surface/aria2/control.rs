//! Downloads that are paused, removed, moved and changed, and the options of all.

use protocol::{
    ChangeTaskParams, ConfigPatch, ConfigSnapshot, CreateTaskRequest, DeleteTaskParams, DeleteTasksParams, ErrorCode,
    Method, ReorderParams, SpeedLimitParams, TaskIdParams, TaskStatus,
};
use serde_json::{Map, Value};

use super::{
    board::{Found, Stopped},
    call::{Caller, Outcome, ok, raw},
    fault::Fault,
    gid::Gid,
    option::{self, Given, Options},
    params::Params,
    tell::named,
};
use crate::{link::session::CallError, settings::config::Host};

/// How often a change of the settings is tried anew because somebody else changed them at the same time.
const MAX_TRIES: usize = 5;

/// Options for all downloads to come. A text that is given again replaces the one before, so this bounds all of them.
const MAX_TEMPLATE_BYTES: usize = 16 * 1024;

/// Tasks that are named in one call of the daemon.
const NAMED_AT_ONCE: usize = 5000;

/// A task that a parameter names.
struct Known {
    id: String,
    status: TaskStatus,
}

impl Known {
    fn is_stopped(&self) -> bool {
        matches!(self.status, TaskStatus::Completed | TaskStatus::Error)
    }

    fn params(&self) -> TaskIdParams {
        TaskIdParams {
            task_id: self.id.clone(),
        }
    }
}

impl Caller {
    /// The task that the first parameter names; none if it names a memory.
    fn known(&self, params: &Params) -> Result<(Gid, Option<Known>), Fault> {
        let text = params.text(0)?;
        self.hub()?.look_at_board(|projection, board| {
            let found = named(board, text).map_err(|fault| self.not_seen(fault))?;
            if self.visitor.is_some() && !self.may_see(found.text(projection).as_bytes()) {
                return Err(self.not_seen(Fault::unauthorized()));
            }
            let known = found.task(projection).map(|task| Known {
                id: task.id.to_string(),
                status: task.status,
            });
            Ok((found.gid, known))
        })
    }

    pub(super) async fn remove(&self, params: &Params) -> Outcome {
        let (gid, known) = self.known(params)?;
        let task = known
            .filter(|task| !task.is_stopped())
            .ok_or_else(|| Fault::new(format!("Active Download not found for GID#{gid}")))?;
        let delete = DeleteTaskParams {
            task_id: task.id,
            delete_files: false,
        };
        self.tell(Method::TaskDelete, &delete).await?;
        raw(&gid.to_string())
    }

    pub(super) async fn pause(&self, params: &Params) -> Outcome {
        let (gid, known) = self.known(params)?;
        let task = known
            .filter(|task| !task.is_stopped() && task.status != TaskStatus::Paused)
            .ok_or_else(|| Fault::new(format!("GID#{gid} cannot be paused now")))?;
        self.tell(Method::TaskPause, &task.params()).await?;
        raw(&gid.to_string())
    }

    pub(super) async fn unpause(&self, params: &Params) -> Outcome {
        let (gid, known) = self.known(params)?;
        let task = known
            .filter(|task| task.status == TaskStatus::Paused)
            .ok_or_else(|| Fault::new(format!("GID#{gid} cannot be unpaused now")))?;
        self.tell(Method::TaskResume, &task.params()).await?;
        raw(&gid.to_string())
    }

    pub(super) async fn pause_all(&self) -> Outcome {
        self.tell(Method::TaskPauseAll, &Map::new()).await?;
        ok()
    }

    pub(super) async fn unpause_all(&self) -> Outcome {
        self.tell(Method::TaskResumeAll, &Map::new()).await?;
        ok()
    }

    // The order.

    pub(super) async fn change_position(&self, params: &Params) -> Outcome {
        let text = params.text(0)?;
        let (offset, how) = (params.integer(1)?, params.text(2)?);
        let (line, now, id) = self.hub()?.look_at_board(|projection, board| {
            let found = named(board, text)?;
            let line: Vec<u64> = board.waiting().collect();
            let place = match found.found {
                Found::Task(place) => line.iter().position(|waiting| *waiting == place),
                Found::Removed(_) => None,
            };
            let task = place.and_then(|_| found.task(projection));
            let (Some(now), Some(task)) = (place, task) else {
                return Err(Fault::new(format!("GID#{} not found in the waiting queue.", found.gid)));
            };
            Ok((line, now, task.id.to_string()))
        })?;
        let length = i64::try_from(line.len()).unwrap_or(i64::MAX);
        let base = match how {
            "POS_SET" => 0,
            "POS_CUR" => i64::try_from(now).unwrap_or(i64::MAX),
            "POS_END" => length - 1,
            _ => return Err(Fault::new("Illegal argument.")),
        };
        let target = base.saturating_add(offset).clamp(0, length - 1);
        let target = usize::try_from(target).unwrap_or(0);
        if target != now {
            self.put_at(std::slice::from_ref(&id), target).await?;
        }
        let moved = self.hub()?.look_at_board(|projection, board| {
            let mut places = board.waiting();
            places.position(|place| projection.at(place).is_some_and(|task| *task.id == *id))
        });
        raw(&moved.unwrap_or(target))
    }

    /// Puts tasks that wait to a position of the line, as far as they are of one queue. Tasks that started meanwhile do
    /// not mind.
    pub(super) async fn put_at(&self, ids: &[String], position: usize) -> Result<(), Fault> {
        let Some(reorder) = self.hub()?.look_at_board(|projection, board| {
            let line: Vec<_> = board.waiting().filter_map(|place| projection.at(place)).collect();
            let queue = &line.iter().find(|task| ids.iter().any(|id| **id == *task.id))?.queue;
            let others: Vec<_> = line
                .iter()
                .filter(|task| !ids.iter().any(|id| **id == *task.id))
                .collect();
            let before = others.iter().take(position).filter(|task| task.queue == *queue).count();
            let own: Vec<_> = others.into_iter().filter(|task| task.queue == *queue).collect();
            // Those behind that have no place of their own follow by age, as they do already.
            let ordered = own
                .iter()
                .rposition(|task| task.queue_order > 0)
                .map_or(0, |last| last + 1);
            let mut order: Vec<String> = own
                .iter()
                .take(ordered.max(before))
                .map(|task| task.id.to_string())
                .collect();
            order.splice(before..before, ids.iter().cloned());
            Some(ReorderParams {
                queue_id: queue.to_string(),
                task_ids: order,
            })
        }) else {
            return Ok(());
        };
        self.tell(Method::QueueReorder, &reorder).await
    }

    // What was asked for.

    async fn request_of(&self, task: &Known) -> Result<CreateTaskRequest, Fault> {
        Ok(self.app.daemon.call(Method::TaskRequest, &task.params()).await?)
    }

    pub(super) async fn get_option(&self, params: &Params) -> Outcome {
        let (gid, known) = self.known(params)?;
        let task = known.ok_or_else(|| Fault::new(format!("Cannot get option for GID#{gid}")))?;
        let own = option::shown(&self.request_of(&task).await?);
        let usual = match self.visitor {
            None => self.global_options(false)?,
            Some(_) => Options::usual(false),
        };
        raw(&own.over(&usual).without_secrets().into_value())
    }

    pub(super) async fn change_option(&self, params: &Params) -> Outcome {
        let given = params.map(1);
        let (gid, known) = self.known(params)?;
        let options = Options::read(Some(given?), Given::ToDownload)?;
        self.check_options(&options)?;
        let task = known
            .filter(|task| !task.is_stopped())
            .ok_or_else(|| Fault::new(format!("Cannot change option for GID#{gid}")))?;
        if let Some(limit) = options
            .get("max-download-limit")
            .filter(|_| options.is_only("max-download-limit"))
        {
            let limit = SpeedLimitParams {
                task_id: task.id,
                speed_limit_bytes: limit.parse().unwrap_or(0),
            };
            self.tell(Method::TaskSetSpeedLimit, &limit).await?;
            return ok();
        }
        if !options.is_empty() {
            let now = self.request_of(&task).await?;
            let mut change = option::change(&options, &now, &self.usual_dir(&options)?)?;
            self.confine_change(&mut change);
            self.change(task, change).await?;
        }
        ok()
    }

    async fn change(&self, task: Known, change: Map<String, Value>) -> Result<(), Fault> {
        if change.is_empty() {
            return Ok(());
        }
        let task_id = task.id;
        self.tell(Method::TaskChange, &ChangeTaskParams { task_id, change })
            .await
    }

    pub(super) async fn change_uri(&self, params: &Params) -> Outcome {
        params.text(0)?;
        let index = params.integer_from(1, 1)?;
        let (gone, new) = (params.texts(2)?, params.texts(3)?);
        let position = params.position(4)?;
        let (gid, known) = self.known(params)?;
        let task = known
            .filter(|task| !task.is_stopped())
            .ok_or_else(|| Fault::new(format!("Cannot remove URIs from GID#{gid}")))?;
        if index > 1 {
            return Err(Fault::new("fileIndex is out of range"));
        }
        let now = self.request_of(&task).await?;
        let mut uris: Vec<String> = std::iter::once(now.url).chain(now.mirrors).collect();
        let before = uris.len();
        for gone in gone {
            if let Some(index) = uris.iter().position(|uri| uri == gone) {
                uris.remove(index);
            }
        }
        let deleted = before - uris.len();
        let new: Vec<String> = new
            .into_iter()
            .filter(|uri| url::Url::parse(uri).is_ok())
            .map(str::to_owned)
            .collect();
        let added = new.len();
        let at = position.unwrap_or(uris.len()).min(uris.len());
        uris.splice(at..at, new);
        let mut uris = uris.into_iter();
        let Some(first) = uris.next() else {
            return Err(Fault::new(format!("GID#{gid} would have no URI left.")));
        };
        if deleted + added > 0 {
            let mirrors: Vec<String> = uris.collect();
            let change = [("url".to_owned(), first.into()), ("mirrors".to_owned(), mirrors.into())];
            self.change(task, change.into_iter().collect()).await?;
        }
        raw(&[deleted, added])
    }

    // What has stopped.

    pub(super) async fn purge_download_result(&self) -> Outcome {
        let ids: Vec<String> = self.hub()?.look_at_board(|projection, board| {
            let tasks = board.stopped().filter_map(|stopped| match stopped {
                Stopped::Task(place) => projection.at(*place),
                Stopped::Removed(_) => None,
            });
            tasks.map(|task| task.id.to_string()).collect()
        });
        for some in ids.chunks(NAMED_AT_ONCE) {
            let delete = DeleteTasksParams {
                task_ids: some.to_vec(),
                delete_files: false,
            };
            self.tell(Method::TaskDeleteMany, &delete).await?;
        }
        self.hub()?.change_board(super::Board::forget_all);
        ok()
    }

    pub(super) async fn remove_download_result(&self, params: &Params) -> Outcome {
        let (gid, known) = self.known(params)?;
        match known {
            Some(task) if task.is_stopped() => {
                let delete = DeleteTaskParams {
                    task_id: task.id,
                    delete_files: false,
                };
                self.tell(Method::TaskDelete, &delete).await?;
                ok()
            }
            None if self.hub()?.change_board(|board| board.forget(gid)) => ok(),
            _ => Err(Fault::new(format!("Could not remove download result of GID#{gid}"))),
        }
    }

    // Everything.

    fn config(&self) -> Result<ConfigSnapshot, Fault> {
        let config = self.hub()?.look(|daemon| serde_json::from_str(daemon.config()));
        config.map_err(|error| Fault::new(error.to_string()))
    }

    /// Where files go that name no directory.
    pub(super) fn save_dir(&self) -> Result<String, Fault> {
        Ok(self.app.daemon.save_dir()?)
    }

    /// What holds for downloads to come, or for everything.
    fn global_options(&self, is_global: bool) -> Result<Options, Fault> {
        let settings = Options::of_settings(&self.config()?, &self.save_dir()?, is_global);
        let template = self.dialect().template();
        let template = template.filtered(|row| is_global || row.is_of_download());
        Ok(template.over(&settings).over(&Options::usual(is_global)))
    }

    pub(super) fn get_global_option(&self) -> Outcome {
        let options = self.global_options(true)?;
        raw(&options
            .over(&self.dialect().started_with)
            .without_secrets()
            .into_value())
    }

    pub(super) async fn change_global_option(&self, params: &Params) -> Outcome {
        let mut options = Options::read(Some(params.map(0)?), Given::ToAll)?;
        options.keep_hidden(&self.dialect().template());
        let values = options.take_settings();
        if options.bytes() > MAX_TEMPLATE_BYTES {
            let most = MAX_TEMPLATE_BYTES >> 10;
            return Err(Fault::new(format!(
                "Options for all downloads to come have at most {most} KiB together: each download gets them."
            )));
        }
        if !values.is_empty() {
            self.patch(values).await?;
        }
        self.dialect().change_template(options);
        ok()
    }

    async fn patch(&self, values: std::collections::BTreeMap<String, String>) -> Result<(), Fault> {
        let mut tries = 0;
        loop {
            tries += 1;
            let patch = ConfigPatch {
                expected_revision: self.config()?.revision,
                values: values.clone(),
            };
            let patched = self
                .app
                .daemon
                .call::<ConfigSnapshot>(Method::ConfigPatch, &patch)
                .await;
            match patched {
                Ok(_) => return Ok(()),
                Err(CallError::Refused(error))
                    if error.application_code() == Some(ErrorCode::Conflict) && tries < MAX_TRIES => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Everything is on the disk when it is answered; a program in aria2's place has a file of its own for that.
    pub(super) async fn save_session(&self) -> Outcome {
        match &self.dialect().session_file {
            Some(file) => file.save().await.map_err(Fault::new)?,
            None if self.app.listening.host == Host::DropIn => return Err(Fault::new("Filename is not given.")),
            None => {}
        }
        ok()
    }

    pub(super) fn shutdown(&self, is_forced: bool) -> Outcome {
        if self.app.listening.host == Host::Desktop {
            return Err(Fault::new("Only a headless server can be shut down from here."));
        }
        self.dialect().ask_to_end(is_forced);
        ok()
    }
}
