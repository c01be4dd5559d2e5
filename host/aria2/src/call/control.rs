//! Methods that pause, resume, remove and move downloads.

use protocol::{DeleteTaskParams, DeleteTasksParams, Method, ReorderParams, TaskIdParams};
use serde_json::Map;

use super::outcome::{Outcome, json, ok};
use crate::{
    board::{Board, Download, State},
    caller::Caller,
    service::Task,
    torrent::Parts,
    visitor::not_found,
    vocabulary::{fault::Fault, params::Params},
};

/// Limit of tasks in one command.
const NAMED_AT_ONCE: usize = 5000;

pub(super) fn about(download: &Download) -> TaskIdParams {
    TaskIdParams {
        task_id: download.task.id().to_owned(),
    }
}

impl Caller {
    pub(super) async fn remove(&self, params: &Params) -> Outcome {
        let download = self.named(params.text(0)?)?;
        if download.is_stopped() {
            return Err(Fault::new(format!(
                "Active Download not found for GID#{}",
                download.gid
            )));
        }
        let delete = DeleteTaskParams {
            task_id: download.task.id().to_owned(),
            delete_files: false,
        };
        // Afterwards the service knows nothing of it.
        let download = self.described(download, Some(Parts::ALL)).await?;
        self.order(Method::TaskDelete, &delete).await?;
        if let Some(torrent) = download.torrent {
            self.dialect.change_board(|board| board.remember(download.gid, torrent));
        }
        json(&download.gid.to_string())
    }

    pub(super) async fn pause(&self, params: &Params) -> Outcome {
        let download = self.named(params.text(0)?)?;
        if download.is_stopped() || download.state() == State::Paused {
            return Err(Fault::new(format!("GID#{} cannot be paused now", download.gid)));
        }
        self.order(Method::TaskPause, &about(&download)).await?;
        json(&download.gid.to_string())
    }

    pub(super) async fn unpause(&self, params: &Params) -> Outcome {
        let download = self.named(params.text(0)?)?;
        if download.is_removed || download.state() != State::Paused {
            return Err(Fault::new(format!("GID#{} cannot be unpaused now", download.gid)));
        }
        self.order(Method::TaskResume, &about(&download)).await?;
        json(&download.gid.to_string())
    }

    pub(super) async fn pause_all(&self) -> Outcome {
        self.order(Method::TaskPauseAll, &Map::new()).await?;
        Ok(ok())
    }

    pub(super) async fn unpause_all(&self) -> Outcome {
        self.order(Method::TaskResumeAll, &Map::new()).await?;
        Ok(ok())
    }

    pub(super) async fn change_position(&self, params: &Params) -> Outcome {
        let text = params.text(0)?;
        let (offset, how) = (params.integer(1)?, params.text(2)?);
        let (length, now, download) = {
            let board = self.board()?;
            let download = board.find(text).map_err(|why| not_found(text, why))?;
            let mut line = board.waiting();
            let length = i64::try_from(line.len()).unwrap_or(i64::MAX);
            let now = line
                .position(|gid| gid == download.gid)
                .filter(|_| !download.is_removed);
            let now = now.ok_or_else(|| Fault::new(format!("GID#{} not found in the waiting queue.", download.gid)))?;
            (length, now, download)
        };
        let base = match how {
            "POS_SET" => 0,
            "POS_CUR" => i64::try_from(now).unwrap_or(i64::MAX),
            "POS_END" => length - 1,
            _ => return Err(Fault::new("Illegal argument.")),
        };
        let target = base.saturating_add(offset).clamp(0, length - 1);
        let target = usize::try_from(target).unwrap_or(0);
        if target != now {
            self.put_at(&[download.task.id().to_owned()], target).await?;
        }
        let moved = self.board()?.waiting().position(|gid| gid == download.gid);
        json(&moved.unwrap_or(target))
    }

    /// Moves waiting tasks to a position, as far as they belong to one queue. Tasks that started meanwhile are not
    /// affected.
    pub(super) async fn put_at(&self, ids: &[String], position: usize) -> Result<(), Fault> {
        match self.reorder(ids, position)? {
            Some(reorder) => self.order(Method::QueueReorder, &reorder).await,
            None => Ok(()),
        }
    }

    fn reorder(&self, ids: &[String], position: usize) -> Result<Option<ReorderParams>, Fault> {
        let board = self.board()?;
        let is_moved = |task: &dyn Task| ids.iter().any(|id| id == task.id());
        let line: Vec<_> = board.waiting().filter_map(|gid| board.task(gid)).collect();
        let Some(first) = line.iter().find(|task| is_moved(&****task)) else {
            return Ok(None);
        };
        let queue = first.queue();
        let others: Vec<_> = line.iter().filter(|task| !is_moved(&****task)).collect();
        let before = others
            .iter()
            .take(position)
            .filter(|task| task.queue() == queue)
            .count();
        let own: Vec<_> = others.into_iter().filter(|task| task.queue() == queue).collect();
        // Tasks behind them without an explicit position are ordered by age, so they need no update.
        let ordered = own
            .iter()
            .rposition(|task| task.queue_order() > 0)
            .map_or(0, |last| last + 1);
        let order = own.iter().take(ordered.max(before)).map(|task| task.id().to_owned());
        let mut order: Vec<String> = order.collect();
        order.splice(before..before, ids.iter().cloned());
        Ok(Some(ReorderParams {
            queue_id: queue.to_owned(),
            task_ids: order,
        }))
    }

    pub(super) async fn purge_download_result(&self) -> Outcome {
        let ids: Vec<String> = self.board()?.stopped_tasks().map(str::to_owned).collect();
        for some in ids.chunks(NAMED_AT_ONCE) {
            let delete = DeleteTasksParams {
                task_ids: some.to_vec(),
                delete_files: false,
            };
            self.order(Method::TaskDeleteMany, &delete).await?;
        }
        self.dialect.service.check()?;
        self.dialect.change_board(Board::forget_all);
        Ok(ok())
    }

    pub(super) async fn remove_download_result(&self, params: &Params) -> Outcome {
        let download = self.named(params.text(0)?)?;
        let gid = download.gid;
        if download.is_removed {
            self.dialect.service.check()?;
            if self.dialect.change_board(|board| board.forget(gid)) {
                return Ok(ok());
            }
        } else if download.is_stopped() {
            let delete = DeleteTaskParams {
                task_id: download.task.id().to_owned(),
                delete_files: false,
            };
            self.order(Method::TaskDelete, &delete).await?;
            return Ok(ok());
        }
        Err(Fault::new(format!("Could not remove download result of GID#{gid}")))
    }
}
