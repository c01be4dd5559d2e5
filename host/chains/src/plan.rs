//! Which files a job works on, and with which steps, when a task is finished.

use std::{
    collections::HashSet,
    path::{Path, PathBuf},
};

use engine::{GroupId, Task};
use post::{
    job::{JobError, MAX_FILES, Phase, Record, Run, Step},
    volume_set,
};

/// What a plan needs to know of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Download {
    /// The name of the file, as far as it is known.
    pub(crate) name: String,
    /// The volumes that it belongs to, if it is one.
    pub(crate) set: Option<String>,
    pub(crate) directory: PathBuf,
    pub(crate) group: Option<GroupId>,
    pub(crate) id: String,
    /// The file, if it is complete.
    pub(crate) file: Option<PathBuf>,
    /// Whether it does not go on by itself.
    pub(crate) has_failed: bool,
}

impl Download {
    pub(crate) fn of(task: &Task) -> Self {
        let is_complete = task.phase == engine::Phase::Completed;
        let name = task.file_name();
        Self {
            set: volume_set(&name),
            name,
            directory: task.save_dir.to_path_buf(),
            group: task.group,
            id: task.id.to_string(),
            file: task.path.as_deref().filter(|_| is_complete).map(Path::to_owned),
            has_failed: matches!(task.phase, engine::Phase::Failed(_)),
        }
    }
}

/// What a job works on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) files: Vec<PathBuf>,
    /// Of the files.
    pub(crate) tasks: Vec<String>,
    /// What belongs to them and is not there yet, in words for the user.
    pub(crate) awaits: Vec<String>,
    /// Where all of them are, or will be.
    pub(crate) expected: Vec<PathBuf>,
    /// Whether these are the files of a whole group.
    pub(crate) is_of_group: bool,
}

/// The files that belong to the finished download `done`: those of its group if a step joins them, all volumes of an
/// archive, or its own. `None` if none of them is there.
pub(crate) fn plan(done: &Download, all: &[Download], steps: &[Step]) -> Option<Plan> {
    let joins = steps.iter().any(|step| matches!(step, Step::Mux { .. }));
    if let Some(group) = done.group.filter(|_| joins) {
        return of_all(done, all.iter().filter(|other| other.group == Some(group)), true);
    }
    if done.set.is_none() {
        return of_all(done, std::iter::once(done), false);
    }
    let is_volume = |other: &&Download| other.set == done.set && other.directory == done.directory;
    of_all(done, all.iter().filter(is_volume), false)
}

/// The files of all `members`, and which are missing. Of two members of one name, as after a second try, one suffices.
pub(crate) fn of_all<'a>(
    done: &Download,
    members: impl Iterator<Item = &'a Download>,
    is_of_group: bool,
) -> Option<Plan> {
    let (mut there, missing): (Vec<_>, Vec<_>) = members.partition(|member| member.file.is_some());
    let mut seen = HashSet::new();
    let files = there.iter().filter_map(|member| member.file.clone());
    let files: Vec<PathBuf> = files.filter(|file| seen.insert(file.clone())).collect();
    let is_there = |missing: &&&Download| {
        let mut there = there.iter();
        there.any(|member| (&member.name, &member.directory) == (&missing.name, &missing.directory))
    };
    let awaited: Vec<_> = missing.iter().filter(|missing| !is_there(missing)).collect();
    let awaits = awaited.iter().map(|missing| {
        let state = if missing.has_failed { " (failed)" } else { "" };
        format!("{}{state}", missing.name)
    });
    let expected = awaited.iter().map(|missing| missing.directory.join(&missing.name));
    let (awaits, expected) = (awaits.collect(), files.iter().cloned().chain(expected).collect());
    // The one that began it comes first among the tasks; files keep their order.
    there.sort_by_key(|member| member.id != done.id);
    (!files.is_empty()).then(|| Plan {
        files,
        tasks: there.iter().map(|member| member.id.clone()).collect(),
        awaits,
        expected,
        is_of_group,
    })
}

impl Plan {
    /// Whether it will be more files than a job has.
    pub(crate) fn check(&self) -> Result<(), JobError> {
        match self.expected.len() {
            count if count > MAX_FILES => Err(JobError::Files(count)),
            _ => Ok(()),
        }
    }
}

/// Whether the user does not want what belongs together: its job was cancelled while it waited for the rest.
pub(crate) fn is_declined(record: &Record) -> bool {
    record.phase == Phase::Cancelled && !record.awaits.is_empty() && record.run == Run::default()
}

/// What a job that waits for files works on as things are now. Of tasks that were deleted, it keeps the files if all were.
pub(crate) fn arrived(record: &Record, tasks: &[String], all: &[Download]) -> Plan {
    let begun = tasks.iter().find_map(|task| all.iter().find(|other| other.id == *task));
    let found = begun.and_then(|done| plan(done, all, &record.steps));
    found.unwrap_or_else(|| Plan {
        files: record.files.clone(),
        tasks: tasks.to_vec(),
        awaits: Vec::new(),
        expected: record.files.clone(),
        is_of_group: false,
    })
}

/// The steps of a chain that have something to do with the files.
pub(crate) fn concerning(steps: &[Step], files: &[PathBuf]) -> Vec<Step> {
    steps.iter().filter(|step| step.concerns(files)).cloned().collect()
}

/// Where a step may have stages.
pub(crate) fn stages_in(step: &Step, files: &[PathBuf]) -> Vec<PathBuf> {
    let beside = || files.first().and_then(|file| file.parent()).map(ToOwned::to_owned);
    match step {
        Step::Unpack { into: Some(into), .. } => vec![into.clone()],
        // The files need not be in one directory.
        Step::Checksum { .. } => files
            .iter()
            .filter_map(|file| file.parent())
            .map(ToOwned::to_owned)
            .collect(),
        Step::Unpack { into: None, .. } | Step::Mux { .. } | Step::Remux { .. } => beside().into_iter().collect(),
        // Or in the directory that an archive was unpacked to: which of both it is, only the disk knows.
        Step::Plugin { .. } => beside().into_iter().chain(files.first().cloned()).collect(),
        Step::Rename { .. } => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use post::job::Container;

    use super::*;

    fn download(name: &str, group: Option<u8>, is_complete: bool) -> Download {
        Download {
            name: name.to_owned(),
            set: volume_set(name),
            directory: "/d".into(),
            group: group.map(|number| GroupId::from_bytes([number; 16])),
            id: name.to_owned(),
            file: is_complete.then(|| Path::new("/d").join(name)),
            has_failed: false,
        }
    }

    fn unpack() -> Vec<Step> {
        vec![Step::Unpack {
            passwords: post::job::Passwords::default(),
            delete_original: false,
            into: None,
        }]
    }

    #[test]
    fn the_last_volume_begins_the_job_of_all() {
        let all = |third| {
            let names = [("a.part1.rar", true), ("a.part2.rar", true), ("a.part3.rar", third)];
            let others = [("b.part1.rar", false), ("readme.txt", true)];
            let all = names.iter().chain(&others);
            all.map(|(name, is_complete)| download(name, Some(1), *is_complete))
                .collect::<Vec<_>>()
        };
        let early = all(false);
        let found = plan(&early[1], &early, &unpack()).unwrap();
        assert_eq!((found.files.len(), found.awaits), (2, vec!["a.part3.rar".to_owned()]));
        let late = all(true);
        let found = plan(&late[2], &late, &unpack()).unwrap();
        assert_eq!((found.files.len(), found.awaits.len()), (3, 0));
        assert_eq!(found.tasks[0], "a.part3.rar");
        let elsewhere = Download {
            directory: "/e".into(),
            ..download("a.part4.rar", Some(1), false)
        };
        let late: Vec<_> = late.into_iter().chain([elsewhere]).collect();
        assert!(plan(&late[2], &late, &unpack()).is_some());
        assert_eq!(
            plan(&late[4], &late, &unpack()).unwrap().files,
            [PathBuf::from("/d/readme.txt")]
        );
    }

    #[test]
    fn a_file_that_two_tasks_have_completed_is_one() {
        let again = Download {
            id: "again".to_owned(),
            ..download("a.part1.rar", None, true)
        };
        let all = [
            download("a.part1.rar", None, true),
            download("a.part2.rar", None, true),
            again,
        ];
        let found = plan(&all[2], &all, &unpack()).unwrap();
        assert_eq!((found.files.len(), found.expected.len()), (2, 2));
        assert_eq!(found.tasks, ["again", "a.part1.rar", "a.part2.rar"]);
    }

    #[test]
    fn more_files_than_a_job_has_are_refused_before_all_are_there() {
        let all = |count| {
            let names = (1..=count).map(|number| format!("a.part{number}.rar"));
            names.map(|name| download(&name, None, name == "a.part1.rar"))
        };
        let most: Vec<_> = all(MAX_FILES).collect();
        assert_eq!(plan(&most[0], &most, &unpack()).unwrap().check(), Ok(()));
        let more: Vec<_> = all(MAX_FILES + 1).collect();
        let refused = plan(&more[0], &more, &unpack()).unwrap().check();
        assert_eq!(refused, Err(JobError::Files(MAX_FILES + 1)));
    }

    #[test]
    fn what_failed_is_awaited_by_name_until_it_is_there_a_second_time() {
        let failed = Download {
            has_failed: true,
            id: "first try".to_owned(),
            ..download("a.part2.rar", None, false)
        };
        let mut all = vec![download("a.part1.rar", None, true), failed];
        let found = plan(&all[0], &all, &unpack()).unwrap();
        assert_eq!(found.awaits, ["a.part2.rar (failed)"]);
        all.push(download("a.part2.rar", None, true));
        let found = plan(&all[2], &all, &unpack()).unwrap();
        assert_eq!((found.files.len(), found.awaits.len()), (2, 0));
        all.truncate(1);
        assert_eq!(
            plan(&all[0], &all, &unpack()).unwrap().awaits.len(),
            0,
            "it was deleted"
        );
    }

    #[test]
    fn a_job_that_waits_takes_what_came_and_goes_on_without_what_was_deleted() {
        let record: Record = serde_json::from_str(
            r#"{"id":1,"files":["/d/a.part1.rar"],"steps":[{"kind":"unpack"}],"step":0,"run":0,
                "phase":{"kind":"waiting"},"awaits":["a.part2.rar"]}"#,
        )
        .unwrap();
        let tasks = ["a.part1.rar".to_owned()];
        let mut all = vec![
            download("a.part1.rar", None, true),
            download("a.part2.rar", None, true),
            download("a.part3.rar", None, false),
        ];
        let plan = arrived(&record, &tasks, &all);
        assert_eq!((plan.tasks.len(), plan.awaits), (2, vec!["a.part3.rar".to_owned()]));
        all.truncate(2);
        let plan = arrived(&record, &tasks, &all);
        assert_eq!((plan.files.len(), plan.awaits.len()), (2, 0));
        all.remove(0);
        let plan = arrived(&record, &tasks, &all);
        assert_eq!(
            (plan.files, plan.awaits.len()),
            (record.files, 0),
            "its own task was deleted"
        );
    }

    #[test]
    fn tracks_of_a_group_are_joined_when_all_are_there() {
        let steps = [Step::Mux {
            container: Container::Mp4,
        }];
        let all = [
            download("v.mp4", Some(1), true),
            download("a.m4a", Some(1), false),
            download("x", None, false),
        ];
        let found = plan(&all[0], &all, &steps).unwrap();
        assert_eq!(found.awaits, ["a.m4a"]);
        assert_eq!(concerning(&steps, &found.expected), steps, "it will be joined");
        let all = [
            download("v.mp4", Some(1), true),
            download("a.m4a", Some(1), true),
            download("x", None, false),
        ];
        let found = plan(&all[1], &all, &steps).unwrap();
        assert_eq!(found.files, [PathBuf::from("/d/v.mp4"), PathBuf::from("/d/a.m4a")]);
        assert!(found.is_of_group);
        assert_eq!(concerning(&steps, &found.files), steps);
        assert_eq!(concerning(&steps, &found.files[..1]), []);
    }

    #[test]
    fn what_a_plugin_leaves_is_found_beside_its_files_or_in_their_directory() {
        let step = Step::Plugin {
            identity: "unpack@svc".into(),
        };
        let places = stages_in(&step, &["/d/a.zip".into(), "/d/b.zip".into()]);
        assert_eq!(places, [PathBuf::from("/d"), PathBuf::from("/d/a.zip")]);
        assert_eq!(stages_in(&step, &[]), Vec::<PathBuf>::new());
        let container = Container::Mp4;
        for step in [Step::Mux { container }, Step::Remux { container }] {
            assert_eq!(stages_in(&step, &["/d/a.ts".into()]), [PathBuf::from("/d")]);
        }
    }

    #[test]
    fn what_writing_checksums_leaves_is_found_beside_each_file() {
        let step = Step::Checksum { algorithms: Vec::new() };
        let places = stages_in(&step, &["/d/a".into(), "/e/b".into()]);
        assert_eq!(places, [PathBuf::from("/d"), PathBuf::from("/e")]);
    }

    #[test]
    fn only_archives_are_unpacked_by_a_chain_for_everything() {
        let steps: Vec<_> = unpack()
            .into_iter()
            .chain([Step::Rename {
                template: "{name}".into(),
            }])
            .collect();
        assert_eq!(concerning(&steps, &["/d/a.iso".into()]), steps[1..]);
        assert_eq!(concerning(&steps, &["/d/a.zip".into()]), steps);
    }
}
