//! Measures what a call costs, without any network: `cargo run --release --example measure -p plugin-wasm -- GUEST`,
//! where GUEST is `open_directory.wasm` as cargo has built it. Also shows how an executable is its own compiler.

#![expect(clippy::print_stdout, reason = "it is there to print")]

use std::{
    error::Error,
    fmt::Write as _,
    process::ExitCode,
    sync::Arc,
    time::{Duration, Instant},
};

use plugin_host::{InputHost, runtime::Language};
use plugin_wasm::{
    Answer, CallContext, CompilerCommand, Exchange, Exchanged, Limits, Loaded, Network, Runtime, RuntimeConfig,
    compile_child_main,
};

/// What this executable is told when it is to compile.
const COMPILE: &str = "compile-plugin";

/// Calls of each kind; the median is shown.
const ROUNDS: usize = 300;

const URL: &str = "https://example.org/pub/";

fn main() -> ExitCode {
    let Some(argument) = std::env::args().nth(1) else {
        println!("name a guest");
        return ExitCode::FAILURE;
    };
    if argument == COMPILE {
        return compile_child_main();
    }
    match measure(&argument) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("{error}");
            ExitCode::FAILURE
        }
    }
}

#[tokio::main]
async fn measure(guest: &str) -> Result<(), Box<dyn Error>> {
    let bytes = std::fs::read(guest)?;
    let folder = tempfile::tempdir()?;
    let config = RuntimeConfig {
        cache_folder: folder.path().to_owned(),
        cache_key: [0; 32],
        compiler: CompilerCommand {
            program: std::env::current_exe()?,
            args: vec![COMPILE.into()],
        },
        host_version: "0.0.0".to_owned(),
    };
    let started = Instant::now();
    let runtime = Runtime::start(config)?;
    println!("start of the runtime             {:>9.1?}", started.elapsed());
    let started = Instant::now();
    let loaded = runtime.load(bytes.clone(), Language::CoreModule).await?;
    println!("load, compiled in a process      {:>9.1?}", started.elapsed());
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        let started = Instant::now();
        runtime.load(bytes.clone(), Language::CoreModule).await?;
        times.push(started.elapsed());
    }
    println!("load, compiled before            {:>9.1?}", median(times));
    for files in [0, 20, 1_000, 10_000] {
        let (time, memory) = calls(&loaded, files).await?;
        println!(
            "list {files:>6} files, fresh instance {time:>8.1?}   {:>6} KiB",
            memory / 1024
        );
    }
    Ok(())
}

async fn calls(loaded: &Loaded, files: usize) -> Result<(Duration, usize), Box<dyn Error>> {
    let network = Arc::new(OnePage(page(files)?));
    let mut context = CallContext::isolated();
    context.grants.input_host = Some(InputHost::found(URL.parse()?));
    context.network = network;
    let (mut times, mut memory) = (Vec::new(), 0);
    for _ in 0..ROUNDS.min(300_000 / (files + 1)) {
        let (context, limits) = (context.clone(), Limits::preview());
        let started = Instant::now();
        let called = loaded.preview(URL, context, limits).await;
        times.push(started.elapsed());
        memory = called.report.peak_memory_bytes;
        if called.result?.entries.len() != files {
            return Err("the listing is not whole".into());
        }
    }
    Ok((median(times), memory))
}

/// A page as nginx makes it.
fn page(files: usize) -> Result<String, std::fmt::Error> {
    let mut page = "<title>Index of /pub/</title><pre><a href=\"../\">../</a>\n".to_owned();
    for i in 0..files {
        writeln!(
            page,
            "<a href=\"file-{i}.zip\">file-{i}.zip</a>   21-Nov-2026 06:34   {i}"
        )?;
    }
    Ok(page)
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

/// A network of one page.
#[derive(Debug)]
struct OnePage(String);

impl Network for OnePage {
    fn exchange(&self, _: Exchange) -> Exchanged<'_> {
        Box::pin(async {
            Ok(Answer {
                status: 200,
                headers: vec![("content-type".to_owned(), "text/html".to_owned())],
                body: self.0.clone().into(),
            })
        })
    }
}
