//! A screen for tests that records events as lines. Clones share the record.

use std::{cell::RefCell, io, rc::Rc, time::Duration};

use super::{Event, FileView, Screen, Totals};

#[derive(Debug, Clone, Default)]
pub(crate) struct Recorder(Rc<RefCell<Vec<String>>>);

impl Recorder {
    pub(crate) fn lines(&self) -> Vec<String> {
        self.0.borrow().clone()
    }
}

impl Screen for Recorder {
    fn interval(&self) -> Option<Duration> {
        None
    }

    fn report(&mut self, file: &FileView, event: &Event<'_>) {
        let what = match event {
            Event::Started => "started".to_owned(),
            Event::Named { path, total_bytes } => format!("named {} {total_bytes:?}", path.display()),
            Event::Notice(text) => format!("notice {text}"),
            Event::Retrying { wait, .. } => format!("retrying {wait:?}"),
            Event::Finished {
                path,
                size_bytes,
                received_bytes,
                ..
            } => {
                format!("finished {} {size_bytes} {received_bytes}", path.display())
            }
            Event::Skipped { existing } => format!("skipped {}", existing.display()),
            Event::Failed(failure) => format!("failed {}", failure.kind),
        };
        self.0.borrow_mut().push(format!("{} {what}", file.index));
    }

    fn progress(&mut self, _: &[&FileView], _: &Totals) {}

    fn summary(&mut self, totals: &Totals) {
        let Totals {
            finished,
            failed,
            skipped,
            ..
        } = totals;
        let unfinished = totals.unfinished();
        self.0
            .borrow_mut()
            .push(format!("summary {finished} {failed} {skipped} {unfinished}"));
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
