//! Steps and jobs as clients read and write them.

use std::path::PathBuf;

use post::{
    checksum::Digest,
    job::{Container, Passwords, Phase, Step, View, check_chain},
};
use protocol::{PostContainer, PostJobDto, PostState, PostStep};

use crate::rows::About;

/// Names in a message.
const MAX_NAMES: usize = 5;

/// Why a chain is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidChain(String);

/// Checks a chain; none is allowed.
pub fn chain(steps: Vec<PostStep>) -> Result<Vec<Step>, InvalidChain> {
    let steps: Vec<_> = steps.into_iter().map(step).collect::<Result<_, _>>()?;
    if !steps.is_empty() {
        check_chain(&steps).map_err(|error| InvalidChain(error.to_string()))?;
    }
    Ok(steps)
}

/// Reads a chain from the text of a setting; empty text is none.
pub fn chain_of(text: &str) -> Result<Vec<Step>, InvalidChain> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(Vec::new());
    }
    let steps: Vec<PostStep> = serde_json::from_str(text).map_err(|error| InvalidChain(error.to_string()))?;
    chain(steps)
}

/// The text of a chain, as it is stored.
pub fn chain_text(steps: &[PostStep]) -> String {
    if steps.is_empty() {
        return String::new();
    }
    serde_json::to_string(steps).unwrap_or_default()
}

fn step(step: PostStep) -> Result<Step, InvalidChain> {
    Ok(match step {
        PostStep::Unpack { delete_archive, into } => Step::Unpack {
            passwords: Passwords::default(),
            delete_original: delete_archive,
            into: (!into.is_empty()).then(|| PathBuf::from(into)),
        },
        PostStep::Rename { template } => Step::Rename { template },
        PostStep::Checksum { algorithms } => Step::Checksum {
            algorithms: algorithms
                .into_iter()
                .map(Digest::try_from)
                .collect::<Result<_, _>>()
                .map_err(InvalidChain)?,
        },
        PostStep::Mux { container } => Step::Mux {
            container: of_wire(container),
        },
        PostStep::Remux { container } => Step::Remux {
            container: of_wire(container),
        },
        PostStep::Plugin { identity } => Step::Plugin { identity },
    })
}

fn of_wire(container: PostContainer) -> Container {
    match container {
        PostContainer::Mp4 => Container::Mp4,
        PostContainer::Matroska => Container::Matroska,
        PostContainer::WebM => Container::WebM,
    }
}

fn to_wire(container: Container) -> PostContainer {
    match container {
        Container::Mp4 => PostContainer::Mp4,
        Container::Matroska => PostContainer::Matroska,
        Container::WebM => PostContainer::WebM,
    }
}

/// A step without passwords.
fn shown(step: &Step) -> PostStep {
    match step {
        Step::Unpack {
            passwords: _,
            delete_original,
            into,
        } => PostStep::Unpack {
            delete_archive: *delete_original,
            into: into.as_ref().map(|into| into.display().to_string()).unwrap_or_default(),
        },
        Step::Rename { template } => PostStep::Rename {
            template: template.clone(),
        },
        Step::Checksum { algorithms } => PostStep::Checksum {
            algorithms: algorithms.iter().copied().map(String::from).collect(),
        },
        Step::Mux { container } => PostStep::Mux {
            container: to_wire(*container),
        },
        Step::Remux { container } => PostStep::Remux {
            container: to_wire(*container),
        },
        Step::Plugin { identity } => PostStep::Plugin {
            identity: identity.clone(),
        },
    }
}

/// The first of many names.
fn some(names: &[String]) -> String {
    let first = names[..names.len().min(MAX_NAMES)].join(", ");
    match names.len().saturating_sub(MAX_NAMES) {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}

/// A job as clients see it.
pub(crate) fn job(about: &About, view: &View<'_>) -> PostJobDto {
    let record = view.record;
    let (state, message) = match &record.phase {
        Phase::Waiting if record.is_awaiting() => (PostState::Waiting, format!("waits for {}", some(&record.awaits))),
        Phase::Waiting => (PostState::Waiting, String::new()),
        Phase::Running | Phase::Removing { .. } => (PostState::Running, String::new()),
        Phase::Done if !record.kept.is_empty() => {
            let kept = record.kept.iter().map(|file| file.display().to_string());
            let kept = some(&kept.collect::<Vec<_>>());
            let message = format!("kept, because it is not the file that was unpacked or cannot be removed: {kept}");
            (PostState::Done, message)
        }
        Phase::Done => (PostState::Done, String::new()),
        Phase::Failed { reason } => (PostState::Failed, reason.clone()),
        Phase::Cancelled => (PostState::Cancelled, String::new()),
    };
    PostJobDto {
        job_id: record.id.0,
        task_id: about.tasks.first().cloned().unwrap_or_default(),
        group_id: about.group.clone().unwrap_or_default(),
        files: record.files.iter().map(|file| file.display().to_string()).collect(),
        steps: record.steps.iter().map(shown).collect(),
        step: u32::try_from(record.step).unwrap_or(u32::MAX),
        state,
        progress: view.progress,
        message,
        created_at_ms: about.created_ms,
    }
}

#[cfg(test)]
mod tests {
    use post::job::Record;

    use super::*;

    #[test]
    fn chains_are_read_checked_and_shown() {
        let text = r#"[{"kind":"checksum","algorithms":["sha-256"]},{"kind":"unpack","deleteArchive":true},{"kind":"rename","template":"{host}/{name}"}]"#;
        let steps = chain_of(text).unwrap();
        let again: Vec<_> = steps.iter().map(shown).collect();
        assert_eq!(chain_text(&again), text);
        assert_eq!(chain_of(" ").unwrap(), []);
        assert_eq!(chain_text(&[]), "");
        for wrong in [
            "{}",
            r#"[{"kind":"burn"}]"#,
            r#"[{"kind":"checksum","algorithms":["sha3"]}]"#,
            r#"[{"kind":"checksum","algorithms":[]}]"#,
            r#"[{"kind":"rename","template":"../{name}"}]"#,
            r#"[{"kind":"unpack","into":"relative"}]"#,
            r#"[{"kind":"unpack"},{"kind":"checksum","algorithms":["md5"]}]"#,
        ] {
            assert!(chain_of(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_a_job_waits_for_and_what_it_left_is_said() {
        let mut record: Record = serde_json::from_str(
            r#"{"id":1,"files":["/d/a.part1.rar"],"steps":[{"kind":"unpack"}],"step":0,"run":0,
                "phase":{"kind":"waiting"},"awaits":["1","2","3","4","5","6 (failed)","7"]}"#,
        )
        .unwrap();
        let shown = |record: &Record| {
            let view = View { record, progress: None };
            let shown = job(&About::default(), &view);
            (shown.state, shown.message)
        };
        assert_eq!(
            shown(&record),
            (PostState::Waiting, "waits for 1, 2, 3, 4, 5 and 2 more".to_owned())
        );
        record.awaits.clear();
        assert_eq!(shown(&record), (PostState::Waiting, String::new()));
        (record.phase, record.kept) = (Phase::Done, vec!["/d/a.zip".into()]);
        let (state, message) = shown(&record);
        assert!(state == PostState::Done && message.ends_with(": /d/a.zip"), "{message}");
    }
}
