//! Dispatches commands to the module of what they change.

use std::sync::Arc;

use transfer::{CookieJar, Credentials};

use crate::{
    model::{
        error::CommandError,
        id::Timestamp,
        settings::{Settings, VersionedSettings},
        site::{CookieSite, Site},
    },
    state::{
        model::State,
        step::{Command, Effect, LimitScope, Reply, Row},
    },
};

/// Sites with stored cookies; a browser's whole export has a few hundred.
const MAX_COOKIE_SITES: usize = 1000;

impl State {
    pub(super) fn command(
        &mut self,
        now: Timestamp,
        command: Command,
        effects: &mut Vec<Effect>,
    ) -> Result<Reply, CommandError> {
        if self.is_closing {
            return Err(CommandError::Closed);
        }
        match command {
            Command::Create(tasks) => return self.create(now, tasks).map(Reply::Tasks),
            Command::GroupCreate(id, spec, tasks, places) => {
                return self.group_create(now, (id, *spec), tasks, &places).map(Reply::Tasks);
            }
            Command::Rename(task, name) => return self.rename(task, name),
            Command::ChangeUrl(task, url, resolver) => return self.change_url(task, url, resolver, effects),
            Command::ChangeSpec(task, before, spec) => return self.change_spec(task, *before, *spec, effects),
            Command::ChangeSettings(expected, settings) => {
                return self.change_settings(expected, *settings, effects).map(Reply::Revision);
            }
            Command::Pause(task) => self.pause(task, effects)?,
            Command::Resume(task) => self.resume(task, effects)?,
            Command::Delete(task, fate) => self.delete(&[self.serial(task)?], fate, effects)?,
            Command::PauseMany(tasks) => self.pause_each(&self.known(&tasks), effects),
            Command::ResumeMany(tasks) => self.resume_each(&self.known(&tasks), effects),
            Command::DeleteMany(tasks, fate) => self.delete(&self.known(&tasks), fate, effects)?,
            Command::NoteDeleted(tasks) => self.note_deleted(tasks),
            Command::PauseAll => self.pause_each(&self.those(|_| true), effects),
            Command::ResumeAll => self.resume_all(effects),
            Command::IgnoreResolver(task) => self.ignore_resolver(task, effects)?,
            Command::SetTags(task, tags) => self.set_tags(task, tags)?,
            Command::SetSpeeds(task, download, upload) => self.set_speeds(task, download, upload, effects)?,
            Command::Boost(task) => self.toggle_boost(task, effects)?,
            Command::GroupPause(group) => self.pause_each(&self.of_group(group)?, effects),
            Command::GroupResume(group) => self.resume_each(&self.of_group(group)?, effects),
            Command::GroupDelete(group, fate) => self.delete(&self.of_group(group)?, fate, effects)?,
            Command::MoveTask(task, queue) => self.move_task(task, queue, effects)?,
            Command::QueueCreate(id, spec) => self.queue_create(id, *spec)?,
            Command::QueueUpdate(id, spec) => self.queue_update(id, *spec, effects)?,
            Command::QueueDelete(id) => self.queue_delete(id, effects)?,
            Command::QueueStart(id) => self.queue_start(id, effects)?,
            Command::QueueStop(id) => self.queue_stop(id, effects)?,
            Command::QueueSchedule(id, schedule) => self.queue_schedule(id, schedule)?,
            Command::QueueReorder(id, tasks) => self.queue_reorder(id, &tasks)?,
            Command::SiteSave(site, credentials) => self.site_save(site, credentials)?,
            Command::SiteDelete(site) => self.site_delete(site)?,
            Command::SiteClear => self.site_clear(),
            Command::CookiesSave(sites) => self.cookies_save(sites)?,
            Command::CookiesDelete(site) => self.cookies_delete(site)?,
            Command::CookiesClear => self.cookies_clear(),
            Command::LoggedIn(account) => self.logged_in(&account),
            Command::ChangeTorrent(task, options) => self.change_torrent(task, options, effects)?,
            Command::NoteFiles(task, files) => self.note_files(task, files)?,
            Command::Recheck(task) => self.recheck(task, effects)?,
            Command::SetSeedLimits(task, limits) => self.set_seed_limits(task, limits, effects)?,
            Command::RequestRetry(task, delay) => self.request_retry(now, task, delay)?,
        }
        Ok(Reply::Done)
    }

    fn site_save(&mut self, site: Site, credentials: Credentials) -> Result<(), CommandError> {
        if credentials.user.is_empty() || credentials.user.contains(':') {
            return Err(CommandError::InvalidSite);
        }
        self.changes.rows.push(Row::Site(site.clone(), credentials.clone()));
        self.changes.sites = true;
        self.sites.insert(site, credentials);
        Ok(())
    }

    fn site_delete(&mut self, site: Site) -> Result<(), CommandError> {
        self.sites
            .remove(&site)
            .ok_or_else(|| CommandError::UnknownSite(site.to_string()))?;
        self.changes.rows.push(Row::SiteDeleted(site));
        self.changes.sites = true;
        Ok(())
    }

    fn site_clear(&mut self) {
        let sites = std::mem::take(&mut self.sites);
        self.changes.sites = !sites.is_empty();
        self.changes.rows.extend(sites.into_keys().map(Row::SiteDeleted));
    }

    fn cookies_save(&mut self, sites: Vec<(CookieSite, Arc<CookieJar>)>) -> Result<(), CommandError> {
        let new = sites.iter().filter(|(site, _)| !self.cookies.contains_key(site));
        if self.cookies.len() + new.count() > MAX_COOKIE_SITES {
            return Err(CommandError::TooManyCookieSites(MAX_COOKIE_SITES));
        }
        for (site, jar) in sites {
            self.changes.rows.push(Row::Cookies(site.clone(), Arc::clone(&jar)));
            self.cookies.insert(site, jar);
        }
        Ok(())
    }

    fn cookies_delete(&mut self, site: CookieSite) -> Result<(), CommandError> {
        self.cookies
            .remove(&site)
            .ok_or_else(|| CommandError::UnknownCookieSite(site.to_string()))?;
        self.changes.rows.push(Row::CookiesDeleted(site));
        Ok(())
    }

    fn cookies_clear(&mut self) {
        let sites = std::mem::take(&mut self.cookies);
        self.changes.rows.extend(sites.into_keys().map(Row::CookiesDeleted));
    }

    pub(super) fn change_settings(
        &mut self,
        expected: Option<u64>,
        settings: Settings,
        effects: &mut Vec<Effect>,
    ) -> Result<u64, CommandError> {
        settings.validate()?;
        let revision = self.settings.revision;
        if expected.is_some_and(|expected| expected != revision) {
            return Err(CommandError::Conflict { revision });
        }
        if settings == *self.settings.settings {
            return Ok(revision);
        }
        effects.push(Effect::SetLimit(LimitScope::Global, settings.speeds()));
        if settings.turtle_schedule != self.settings.settings.turtle_schedule {
            self.turtle_seen = None;
        }
        let has_new_seeding = settings.seeding != self.settings.settings.seeding;
        let allowances = if has_new_seeding { self.allowances() } else { Vec::new() };
        self.settings = VersionedSettings {
            revision: revision + 1,
            settings: Arc::new(settings),
        };
        self.changes.rows.push(Row::Settings(self.settings.clone()));
        self.changes.settings = true;
        if has_new_seeding {
            self.seed_settings_changed(&allowances, effects);
        }
        Ok(revision + 1)
    }
}
