//! Measures what plugins cost, without any network: `cargo run --release --example plugin_cost -p plugin-wasm -- GUEST`,
//! where GUEST is `open_directory.wasm` as cargo has built it. Also shows how an executable is its own compiler.

#![expect(clippy::print_stdout, reason = "it is there to print")]
#![expect(clippy::unwrap_used, reason = "the guests are those of the tests")]

use std::{
    error::Error,
    fmt::Write as _,
    process::ExitCode,
    sync::Arc,
    time::{Duration, Instant},
};

use futures_util::future::join_all;
use plugin_host::{
    InputHost,
    runtime::{Language, PLUGIN_CALLS},
};
use plugin_wasm::{
    Answer, CallContext, CompilerCommand, Exchange, Exchanged, Limits, Loaded, Network, Runtime, RuntimeConfig,
    compile_child_main, componentise,
};

#[path = "../tests/it/guest.rs"]
#[expect(dead_code, reason = "the tests need more of it")]
mod guest;

/// What this executable is told when it is to compile.
const COMPILE: &str = "compile-plugin";

/// Calls of each kind; the median is shown.
const ROUNDS: usize = 300;

/// Calls of one host function within a call.
const HOST_CALLS: usize = 1_000_000;

/// Plugins that are kept for nothing.
const IDLE: usize = 50;

/// How long the site takes to answer that all calls which may run at once wait for.
const SITE_TAKES: Duration = Duration::from_millis(100);

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
    row("start of the runtime", started.elapsed(), "");
    let real = componentise(std::fs::read(guest)?)?;
    let directory = loads(&runtime, &real).await?;
    script(&runtime).await?;
    small(&runtime).await?;
    for files in [0, 20, 1_000, 10_000] {
        let (time, memory) = pages(&directory, files).await?;
        let memory = format!("{} KiB", memory / 1024);
        row(&format!("a page of {files} files read and listed"), time, &memory);
    }
    spin(&runtime).await?;
    let mut times = Vec::new();
    for _ in 0..9 {
        times.push(crowd(&directory, PLUGIN_CALLS).await?);
    }
    let what = format!("{PLUGIN_CALLS} calls at once, whose site takes {SITE_TAKES:?}");
    row(&what, median(times), "");
    Ok(())
}

fn row(what: &str, time: Duration, more: &str) {
    println!("{what:<52} {time:>10.1?}   {more}");
}

/// Loads of a real plugin, and the memory of many that nobody calls.
async fn loads(runtime: &Runtime, bytes: &[u8]) -> Result<Loaded, Box<dyn Error>> {
    let started = Instant::now();
    let loaded = runtime.load(bytes.to_vec(), Language::Component).await?;
    row("load, compiled in a process", started.elapsed(), "");
    let before = memory_kib()?;
    let mut idle = Vec::new();
    for _ in 0..IDLE {
        idle.push(runtime.load(bytes.to_vec(), Language::Component).await?);
    }
    let now = memory_kib()?;
    let [resident, own] = [0, 1].map(|at| now[at].saturating_sub(before[at]) / IDLE);
    let what = format!("memory of each of {IDLE} idle plugins");
    println!("{what:<52} {own:>7} KiB   {resident} KiB with pages of files");
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        let started = Instant::now();
        runtime.load(bytes.to_vec(), Language::Component).await?;
        times.push(started.elapsed());
    }
    row("load, compiled before", median(times), "");
    Ok(loaded)
}

/// Guests by hand, which show what the host itself costs.
async fn small(runtime: &Runtime) -> Result<(), Box<dyn Error>> {
    let listing = runtime.load(lists(20), Language::Component).await?;
    let (mut times, mut instantiate) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let started = Instant::now();
        let called = listing.preview(URL, CallContext::isolated(), Limits::preview()).await;
        times.push(started.elapsed());
        instantiate.push(called.report.instantiate);
        if called.result?.entries.len() != 20 {
            return Err("the listing is not whole".into());
        }
    }
    row("a fresh instance", median(instantiate), "");
    row("a fresh instance that lists 20 files", median(times), "");
    let time = host_calls(runtime, HOST_CALLS)
        .await?
        .saturating_sub(host_calls(runtime, 0).await?);
    row("a call of the host", time / u32::try_from(HOST_CALLS)?, "");
    Ok(())
}

/// A guest that lists so many files with sizes, up to 100: their names, which are also their ids, differ in two digits.
fn lists(count: usize) -> Vec<u8> {
    let items = r#"
        (import "svc:plugin/listing@0.1.0" "[method]listing.add" (func $add (param i32 i32 i32 i32 i32) (result i32)))
        (import "svc:plugin/listing@0.1.0" "[method]entry.size" (func $size (param i32 i64)))
        (import "svc:plugin/listing@0.1.0" "[resource-drop]entry" (func $drop_entry (param i32)))
        (memory (export "memory") 1)
        (data (i32.const 0) "file-00.zip")"#;
    let body = format!(
        "(local $i i32) (local $entry i32)
        (loop $next
            (i32.store8 (i32.const 5) (i32.add (i32.const 48) (i32.div_u (local.get $i) (i32.const 10))))
            (i32.store8 (i32.const 6) (i32.add (i32.const 48) (i32.rem_u (local.get $i) (i32.const 10))))
            (local.set $entry (call $add (local.get $listing)
                (i32.const 0) (i32.const 11) (i32.const 0) (i32.const 11)))
            (call $size (local.get $entry) (i64.const 1))
            (call $drop_entry (local.get $entry))
            (local.set $i (i32.add (local.get $i) (i32.const 1)))
            (br_if $next (i32.lt_u (local.get $i) (i32.const {count}))))"
    );
    guest::previewer(&[], items, &body)
}

/// The time of a call that asks the host for the time left, so many times.
async fn host_calls(runtime: &Runtime, count: usize) -> Result<Duration, Box<dyn Error>> {
    let items = format!(
        r#"(import "svc:plugin/env@0.1.0" "time-left-ms" (func $left (result i32))) {}"#,
        guest::MEMORY
    );
    let body = format!(
        "(local $i i32)
        (loop $next
            (drop (call $left))
            (local.set $i (i32.add (local.get $i) (i32.const 1)))
            (br_if $next (i32.lt_u (local.get $i) (i32.const {count}))))"
    );
    let loaded = runtime
        .load(guest::previewer(&["env"], &items, &body), Language::Component)
        .await?;
    let mut times = Vec::new();
    for _ in 0..9 {
        let started = Instant::now();
        let called = loaded.preview(URL, CallContext::isolated(), Limits::preview()).await;
        called.result?;
        times.push(started.elapsed());
    }
    Ok(median(times))
}

/// Calls on a page with so many files.
async fn pages(loaded: &Loaded, files: usize) -> Result<(Duration, usize), Box<dyn Error>> {
    let context = with_network(OnePage(page(files)?, Duration::ZERO))?;
    let (mut times, mut memory) = (Vec::new(), 0);
    for _ in 0..ROUNDS.min(300_000 / (files + 1)) {
        let (context, limits) = (context.clone(), Limits::resolve());
        let started = Instant::now();
        let called = loaded.resolve(URL, None, context, limits).await;
        times.push(started.elapsed());
        memory = called.report.peak_memory_bytes;
        if called.result?.entries.len() != files {
            return Err("the listing is not whole".into());
        }
    }
    Ok((median(times), memory))
}

/// A plugin in JavaScript: a fresh engine, the script handed over, twenty files listed.
async fn script(runtime: &Runtime) -> Result<(), Box<dyn Error>> {
    let script = "export function resolve(call) {
        const file = (_, i) => ({ name: `file-${i}.zip`, url: `${call.url}${i}`, size: i });
        return { files: Array.from({ length: 20 }, file) };
    }";
    let loaded = runtime.load(script.into(), Language::Script).await?;
    let (mut times, mut memory) = (Vec::new(), 0);
    for _ in 0..ROUNDS {
        let started = Instant::now();
        let called = loaded
            .resolve(URL, None, CallContext::isolated(), Limits::resolve())
            .await;
        times.push(started.elapsed());
        memory = called.report.peak_memory_bytes;
        if called.result?.entries.len() != 20 {
            return Err("the listing is not whole".into());
        }
    }
    let memory = format!("{} KiB", memory / 1024);
    row("a script: fresh engine, lists 20 files", median(times), &memory);
    let waits = "export async function resolve(call) { await http.get(call.url).send(); return []; }";
    let waits = runtime.load(waits.into(), Language::Script).await?;
    // What the first calls leave in the pool is not theirs.
    crowd(&waits, PLUGIN_CALLS).await?;
    let before = memory_kib()?[1];
    let meanwhile = async {
        tokio::time::sleep(SITE_TAKES / 2).await;
        memory_kib()
    };
    let (took, now) = tokio::join!(crowd(&waits, PLUGIN_CALLS), meanwhile);
    took?;
    let each = now?[1].saturating_sub(before) / PLUGIN_CALLS;
    println!(
        "{:<52} {each:>7} KiB",
        format!("memory of each of {PLUGIN_CALLS} scripts that wait")
    );
    Ok(())
}

/// How late an endless loop is ended, and what it does to the calls of others.
async fn spin(runtime: &Runtime) -> Result<(), Box<dyn Error>> {
    let spins = guest::previewer(&[], guest::MEMORY, "(loop $l (br $l))");
    let spins = runtime.load(spins, Language::Component).await?;
    let works = runtime.load(lists(20), Language::Component).await?;
    let alone = one_after_the_other(&works, ROUNDS).await?;
    let limits = Limits::preview();
    let budget = limits.cpu;
    #[expect(clippy::disallowed_methods, reason = "it is awaited below")]
    let spinning = tokio::spawn(async move { spins.preview(URL, CallContext::isolated(), limits).await });
    let beside = one_after_the_other(&works, ROUNDS).await?;
    let called = spinning.await?;
    if called.result.is_ok() {
        return Err("an endless loop has ended".into());
    }
    row(
        "an endless loop is ended after its budget",
        called.report.wall.saturating_sub(budget),
        "",
    );
    row("99 of 100 calls of another, alone", slow(alone), "");
    row("99 of 100 calls of another, beside it", slow(beside), "");
    Ok(())
}

async fn one_after_the_other(loaded: &Loaded, count: usize) -> Result<Vec<Duration>, Box<dyn Error>> {
    let mut times = Vec::new();
    for _ in 0..count {
        let started = Instant::now();
        loaded
            .preview(URL, CallContext::isolated(), Limits::preview())
            .await
            .result?;
        times.push(started.elapsed());
    }
    Ok(times)
}

/// Many calls at once that wait for their site.
async fn crowd(loaded: &Loaded, count: usize) -> Result<Duration, Box<dyn Error>> {
    let context = with_network(OnePage(page(20)?, SITE_TAKES))?;
    let started = Instant::now();
    let calls = (0..count).map(|_| {
        let (loaded, context) = (loaded.clone(), context.clone());
        #[expect(clippy::disallowed_methods, reason = "it is awaited below")]
        tokio::spawn(async move { loaded.resolve(URL, None, context, Limits::resolve()).await.result })
    });
    for listing in join_all(calls).await {
        listing??;
    }
    Ok(started.elapsed())
}

fn with_network(network: OnePage) -> Result<CallContext, Box<dyn Error>> {
    let mut context = CallContext::isolated();
    context.grants.input_host = Some(InputHost::found(URL.parse()?));
    context.network = Arc::new(network);
    Ok(context)
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

/// What 99 of 100 stay below.
fn slow(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() * 99 / 100]
}

/// What is in memory of this process, and what of it is nowhere else, so that it has to stay.
fn memory_kib() -> Result<[usize; 2], Box<dyn Error>> {
    let text = std::fs::read_to_string("/proc/self/smaps_rollup")?;
    let field = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        let number = line.and_then(|line| line.split_whitespace().next());
        number
            .ok_or(format!("no {name}"))?
            .parse()
            .map_err(Box::<dyn Error>::from)
    };
    Ok([field("Rss:")?, field("Private_Dirty:")?])
}

/// A network of one page, and how long it takes.
#[derive(Debug)]
struct OnePage(String, Duration);

impl Network for OnePage {
    fn exchange(&self, _: Exchange) -> Exchanged<'_> {
        Box::pin(async {
            if !self.1.is_zero() {
                tokio::time::sleep(self.1).await;
            }
            Ok(Answer {
                status: 200,
                headers: vec![("content-type".to_owned(), "text/html".to_owned())],
                body: self.0.clone().into(),
            })
        })
    }
}
