//! Tasks whose URL a resolver handles. It is asked at the start of every run, because a direct URL may expire within
//! minutes.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use transfer::{Failure, FailureKind, FileName, Outcome, Source};

use crate::{
    model::{
        group::{Group, GroupSpec, LeftOut},
        id::{GroupId, RunId, TaskId, Timestamp},
        resolution::{Resolution, ResolverId},
        spec::TaskSpec,
        task::{Phase, Task},
    },
    resolver::{List, ListedFile, ResolveRequest, Resolved, Unresolved},
    state::{
        model::State,
        step::{Effect, Resolve},
    },
};

/// A larger list needs the user's confirmation: pasting a URL must not fill the disk.
const MAX_UNCONFIRMED_BYTES: u64 = 10 * 1024 * 1024 * 1024;

/// The most files of one list.
const MAX_FILES: usize = 10_000;

impl State {
    /// The first effect of a run: resolve the URL if a resolver claims it, else start.
    pub(super) fn begin(&self, task: &Task, run: RunId) -> Effect {
        match task.resolution() {
            Some(resolution) => self.ask(task, run, resolution.clone()),
            None => Effect::Start(Box::new(self.start(task, run, None))),
        }
    }

    fn ask(&self, task: &Task, run: RunId, resolution: Resolution) -> Effect {
        let full_accounts = self.accounts.full_for(&resolution.resolver, run);
        let Source {
            given_by,
            request,
            netrc,
            ignore_tls_errors,
            ..
        } = self.source(task, task.spec());
        Effect::Resolve(Box::new(Resolve {
            task: task.id,
            run,
            request: ResolveRequest {
                resolution,
                url: task.url().clone(),
                given_by,
                request,
                proxies: self.proxies(&task.spec().proxy),
                netrc,
                ignore_tls_errors,
                attempts: task.attempts,
                full_accounts,
            },
            save_dir: Arc::clone(&task.save_dir),
        }))
    }

    pub(super) fn resolved(
        &mut self,
        now: Timestamp,
        (id, run): (TaskId, RunId),
        (outcome, places): (Result<Resolved, Unresolved>, &[PathBuf]),
        effects: &mut Vec<Effect>,
    ) {
        let Some(serial) = self.serial_of_run(id, run) else {
            return;
        };
        if matches!(self.tasks[&serial].phase, Phase::Stopping { .. }) {
            return self.ended(now, (id, run), Outcome::Stopped, effects);
        }
        match outcome {
            Ok(Resolved::Pass) => {
                self.leave_account(run);
                effects.push(Effect::Start(Box::new(self.start(&self.tasks[&serial], run, None))));
            }
            Ok(Resolved::Link(link)) => {
                if self.is_admitted(now, (serial, run), link.account.as_ref()) {
                    let start = self.start(&self.tasks[&serial], run, Some(&link));
                    effects.push(Effect::Start(Box::new(start)));
                }
            }
            Ok(Resolved::AccountFull(used)) => self.account_full(now, (serial, run), &used),
            Ok(Resolved::List(list)) => match self.split(now, serial, list, places) {
                Ok(()) if self.serial_of_run(id, run).is_some() => effects.push(self.begin(&self.tasks[&serial], run)),
                Ok(()) => {}
                Err(failure) => self.failed(now, serial, failure),
            },
            Err(Unresolved {
                failure,
                login: Some(need),
            }) => self.needs_login((serial, run), need, failure),
            Err(Unresolved { failure, login: None }) => self.failed(now, serial, failure),
        }
    }

    /// Applies a resolver's list: the task becomes its first file; if there are more files, all become tasks of a group.
    /// The tasks of a large list are paused until the user resumes them.
    /// The group's directory is the first free one of `places`.
    fn split(&mut self, now: Timestamp, serial: u64, list: List, places: &[PathBuf]) -> Result<(), Failure> {
        let invalid = |message: &str| Err(Failure::new(FailureKind::Plugin, message));
        if self.tasks[&serial]
            .resolution()
            .is_none_or(|resolution| resolution.item.is_some())
        {
            return invalid("the plugin gave a list where the link of one file was requested");
        }
        if list.files.len() > MAX_FILES {
            return invalid("the plugin gave more than 10000 files");
        }
        let spec = self.tasks[&serial].spec();
        if spec.has_too_much_for(list.files.len()) {
            return Err(Failure::new(
                FailureKind::Plugin,
                "each file would get the request's headers, cookies and body: together more than 16 MiB",
            ));
        }
        let wanted = list.directory(&self.tasks[&serial].save_dir);
        let resolver = list.resolver;
        let mut files = list.files.into_iter();
        let Some(first) = files.next() else {
            return Err(Failure::new(
                FailureKind::NotFound,
                "the plugin lists no files for this URL",
            ));
        };
        if files.len() == 0 && list.left_out.is_empty() {
            self.edit_spec(serial, |task| task.become_file(&resolver, &first));
            return Ok(());
        }
        let total_bytes: u64 = files
            .as_slice()
            .iter()
            .chain([&first])
            .filter_map(|file| file.size_bytes)
            .fold(0, u64::saturating_add);
        let starts_paused = total_bytes > MAX_UNCONFIRMED_BYTES;
        let root = self.free_place(Some(serial), places).cloned().unwrap_or(wanted);
        let group = self.group_for(now, serial, (list.name, list.left_out), &root);
        self.leave_group(serial);
        self.groups.join(group);
        self.edit_spec(serial, |task| {
            task.become_file(&resolver, &first);
            task.group = Some(group);
            task.save_dir = directory(&root, &first).into();
            if starts_paused {
                task.phase = Phase::Paused;
            }
        });
        let mut last_dir: Arc<Path> = root.as_path().into();
        for file in files {
            let spec = TaskSpec {
                group: Some(group),
                save_dir: Some(directory(&root, &file)),
                start_paused: starts_paused,
                ..spec.clone()
            };
            self.create_one(now, TaskId::random(), spec.of_file(&resolver, &file), &mut last_dir);
        }
        self.announce_group(group);
        Ok(())
    }

    fn group_for(
        &mut self,
        now: Timestamp,
        serial: u64,
        (name, left_out): (String, Vec<LeftOut>),
        root: &Path,
    ) -> GroupId {
        let id = GroupId::random();
        let spec = GroupSpec {
            name,
            source_url: self.tasks[&serial].url().shown(),
            save_dir: Some(root.to_owned()),
            left_out,
        };
        let group = Arc::new(Group {
            id,
            spec,
            created_at: now,
        });
        self.groups.insert(group);
        id
    }
}

fn directory(root: &Path, file: &ListedFile) -> PathBuf {
    let parts = file.directories.iter().map(FileName::as_str);
    parts.fold(root.to_owned(), |path, part| path.join(part))
}

impl ListedFile {
    /// How the bytes are found; `None` for a file with a URL of its own.
    fn resolution(&self, resolver: &ResolverId) -> Option<Resolution> {
        let resolution = || Resolution {
            resolver: resolver.clone(),
            item: Some(self.item.clone()),
        };
        self.url.is_none().then(resolution)
    }
}

impl TaskSpec {
    /// The same, for one file of the resolver's list.
    fn of_file(mut self, resolver: &ResolverId, file: &ListedFile) -> Self {
        if let Some(url) = &file.url {
            self.urls = vec![url.clone()];
        }
        self.resolution = file.resolution(resolver);
        self.file_name = Some(file.name.clone());
        self.promised_size = file.size_bytes;
        self.checksum.clone_from(&file.checksum);
        self
    }
}

impl Task {
    /// Becomes a download of one file of the resolver's list. A name that the user chose stays.
    fn become_file(&mut self, resolver: &ResolverId, file: &ListedFile) {
        self.total_bytes = file.size_bytes.or(self.total_bytes);
        self.ask(|asked| {
            asked.file_name.get_or_insert_with(|| file.name.clone());
            if let Some(url) = &file.url {
                asked.urls = vec![url.clone()].into();
            }
            asked.resolve(file.resolution(resolver));
            asked.verify_with(file.checksum.as_ref());
        });
    }
}
