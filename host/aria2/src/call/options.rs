//! aria2's methods that read and change options: of one download, and the global ones.

use protocol::{
    ChangeTaskParams, ConfigPatch, ConfigSnapshot, CreateTaskRequest, ErrorCode, Method, SeedLimitParams,
    SpeedLimitParams, TaskDto, TaskIdParams, TaskStatus,
};
use serde_json::{Map, Value};

use super::{
    control::about,
    outcome::{Outcome, json, ok},
};
use crate::{
    board::Download,
    caller::Caller,
    dialect::Saving,
    option::{self, OptionScope, Options},
    vocabulary::{
        fault::{CommandError, Fault},
        params::Params,
    },
};

/// Limit of retries when another client changes the settings concurrently.
const MAX_TRIES: usize = 5;

/// Limit of the defaults for new downloads, all together.
const MAX_TEMPLATE_BYTES: usize = 16 * 1024;

/// A limit that is the one in the settings.
const INHERITED: i64 = -2;

/// Limits that a running task takes at once; what is none stays.
#[derive(Debug, Default)]
struct Limits {
    upload_bytes: Option<u64>,
    ratio_milli: Option<i64>,
    time_secs: Option<i64>,
    no_seed: Option<bool>,
}

/// The limits of a change, which then has them no more.
fn take_limits(change: &mut Map<String, Value>) -> Option<Limits> {
    let given = ["uploadLimitBytes", "seedRatioLimitMilli", "seedTimeLimitSecs", "noSeed"];
    if !given.iter().any(|name| change.contains_key(*name)) {
        return None;
    }
    let [upload, ratio, time, no_seed] = given.map(|name| change.remove(name));
    Some(Limits {
        upload_bytes: upload.and_then(|value| value.as_u64()),
        ratio_milli: ratio.and_then(|value| value.as_i64()),
        time_secs: time.and_then(|value| value.as_i64()),
        no_seed: no_seed.and_then(|value| value.as_bool()),
    })
}

impl Caller {
    async fn request_of(&self, download: &Download) -> Result<CreateTaskRequest, Fault> {
        Ok(self.command(Method::TaskRequest, &about(download)).await?)
    }

    pub(crate) async fn get_option(&self, params: &Params) -> Outcome {
        let download = self.named(params.text(0)?)?;
        let gid = download.gid;
        if download.is_removed {
            return Err(Fault::new(format!("Cannot get option for GID#{gid}")));
        }
        let own = option::shown(&self.request_of(&download).await?);
        let usual = match self.visitor {
            None => self.global_options(false)?,
            Some(_) => Options::usual(false),
        };
        json(&own.over(&usual).without_secrets().into_value())
    }

    pub(crate) async fn change_option(&self, params: &Params) -> Outcome {
        let given = params.map(1);
        let download = self.named(params.text(0)?)?;
        let gid = download.gid;
        let options = Options::read(Some(given?), OptionScope::ToDownload)?;
        self.check_options(&options)?;
        self.check_shared(&options)?;
        if download.is_stopped() {
            return Err(Fault::new(format!("Cannot change option for GID#{gid}")));
        }
        if let Some(limit) = options
            .get("max-download-limit")
            .filter(|_| options.is_only("max-download-limit"))
        {
            let limit = SpeedLimitParams {
                task_id: download.task.id().to_owned(),
                speed_limit_bytes: limit.parse().unwrap_or(0),
            };
            self.order(Method::TaskSetSpeedLimit, &limit).await?;
            return Ok(ok());
        }
        if !options.is_empty() {
            let options = if download.task.is_torrent() {
                option::of_torrent(&options)
            } else {
                options
            };
            self.change_to(&download, &options).await?;
        }
        Ok(ok())
    }

    /// Changes what `options` say: limits and what is of torrents without a restart of the download, then the rest.
    async fn change_to(&self, download: &Download, options: &Options) -> Result<(), Fault> {
        let now = self.request_of(download).await?;
        let mut change = option::change(options, &now, &self.usual_dir(options)?)?;
        self.confine_change(&mut change);
        if let Some(limits) = take_limits(&mut change) {
            self.change_limits(download, limits, &now, &mut change).await?;
        }
        if download.task.is_torrent() {
            self.rename_torrent_files(download, options).await?;
            if let Some(after) = change.remove("torrent") {
                self.change_torrent(download, &now.torrent.unwrap_or_default(), after)
                    .await?;
            }
        }
        self.change(download, change).await
    }

    /// Changes limits of seeding and of uploads; the others stay.
    async fn change_limits(
        &self,
        download: &Download,
        limits: Limits,
        request: &CreateTaskRequest,
        change: &mut Map<String, Value>,
    ) -> Result<(), Fault> {
        let TaskIdParams { task_id } = about(download);
        let task: TaskDto = self.command(Method::TaskGet, &about(download)).await?;
        let mut time_secs = match limits.time_secs {
            Some(secs) => secs,
            None => request.seed_time_limit_secs.unwrap_or(INHERITED),
        };
        if let Some(is_off) = limits.no_seed {
            if is_off && task.status == TaskStatus::Completed {
                // What is seeded already ends at the next look at the time.
                time_secs = 1;
            } else {
                change.insert("noSeed".to_owned(), is_off.into());
            }
        }
        let params = SeedLimitParams {
            task_id,
            ratio_limit_milli: limits.ratio_milli.unwrap_or(task.seed_ratio_limit_milli),
            post_ratio_limit_milli: task.seed_post_ratio_limit_milli,
            seed_time_limit_minutes: INHERITED,
            seed_time_limit_secs: Some(time_secs),
            inactive_time_limit_minutes: task.seed_inactive_time_limit_minutes,
            upload_limit_bps: limits.upload_bytes.unwrap_or(request.upload_limit_bytes),
        };
        self.order(Method::TaskSetSeedLimits, &params).await
    }

    async fn change(&self, download: &Download, change: Map<String, Value>) -> Result<(), Fault> {
        if change.is_empty() {
            return Ok(());
        }
        let TaskIdParams { task_id } = about(download);
        self.order(Method::TaskChange, &ChangeTaskParams { task_id, change })
            .await
    }

    pub(crate) async fn change_uri(&self, params: &Params) -> Outcome {
        params.text(0)?;
        let index = params.integer_from(1, 1)?;
        let (gone, new) = (params.texts(2)?, params.texts(3)?);
        let position = params.position(4)?;
        let download = self.named(params.text(0)?)?;
        let gid = download.gid;
        if download.is_stopped() {
            return Err(Fault::new(format!("Cannot remove URIs from GID#{gid}")));
        }
        if index > 1 {
            return Err(Fault::new("fileIndex is out of range"));
        }
        let now = self.request_of(&download).await?;
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
            self.change(&download, change.into_iter().collect()).await?;
        }
        json(&[deleted, added])
    }

    /// The options that apply to new downloads, by falling precedence: `changeGlobalOption`, the settings of the
    /// service, aria2's defaults. Without `is_global`, only those that a single download can have.
    fn global_options(&self, is_global: bool) -> Result<Options, Fault> {
        let settings = Options::of_settings(&self.dialect.service.config()?, &self.save_dir()?, is_global);
        let template = self.dialect.template();
        let template = template.filtered(|row| is_global || row.allowed_in_input_file());
        Ok(template.over(&settings).over(&Options::usual(is_global)))
    }

    /// The options of the command line come last: they are only those of the program itself (ports, paths), which
    /// nothing changes while it runs. aria2 reports them as well, without the secret.
    pub(crate) fn get_global_option(&self) -> Outcome {
        let options = self.global_options(true)?;
        json(
            &options
                .over(&self.dialect.setup.started_with)
                .without_secrets()
                .into_value(),
        )
    }

    pub(crate) async fn change_global_option(&self, params: &Params) -> Outcome {
        let mut options = Options::read(Some(params.map(0)?), OptionScope::ToAll)?;
        let template = self.dialect.template();
        options.keep_hidden(&template);
        option::check_proxies(&options.clone().over(&template))?;
        let values = options.take_settings();
        let too_large = || {
            let most = MAX_TEMPLATE_BYTES >> 10;
            Fault::new(format!(
                "Options for all downloads to come have at most {most} KiB together: each download gets them."
            ))
        };
        if options.clone().over(&template).bytes() > MAX_TEMPLATE_BYTES {
            return Err(too_large());
        }
        if let (Some(path), Saving::File(file)) = (options.get("save-session"), &self.dialect.setup.saving) {
            file.change_path(path.to_owned()).await.map_err(Fault::new)?;
        }
        if !values.is_empty() {
            self.patch(values).await?;
        }
        // Another client may have changed them meanwhile.
        if !self.dialect.change_template(&options, MAX_TEMPLATE_BYTES) {
            return Err(too_large());
        }
        Ok(ok())
    }

    pub(crate) async fn patch(&self, values: std::collections::BTreeMap<String, String>) -> Result<(), Fault> {
        let mut tries = 0;
        loop {
            tries += 1;
            let patch = ConfigPatch {
                expected_revision: self.dialect.service.config()?.revision,
                values: values.clone(),
                unset: Vec::new(),
            };
            let patched = self.command::<ConfigSnapshot>(Method::ConfigPatch, &patch).await;
            match patched {
                Ok(_) => return Ok(()),
                Err(CommandError::Refused(error))
                    if error.application_code() == Some(ErrorCode::Conflict) && tries < MAX_TRIES => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    pub(super) async fn save_session(&self) -> Outcome {
        match &self.dialect.setup.saving {
            Saving::Needless => {}
            Saving::File(file) => file.save().await.map_err(Fault::new)?,
        }
        Ok(ok())
    }

    pub(super) fn shutdown(&self, is_forced: bool) -> Outcome {
        if !self.dialect.setup.allows_shutdown {
            return Err(Fault::new("Only a headless server can be shut down from here."));
        }
        self.dialect.request_shutdown(is_forced);
        Ok(ok())
    }
}
