//! Questions that tasks ask their user: which files of a torrent to download. Asked only while a client has subscribed to
//! questions, each for a limited time; a question whose run ended is withdrawn.

mod board;

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use engine::{Engine, TaskId};
use metainfo::InfoHash;
use protocol::{ErrorCode, RpcError, SelectionDto, SelectionFileDto, SelectionKind, SelectionOutcome};
use tokio::sync::{broadcast, oneshot, watch};
use transfer_torrent::{Choice, ChoiceFuture, Chooser, OfferedFile};

use crate::{
    refusal::{chain, invalid},
    selection::board::{Board, Refused},
    view,
};

/// How long a question waits for its answer: for a user who went to fetch a coffee, and not for one who went home.
const TIME: Duration = Duration::from_mins(5);

/// Changes that readers may fall behind.
const CHANGES: usize = 256;

/// The questions of all tasks. The transport of torrents asks, clients answer. Clones share them.
#[derive(Debug, Clone)]
pub(crate) struct Selections(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    board: Mutex<Board>,
    changes: broadcast::Sender<Change>,
    /// Whose tasks ask, from its start to its end.
    engine: watch::Sender<Option<Engine>>,
}

/// What became of a question.
#[derive(Debug, Clone)]
pub(crate) enum Change {
    Pending(Arc<SelectionDto>),
    /// It is answered or withdrawn. Its id.
    Resolved(Arc<str>),
}

/// A connection that may subscribe to questions; its end is the end of the subscription.
#[derive(Debug)]
pub(crate) struct Listener {
    of: Selections,
    is_subscribed: Mutex<bool>,
}

impl Default for Selections {
    fn default() -> Self {
        Self(Arc::new(Shared {
            board: Mutex::default(),
            changes: broadcast::channel(CHANGES).0,
            engine: watch::Sender::new(None),
        }))
    }
}

impl Selections {
    /// From now on, tasks of this engine ask.
    pub(crate) fn begin(&self, engine: Engine) {
        self.0.engine.send_replace(Some(engine));
    }

    /// Nothing is asked any more.
    pub(crate) fn end(&self) {
        self.0.engine.send_replace(None);
    }

    pub(crate) fn listener(&self) -> Listener {
        Listener {
            of: self.clone(),
            is_subscribed: Mutex::new(false),
        }
    }

    pub(crate) fn changes(&self) -> broadcast::Receiver<Change> {
        self.0.changes.subscribe()
    }

    /// The questions that wait for an answer, oldest first.
    pub(crate) fn pending(&self) -> Vec<Arc<SelectionDto>> {
        self.board().pending()
    }

    /// Answers a question.
    pub(crate) fn resolve(&self, request_id: &str, outcome: SelectionOutcome) -> Result<(), RpcError> {
        let answered = self.board().answer(request_id, outcome);
        answered.map_err(|refused| match refused {
            Refused::Unknown => {
                let message = format!("no question {request_id:?} waits for an answer");
                RpcError::application(ErrorCode::NotFound, message).with_field("requestId")
            }
            Refused::NoFile { index, files } => {
                let message = format!("outcome.indices has {index}; the torrent has {files} files, counted from 0");
                invalid("outcome.indices", message)
            }
        })
    }

    fn board(&self) -> MutexGuard<'_, Board> {
        self.0.board.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn publish(&self, change: Change) {
        // Sending fails only if no client is subscribed.
        let _readers = self.0.changes.send(change);
    }

    async fn ask(&self, torrent: InfoHash, files: Vec<OfferedFile>) -> Choice {
        if !self.board().has_subscriber() {
            return Choice::All;
        }
        let Some((engine, task)) = self.owner(torrent).await else {
            return Choice::All;
        };
        let Some(mut posed) = self.pose(task, &files) else {
            return Choice::All;
        };
        let outcome = match tokio::time::timeout(TIME, &mut posed.answer).await {
            Ok(Ok(outcome)) => outcome,
            _ => SelectionOutcome::Bt { indices: Vec::new() },
        };
        drop(posed);
        let mut indices = match outcome {
            SelectionOutcome::Cancelled => return Choice::Cancelled,
            SelectionOutcome::Bt { indices } => indices,
        };
        indices.sort_unstable();
        indices.dedup();
        let chosen: Box<[u32]> = indices.into();
        if let Err(error) = engine.note_torrent_files(task, chosen.clone()).await {
            // The run downloads them all the same; a later one asks again.
            tracing::warn!(%task, error = chain(&error), "the choice of files was not saved");
        }
        if chosen.is_empty() {
            Choice::All
        } else {
            Choice::Files(chosen)
        }
    }

    /// The task of a torrent, and its engine.
    async fn owner(&self, torrent: InfoHash) -> Option<(Engine, TaskId)> {
        let engine = self
            .0
            .engine
            .subscribe()
            .wait_for(Option::is_some)
            .await
            .ok()?
            .clone()?;
        let snapshot = engine.snapshot().await.ok()?;
        let mut tasks = snapshot.tasks.iter();
        let owner = tasks.find(|task| view::info_hash(task.url()) == Some(torrent))?;
        Some((engine, owner.id))
    }

    /// Poses a question; `None` if there are too many.
    fn pose(&self, task: TaskId, files: &[OfferedFile]) -> Option<Posed> {
        let deadline_unix_ms = view::now_millis() + i64::try_from(TIME.as_millis()).unwrap_or(i64::MAX);
        let task_id = task.to_string();
        let (question, answer) = self.board().pose((&task_id, files.len()), |request_id| SelectionDto {
            request_id,
            task_id: task_id.clone(),
            kind: SelectionKind::Bt {
                files: files.iter().take(protocol::MAX_OFFERED_FILES).map(offered).collect(),
                file_count: files.len(),
            },
            default_choice: SelectionOutcome::Bt { indices: Vec::new() },
            deadline_unix_ms,
        })?;
        let id = question.request_id.as_str().into();
        self.publish(Change::Pending(question));
        Some(Posed {
            of: self.clone(),
            id,
            answer,
        })
    }
}

impl Chooser for Selections {
    fn choose(&self, torrent: InfoHash, files: Vec<OfferedFile>) -> ChoiceFuture {
        let own = self.clone();
        Box::pin(async move { own.ask(torrent, files).await })
    }
}

fn offered(file: &OfferedFile) -> SelectionFileDto {
    SelectionFileDto {
        index: file.index,
        path: file.path.clone(),
        size: file.size_bytes,
    }
}

/// A question that waits; withdrawn on drop.
#[derive(Debug)]
struct Posed {
    of: Selections,
    id: Arc<str>,
    answer: oneshot::Receiver<SelectionOutcome>,
}

impl Drop for Posed {
    fn drop(&mut self) {
        self.of.board().withdraw(&self.id);
        self.of.publish(Change::Resolved(Arc::clone(&self.id)));
    }
}

impl Listener {
    /// Subscribes to questions, or no longer.
    pub(crate) fn listen(&self, subscribes: bool) {
        let mut is_subscribed = self.is_subscribed.lock().unwrap_or_else(PoisonError::into_inner);
        if *is_subscribed != subscribes {
            *is_subscribed = subscribes;
            self.of.board().count(subscribes);
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.listen(false);
    }
}

#[cfg(test)]
mod tests {
    use engine::{Config, TaskSpec};
    use support::transport::FakeTransport;

    use super::*;

    const MAGNET: &str = "magnet:?xt=urn:btih:0123456789abcdef0123456789abcdef01234567";

    fn files() -> Vec<OfferedFile> {
        let file = |index: u32| OfferedFile {
            index,
            path: format!("d/{index}"),
            size_bytes: 1,
        };
        (0..3).map(file).collect()
    }

    struct World {
        selections: Selections,
        engine: Engine,
        task: TaskId,
        _dir: tempfile::TempDir,
    }

    async fn world() -> World {
        let dir = tempfile::tempdir().unwrap();
        let transport = Arc::new(FakeTransport::idle(&["magnet"]));
        let engine = Engine::start_unsaved(Config::new(dir.path()), vec![transport])
            .await
            .unwrap();
        let task = engine.create(TaskSpec::parse(MAGNET).unwrap()).await.unwrap();
        let selections = Selections::default();
        selections.begin(engine.clone());
        World {
            selections,
            engine,
            task,
            _dir: dir,
        }
    }

    fn hash() -> InfoHash {
        "0123456789abcdef0123456789abcdef01234567".parse().unwrap()
    }

    /// Asks, and answers with `outcome` as soon as the question is there.
    async fn answered(world: &World, outcome: SelectionOutcome) -> Choice {
        let mut changes = world.selections.changes();
        let answering = async {
            let Ok(Change::Pending(question)) = changes.recv().await else {
                panic!("a question comes first");
            };
            assert_eq!(question.task_id, world.task.to_string());
            world.selections.resolve(&question.request_id, outcome).unwrap();
        };
        let (choice, ()) = tokio::join!(world.selections.choose(hash(), files()), answering);
        assert!(matches!(changes.recv().await, Ok(Change::Resolved(_))));
        assert!(world.selections.pending().is_empty());
        choice
    }

    #[tokio::test]
    async fn without_a_subscriber_all_files_are_taken_at_once() {
        let world = world().await;
        assert_eq!(world.selections.choose(hash(), files()).await, Choice::All);
        let listener = world.selections.listener();
        listener.listen(true);
        listener.listen(true);
        drop(listener);
        assert_eq!(world.selections.choose(hash(), files()).await, Choice::All);
        world.engine.shutdown(Duration::ZERO).await;
    }

    #[tokio::test]
    async fn what_is_chosen_is_noted_in_the_task() {
        let world = world().await;
        let listener = world.selections.listener();
        listener.listen(true);
        let chosen = answered(&world, SelectionOutcome::Bt { indices: vec![2, 0, 2] }).await;
        assert_eq!(chosen, Choice::Files(Box::new([0, 2])));
        let noted = world.engine.task(world.task).await.unwrap().spec().torrent.unwrap();
        assert_eq!(&*noted.files, [0, 2]);
        assert_eq!(answered(&world, SelectionOutcome::Cancelled).await, Choice::Cancelled);
        world.engine.shutdown(Duration::ZERO).await;
    }

    #[tokio::test]
    async fn a_question_ends_with_its_run() {
        let world = world().await;
        let listener = world.selections.listener();
        listener.listen(true);
        let asking = world.selections.choose(hash(), files());
        let run = tokio::time::timeout(Duration::from_millis(50), asking);
        assert!(run.await.is_err(), "nobody answers");
        assert!(world.selections.pending().is_empty());
        world.engine.shutdown(Duration::ZERO).await;
    }
}
