//! The way of a file to the desktop: requests to open one, from the interfaces to what attends to the desktop.

use std::{
    path::PathBuf,
    sync::{Mutex, PoisonError},
};

use protocol::{ErrorCode, RpcError};
use tokio::sync::{mpsc, oneshot};

/// Requests that wait for the desktop; more are refused.
const MAX_WAITING: usize = 8;

/// A file that the user wants to see. Dropping it without an answer fails the request.
#[derive(Debug)]
pub struct OpenRequest {
    /// The finished file or directory of a task.
    pub path: PathBuf,
    /// Show it in its directory; otherwise open it.
    pub reveal: bool,
    /// Receives why it is not opened.
    pub answer: oneshot::Sender<Result<(), String>>,
}

/// Where requests go while a desktop is attended to.
#[derive(Debug, Default)]
pub(crate) struct Opener(Mutex<Option<mpsc::Sender<OpenRequest>>>);

impl Opener {
    /// Sends later requests to this receiver.
    pub(crate) fn attach(&self) -> mpsc::Receiver<OpenRequest> {
        let (sender, receiver) = mpsc::channel(MAX_WAITING);
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(sender);
        receiver
    }

    /// Whether a desktop is attended to.
    pub(crate) fn is_attached(&self) -> bool {
        let sender = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sender.as_ref().is_some_and(|sender| !sender.is_closed())
    }

    /// Sends a request, and waits until the file is opened.
    pub(crate) async fn open(&self, path: PathBuf, reveal: bool) -> Result<(), RpcError> {
        let sender = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let no_desktop = || {
            let message = "this service does not run on a desktop; only svc agent opens files";
            RpcError::application(ErrorCode::Unsupported, message)
        };
        let (answer, answered) = oneshot::channel();
        let request = OpenRequest { path, reveal, answer };
        match sender.ok_or_else(no_desktop)?.try_send(request) {
            Ok(()) => {}
            Err(mpsc::error::TrySendError::Closed(_)) => return Err(no_desktop()),
            Err(mpsc::error::TrySendError::Full(_)) => {
                let message = "the desktop is still opening other files";
                return Err(RpcError::application(ErrorCode::Unavailable, message));
            }
        }
        let ending = || RpcError::application(ErrorCode::Unavailable, "the service is ending");
        let opened = answered.await.map_err(|_| ending())?;
        opened.map_err(|why| RpcError::application(ErrorCode::Conflict, why))
    }
}
