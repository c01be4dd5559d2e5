//! Stop requests, received on a thread of their own: the main thread may be blocked by a disk that hangs.

use std::{future::pending, io, thread, time::Duration};

use command::{Exit, stop::StopRequests};
use tokio::{runtime::Builder, sync::oneshot, time::timeout};

/// Receives stop requests until it is dropped.
pub(crate) struct Interrupt {
    requested: oneshot::Receiver<()>,
    _receiving: oneshot::Sender<()>,
}

impl Interrupt {
    /// Starts to receive. The first request is passed on; a second one, or `limit` after the first, ends the process at
    /// once.
    pub(crate) fn listen(limit: Duration) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let mut stop = {
            let _signals_belong_to_it = runtime.enter();
            StopRequests::listen()?
        };
        let (request, requested) = oneshot::channel();
        let (receiving, ended) = oneshot::channel();
        let receive = async move {
            stop.next().await;
            let _has_ended = request.send(());
            let _again = timeout(limit, stop.next()).await;
            exit_at_once();
        };
        let serve = move || {
            runtime.block_on(async {
                tokio::select! {
                    () = receive => {}
                    _ = ended => {}
                }
            });
        };
        thread::Builder::new().name("interrupt".to_owned()).spawn(serve)?;
        Ok(Self {
            requested,
            _receiving: receiving,
        })
    }

    /// Resolves with the first request. Cancel-safe, but not to be called again after it.
    pub(crate) async fn requested(&mut self) {
        if (&mut self.requested).await.is_err() {
            pending::<()>().await;
        }
    }
}

#[expect(
    clippy::exit,
    reason = "the user asked twice, or the disk hangs; what the journals hold by now is what is saved"
)]
fn exit_at_once() {
    std::process::exit(Exit::Unfinished.code().into());
}

#[cfg(test)]
mod tests {
    use std::{
        io::{BufRead as _, BufReader, Write as _},
        process::{Command, Stdio},
    };

    use rustix::process::{Pid, Signal, kill_process};

    use super::*;

    /// Says to a process of this test that it is the one to be stopped.
    const BLOCKED: &str = "SVC_TEST_BLOCKED";

    #[test]
    fn a_second_request_ends_the_process_while_its_main_thread_is_blocked() {
        if std::env::vars().any(|(name, _)| name == BLOCKED) {
            let _receiving = Interrupt::listen(Duration::from_mins(1)).unwrap();
            writeln!(io::stdout(), "\n{BLOCKED}").unwrap();
            thread::park_timeout(Duration::from_mins(1));
        }
        let test = "interrupt::tests::a_second_request_ends_the_process_while_its_main_thread_is_blocked";
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", test])
            .env(BLOCKED, "1")
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert!(lines.map(Result::unwrap).any(|line| line == BLOCKED));
        let ended = loop {
            // Two at once may count as one.
            kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
            thread::park_timeout(Duration::from_millis(50));
            if let Some(ended) = child.try_wait().unwrap() {
                break ended;
            }
        };
        assert_eq!(ended.code(), Some(Exit::Unfinished.code().into()));
    }
}
