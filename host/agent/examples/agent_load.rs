//! Measures an agent with many tasks and readers: `cargo run --release -p agent --example agent_load -- 100000 1000 100`
//! (tasks, connected readers, and how many of those fetch everything and receive every event). Daemon, agent and
//! readers are separate processes, so that the figures are the agent's alone.

#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a program for people who measure"
)]

use std::{
    io::{Read as _, Write as _},
    net::{Ipv4Addr, SocketAddr},
    process::{Child, Command, Stdio},
    sync::Arc,
    time::{Duration, Instant},
};

use agent::{AccessKey, Agent, ByteStream, Config, Connect, ConnectError, Edition, Found, PresetKey};
use futures_util::future::{BoxFuture, join_all};
use protocol::proof::Token;
use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::TcpStream,
};

/// Tasks of one call; its frame stays below the limit.
const BATCH: usize = 5000;

const KEY: &str = "load-key-1";

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number = |index: usize| words.get(index).and_then(|word| word.parse::<usize>().ok());
    match words.first().map(String::as_str) {
        Some("daemon") => daemon(&words[1]).await,
        Some("agent") => agent(&words[1], words[2].parse().unwrap(), &words[3]).await,
        _ => {
            measure(
                number(0).unwrap_or(100_000),
                number(1).unwrap_or(1000),
                number(2).unwrap_or(100),
            )
            .await;
        }
    }
}

async fn daemon(directory: &str) {
    let transport = transfer_http::HttpTransport::new(transfer_http::Config::default()).unwrap();
    let config = daemon::Config::new(format!("{directory}/data"), format!("{directory}/files"));
    let daemon = daemon::Daemon::start(config, vec![Arc::new(transport)]).await.unwrap();
    println!("{} {}", daemon.port(), daemon.token().expose());
    until_stdin_closes().await;
    daemon.shutdown(Duration::from_secs(5)).await;
}

struct OverTcp(Found);

impl Connect for OverTcp {
    fn find(&self) -> BoxFuture<'_, Result<Found, ConnectError>> {
        Box::pin(async { Ok(self.0.clone()) })
    }

    fn dial<'a>(&'a self, found: &'a Found) -> BoxFuture<'a, std::io::Result<Box<dyn ByteStream>>> {
        Box::pin(async {
            let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, found.port)).await?;
            Ok(Box::new(stream) as Box<dyn ByteStream>)
        })
    }
}

async fn agent(directory: &str, port: u16, token: &str) {
    let mut config = Config::new(Edition::Headless, format!("{directory}/agent"));
    config.bind = Some((Ipv4Addr::LOCALHOST, 0).into());
    config.preset_key = Some(PresetKey::Forced(AccessKey::new(KEY).unwrap()));
    let token = Token::new(token);
    let agent = Agent::start(config, OverTcp(Found { token, port })).await.unwrap();
    println!("{}", agent.local_addr());
    until_stdin_closes().await;
    agent.shutdown_keeping_daemon(Duration::from_secs(1)).await;
}

async fn until_stdin_closes() {
    let wait = || std::io::stdin().read_to_end(&mut Vec::new());
    tokio::task::spawn_blocking(wait).await.unwrap().unwrap();
}

/// A process of this program in another role, and the line that it prints when it is ready.
struct Role(Child);

impl Role {
    fn start(words: &[&str]) -> (Self, String) {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        std::io::BufRead::read_line(&mut std::io::BufReader::new(child.stdout.as_mut().unwrap()), &mut line).unwrap();
        (Self(child), line.trim().to_owned())
    }

    fn mib(&self, name: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.0.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() / 1024
    }

    fn say(&self, what: &str) {
        println!(
            "{what}: {} MiB resident, {} MiB at most",
            self.mib("VmRSS"),
            self.mib("VmHWM")
        );
        std::io::stdout().flush().unwrap();
    }

    fn end(mut self) {
        drop(self.0.stdin.take());
        self.0.wait().unwrap();
    }
}

async fn measure(tasks: usize, readers: usize, snapshots: usize) {
    let root = tempfile::tempdir().unwrap();
    let directory = root.path().to_str().unwrap();
    let (daemon, said) = Role::start(&["daemon", directory]);
    let (port, token) = said.split_once(' ').unwrap();
    let start = || Role::start(&["agent", directory, port, token]);

    let (agent, address) = start();
    let address: SocketAddr = address.parse().unwrap();
    until_known(address).await;
    agent.say("no task");
    let began = Instant::now();
    fill(address, tasks).await;
    agent.say(&format!("{tasks} tasks by events, made in {:.1?}", began.elapsed()));
    agent.end();

    let began = Instant::now();
    let (agent, address) = start();
    let address: SocketAddr = address.parse().unwrap();
    until_known(address).await;
    agent.say(&format!(
        "{tasks} tasks by a snapshot, {:.1?} after the start",
        began.elapsed()
    ));
    let id = time_reads(address).await;
    agent.say("after lists");

    let began = Instant::now();
    let open = (0..readers).map(|_| Reader::open(address));
    let mut readers = join_all(open).await;
    agent.say(&format!(
        "{} readers connected in {:.1?}",
        readers.len(),
        began.elapsed()
    ));
    let began = Instant::now();
    let some = readers.len().min(snapshots);
    let sizes = join_all(readers[..some].iter_mut().map(Reader::snapshot)).await;
    let mib = sizes.iter().sum::<usize>() >> 20;
    agent.say(&format!(
        "{some} readers fetched {mib} MiB of snapshots in {:.1?}",
        began.elapsed()
    ));
    let began = Instant::now();
    for number in 0..1000 {
        let method = if number % 2 == 0 { "resume" } else { "pause" };
        let call =
            json!({"jsonrpc": "2.0", "id": 1, "method": format!("daemon.task.{method}"), "params": {"taskId": id}});
        readers[0].call(&call.to_string()).await;
    }
    agent.say(&format!(
        "1000 writes heard by {some} readers in {:.1?}",
        began.elapsed()
    ));
    drop(readers);
    agent.end();
    daemon.end();
}

async fn until_known(address: SocketAddr) {
    while !get(address, "/api/v1/tasks?limit=1").await.starts_with(b"HTTP/1.1 200") {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

async fn fill(address: SocketAddr, tasks: usize) {
    let mut reader = Reader::open(address).await;
    for batch in 0..tasks.div_ceil(BATCH) {
        let task = |index| json!({"url": format!("http://host.test/a/path/of/some/length/file-{batch}-{index}.bin"), "startPaused": true});
        let requests: Vec<_> = (0..BATCH).map(task).collect();
        let call =
            json!({"jsonrpc": "2.0", "id": 1, "method": "daemon.task.createMany", "params": {"requests": requests}});
        reader.call(&call.to_string()).await;
    }
}

async fn get(address: SocketAddr, path: &str) -> Vec<u8> {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let head =
        format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {KEY}\r\nConnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    answer
}

/// Measures reads; returns a task's id.
async fn time_reads(address: SocketAddr) -> String {
    for path in ["/api/v1/tasks", "/api/v1/tasks?status=1", "/api/v1/tasks?limit=100"] {
        let began = Instant::now();
        let kib = get(address, path).await.len() >> 10;
        println!("GET {path}: {kib} KiB in {:.1?}", began.elapsed());
    }
    let page = get(address, "/api/v1/tasks?limit=1").await;
    let page = String::from_utf8(page).unwrap();
    let id = page
        .split("\"taskId\":\"")
        .nth(1)
        .unwrap()
        .split('"')
        .next()
        .unwrap()
        .to_owned();
    let path = format!("/api/v1/tasks/{id}");
    let began = Instant::now();
    for _ in 0..2000 {
        get(address, &path).await;
    }
    println!(
        "GET one task, a connection each: {:.0}/s",
        2000.0 / began.elapsed().as_secs_f64()
    );
    id
}

/// A client of `/rpc` that discards what it reads.
struct Reader(BufReader<TcpStream>);

impl Reader {
    async fn open(address: SocketAddr) -> Self {
        let mut reader = Self(BufReader::new(TcpStream::connect(address).await.unwrap()));
        let head = format!(
            "GET /rpc HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {KEY}\r\nConnection: Upgrade\r\n\
             Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
        );
        reader.0.write_all(head.as_bytes()).await.unwrap();
        let mut seen = Vec::new();
        while !seen.ends_with(b"\r\n\r\n") {
            seen.push(reader.0.read_u8().await.unwrap());
        }
        let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "system.hello", "params": {"clientName": "load",
            "clientVersion": "0", "minProtocolVersion": 1, "maxProtocolVersion": 1, "requestedRole": "agent"}});
        reader.call(&hello.to_string()).await;
        reader
    }

    /// Calls a method and reads until its reply, which is the first message that is not a notification.
    async fn call(&mut self, text: &str) -> usize {
        let mut frame = vec![0x81, 0x80 | 127];
        frame.extend(u64::try_from(text.len()).unwrap().to_be_bytes());
        // A mask of zeros changes nothing.
        frame.extend([0; 4]);
        frame.extend(text.as_bytes());
        self.0.write_all(&frame).await.unwrap();
        loop {
            let (start, length) = self.message().await;
            if !start.starts_with(b"{\"jsonrpc\":\"2.0\",\"method\"") {
                return length;
            }
        }
    }

    async fn snapshot(&mut self) -> usize {
        self.call(r#"{"jsonrpc":"2.0","id":1,"method":"system.snapshot"}"#)
            .await
    }

    /// The beginning of a message, and its length.
    async fn message(&mut self) -> (Vec<u8>, usize) {
        let (mut start, mut length) = (Vec::new(), 0);
        loop {
            let head = self.0.read_u16().await.unwrap();
            let size = match head & 0x7f {
                126 => u64::from(self.0.read_u16().await.unwrap()),
                127 => self.0.read_u64().await.unwrap(),
                size => u64::from(size),
            };
            let mut payload = vec![0; usize::try_from(size).unwrap()];
            self.0.read_exact(&mut payload).await.unwrap();
            length += payload.len();
            if start.is_empty() {
                payload.truncate(64);
                start = payload;
            }
            if head & 0x8000 != 0 {
                return (start, length);
            }
        }
    }
}
