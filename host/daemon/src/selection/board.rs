//! The questions that wait, and how many connections could answer them. Pure.

use std::{collections::VecDeque, sync::Arc};

use protocol::{SelectionDto, SelectionOutcome};
use tokio::sync::oneshot;

/// Limit of pending questions. Further torrents download all files: a user does not answer more.
pub(super) const MAX_PENDING: usize = 64;

#[derive(Debug, Default)]
pub(super) struct Board {
    subscribers: usize,
    /// Oldest first.
    questions: VecDeque<Question>,
    posed: u64,
}

#[derive(Debug)]
struct Question {
    record: Arc<SelectionDto>,
    files: usize,
    answer: oneshot::Sender<SelectionOutcome>,
}

/// Why an answer is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refused {
    /// No such question waits.
    Unknown,
    /// The torrent has no such file.
    NoFile { index: u32, files: usize },
}

impl Board {
    pub(super) fn has_subscriber(&self) -> bool {
        self.subscribers > 0
    }

    /// Counts a subscriber, or its end.
    pub(super) fn count(&mut self, is_new: bool) {
        self.subscribers = if is_new {
            self.subscribers.saturating_add(1)
        } else {
            self.subscribers.saturating_sub(1)
        };
    }

    /// Adds the question about so many files that `make` returns for its id, which begins with the task's: numbers alone
    /// would be those of other questions after a restart. `None` if too many wait.
    pub(super) fn pose(
        &mut self,
        (task, files): (&str, usize),
        make: impl FnOnce(String) -> SelectionDto,
    ) -> Option<(Arc<SelectionDto>, oneshot::Receiver<SelectionOutcome>)> {
        if self.questions.len() >= MAX_PENDING {
            return None;
        }
        self.posed += 1;
        let record = Arc::new(make(format!("{task}.{}", self.posed)));
        let (answer, answered) = oneshot::channel();
        self.questions.push_back(Question {
            record: Arc::clone(&record),
            files,
            answer,
        });
        Some((record, answered))
    }

    /// Answers a question, which waits no longer.
    pub(super) fn answer(&mut self, id: &str, outcome: SelectionOutcome) -> Result<(), Refused> {
        let place = self.place(id).ok_or(Refused::Unknown)?;
        let files = self.questions[place].files;
        if let SelectionOutcome::Bt { indices } = &outcome
            && let Some(index) = indices.iter().find(|index| **index as usize >= files)
        {
            return Err(Refused::NoFile { index: *index, files });
        }
        let question = self.questions.remove(place).ok_or(Refused::Unknown)?;
        // Its run may end at this moment.
        question.answer.send(outcome).map_err(|_| Refused::Unknown)
    }

    /// Removes a question whose run waits no longer.
    pub(super) fn withdraw(&mut self, id: &str) {
        self.questions.retain(|question| question.record.request_id != id);
    }

    pub(super) fn pending(&self) -> Vec<Arc<SelectionDto>> {
        self.questions
            .iter()
            .map(|question| Arc::clone(&question.record))
            .collect()
    }

    fn place(&self, id: &str) -> Option<usize> {
        self.questions
            .iter()
            .position(|question| question.record.request_id == id)
    }
}

#[cfg(test)]
mod tests {
    use protocol::SelectionKind;

    use super::*;

    fn question(request_id: String) -> SelectionDto {
        SelectionDto {
            request_id,
            task_id: "t".to_owned(),
            kind: SelectionKind::Bt {
                files: Vec::new(),
                file_count: 3,
            },
            default_choice: SelectionOutcome::Cancelled,
            deadline_unix_ms: 0,
        }
    }

    fn files(indices: &[u32]) -> SelectionOutcome {
        SelectionOutcome::Bt {
            indices: indices.to_vec(),
        }
    }

    #[test]
    fn a_question_is_answered_once_and_with_files_that_exist() {
        let mut board = Board::default();
        let (record, mut answer) = board.pose(("t", 3), question).unwrap();
        let id = &record.request_id;
        assert_eq!(board.answer("x", files(&[])), Err(Refused::Unknown));
        let refused = Refused::NoFile { index: 3, files: 3 };
        assert_eq!(board.answer(id, files(&[0, 3])), Err(refused));
        assert_eq!(board.answer(id, files(&[0, 2])), Ok(()));
        assert_eq!(answer.try_recv(), Ok(files(&[0, 2])));
        assert_eq!(board.answer(id, files(&[])), Err(Refused::Unknown));
    }

    #[test]
    fn questions_are_bounded_and_make_room_when_they_are_withdrawn() {
        let mut board = Board::default();
        let posed: Vec<_> = std::iter::from_fn(|| board.pose(("t", 1), question)).collect();
        assert_eq!(posed.len(), MAX_PENDING);
        board.withdraw(&posed[7].0.request_id);
        assert_eq!(board.pending().len(), MAX_PENDING - 1);
        let (again, _answer) = board.pose(("t", 1), question).unwrap();
        assert!(posed.iter().all(|(other, _)| other.request_id != again.request_id));
    }
}
