//! Compiles in a separate process. A small module can make a compiler take gigabytes and minutes; here it can only end
//! that process.

use std::{
    io::{self, Read as _, Write as _},
    path::PathBuf,
    process::{ExitCode, ExitStatus},
    time::Duration,
};

use confined::{Limits, OwnCommand, REFUSED, Running};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::{code::screen::MAX_PLUGIN_BYTES, engine};

/// Wall-clock limit. Generous, because the process has a low priority and waits on a busy machine.
pub(crate) const MAX_WALL: Duration = Duration::from_secs(90);

/// The most processor time of a compilation. The largest honest plugins take 15 s on a slow machine.
const MAX_CPU_SECONDS: u64 = 60;

/// What the compiler's process may use.
const LIMITS: Limits = Limits {
    address_space_bytes: 2 << 30,
    cpu_seconds: MAX_CPU_SECONDS,
    // It writes its result to a pipe.
    file_bytes: 0,
    // The standard three and what its threads need.
    descriptors: 64,
    // On two busy cores the compiler gets a quarter of one, enough for the largest honest plugins within `MAX_WALL`.
    niceness: 5,
};

/// The largest result: code is three to four times the size of a plugin.
const MAX_CODE_BYTES: u64 = 128 * 1024 * 1024;

/// Limit of the compiler's error message.
const MAX_EXPLANATION_BYTES: u64 = 4096;

/// Why a plugin could not be compiled.
#[derive(Debug, thiserror::Error)]
pub enum CompileError {
    #[error("cannot run the compiler {}", program.display())]
    Run { program: PathBuf, source: io::Error },
    #[error("compiling takes more time or memory than a plugin may need ({0})")]
    Limit(String),
    #[error("the compiler refuses it: {0}")]
    Refused(String),
}

/// Compiles `wasm` in a child process.
pub(crate) async fn compile(command: &OwnCommand, wasm: &[u8]) -> Result<Vec<u8>, CompileError> {
    let failed = |source| CompileError::Run {
        program: command.program.clone(),
        source,
    };
    let running = command.start(None).map_err(failed)?;
    let Running {
        mut child,
        mut stdin,
        stdout,
        stderr,
    } = running;
    let talk = async {
        let (mut code, mut explanation) = (Vec::new(), Vec::new());
        let write = async move {
            // If the compiler ended early, its exit status has the reason.
            let _ = stdin.write_all(wasm).await;
        };
        let mut stdout = stdout.take(MAX_CODE_BYTES);
        let mut stderr = stderr.take(MAX_EXPLANATION_BYTES);
        let ((), read, explained) = tokio::join!(
            write,
            stdout.read_to_end(&mut code),
            stderr.read_to_end(&mut explanation)
        );
        read.and(explained)?;
        // Closes the pipes, so that a child that still writes fails.
        drop((stdout, stderr));
        Ok((child.wait().await?, code, explanation))
    };
    let (status, code, explanation) = tokio::time::timeout(MAX_WALL, talk)
        .await
        .map_err(|_| CompileError::Limit(format!("{} s", MAX_WALL.as_secs())))?
        .map_err(failed)?;
    judge(status, code, &explanation)
}

fn judge(status: ExitStatus, code: Vec<u8>, explanation: &[u8]) -> Result<Vec<u8>, CompileError> {
    if status.success() && !code.is_empty() && (code.len() as u64) < MAX_CODE_BYTES {
        return Ok(code);
    }
    let explanation = String::from_utf8_lossy(explanation).trim().to_owned();
    match status.code() {
        Some(code) if code == i32::from(REFUSED) => Err(CompileError::Refused(explanation)),
        _ => Err(CompileError::Limit(status.to_string())),
    }
}

/// The compiler's process: limits itself, reads a component from its standard input and writes code to its standard
/// output. Must be the first thing in the process.
pub fn compile_child_main() -> ExitCode {
    match LIMITS
        .apply()
        .map_err(|error| error.to_string())
        .and_then(|()| compile_input())
    {
        Ok(()) => ExitCode::SUCCESS,
        Err(explanation) => {
            // If this fails, the exit status must suffice.
            let _ = io::stderr().write_all(explanation.as_bytes());
            ExitCode::from(REFUSED)
        }
    }
}

fn compile_input() -> Result<(), String> {
    let mut wasm = Vec::new();
    let input = io::stdin().take(MAX_PLUGIN_BYTES as u64 + 1).read_to_end(&mut wasm);
    input.map_err(|error| error.to_string())?;
    let engine = engine::compiler().map_err(|error| format!("{error:#}"))?;
    let code = engine
        .precompile_component(&wasm)
        .map_err(|error| format!("{error:#}"))?;
    io::stdout().write_all(&code).map_err(|error| error.to_string())
}
