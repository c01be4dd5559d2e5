//! Compiles in a separate process. A small module can make a compiler take gigabytes and minutes; here it can only end
//! that process.

use std::{
    ffi::OsString,
    io::{self, Read as _, Write as _},
    path::PathBuf,
    process::{ExitCode, ExitStatus, Stdio},
    time::Duration,
};

use rustix::process::{Resource, Rlimit, nice, setrlimit};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    process::Command,
};

use crate::{code::screen::MAX_PLUGIN_BYTES, engine};

/// Wall-clock limit. Generous, because the process has a low priority and waits on a busy machine.
pub(crate) const MAX_WALL: Duration = Duration::from_secs(90);

/// The most processor time of a compilation. The largest honest plugins take 15 s on a slow machine.
const MAX_CPU_SECONDS: u64 = 60;

/// Limit of descriptors: the standard three and what its threads need.
const MAX_DESCRIPTORS: u64 = 64;

/// The most address space of a compilation.
const MAX_ADDRESS_SPACE_BYTES: u64 = 2 << 30;

/// The largest result: code is three to four times the size of a plugin.
const MAX_CODE_BYTES: u64 = 128 * 1024 * 1024;

/// Limit of the compiler's error message.
const MAX_EXPLANATION_BYTES: u64 = 4096;

/// Low priority: on two busy cores the compiler gets a quarter of one, enough for the largest honest plugins within
/// [`MAX_WALL`].
const NICENESS: i32 = 5;

/// Exit status of a compiler that refused the plugin, as opposed to one that hit a limit.
const REFUSED: u8 = 2;

/// How to start the compiler: this executable, with an argument that makes it run [`compile_child_main`].
#[derive(Debug, Clone)]
pub struct CompilerCommand {
    pub program: PathBuf,
    pub args: Vec<OsString>,
}

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
pub(crate) async fn compile(command: &CompilerCommand, wasm: &[u8]) -> Result<Vec<u8>, CompileError> {
    let failed = |source| CompileError::Run {
        program: command.program.clone(),
        source,
    };
    let mut child = Command::new(&command.program)
        .args(&command.args)
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .map_err(failed)?;
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (mut stdin, stdout, stderr) = (
        stdin.expect("it was piped"),
        stdout.expect("it was piped"),
        stderr.expect("it was piped"),
    );
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
    match limit_process()
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

fn limit_process() -> io::Result<()> {
    let limits = [
        (Resource::As, MAX_ADDRESS_SPACE_BYTES),
        (Resource::Cpu, MAX_CPU_SECONDS),
        (Resource::Core, 0),
        (Resource::Fsize, 0),
        (Resource::Nofile, MAX_DESCRIPTORS),
    ];
    for (resource, limit) in limits {
        let (current, maximum) = (Some(limit), Some(limit));
        setrlimit(resource, Rlimit { current, maximum })?;
    }
    nice(NICENESS)?;
    Ok(())
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
