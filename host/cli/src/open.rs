//! `svc open`: what a desktop starts for links and files. Hands them to the running service, and starts it if there is
//! none.

mod operand;

use std::{
    process::{Child, Command, Stdio},
    sync::Arc,
    time::Duration,
};

use anyhow::{Context as _, bail};
use command::{Exit, UsageError, browser, environment::Environment, note, print_json, print_lines};
use protocol::{CaptureResult, CaptureSubmitParams, DownloadRequest, Method, OkResult, OpenTaskParams};
use serde_json::json;
use tokio::time::{Instant, sleep};

use self::operand::Operand;
use crate::{
    page,
    service::{Client, RemoteError, ServiceArgs, Target},
    tasks::{add, find},
};

pub(crate) const EXAMPLES: &str = "Examples:
  svc open                                         the page in a browser; asks for no key
  svc open --print                                 print its address, good once for a minute
  svc open --url https://nas.example.com           another machine's; asks for its key
  svc open 'svc://download?url=https%3A%2F%2Fexample.com%2Fa.iso&filename=b.iso'
  svc open 'magnet:?xt=urn:btih:...'
  svc open ~/Downloads/film.torrent
  svc open --task 3f2a                             a finished file, with the program of its type
  svc open --task 3f2a --reveal                    the same file, shown in its directory

Links wait for confirmation like downloads that a browser hands over: in the desktop's notification, on the page, with svc
capture. Files were chosen by you and are added at once. Without a running service, svc agent is started.

--task works for the user who runs svc agent, on its desktop. Programs are not opened, only shown with --reveal.";

/// How long a service may take from its start to its first answer: it verifies its database meanwhile.
const START_TIME: Duration = Duration::from_secs(20);

/// How long a service that was started at the same time may still take.
const OTHERS_TIME: Duration = Duration::from_secs(5);

const LOOK_EVERY: Duration = Duration::from_millis(50);

#[derive(Debug, clap::Args)]
pub struct OpenArgs {
    /// Links (svc:, magnet:, http:, https:, ftp:), and torrent or Metalink files; none opens the page
    #[arg(value_name = "LINK|FILE")]
    operands: Vec<String>,
    /// Print the address of the page, and open nothing
    #[arg(long, conflicts_with = "operands")]
    print: bool,
    /// Open the file of this finished task on the service's desktop
    #[arg(long, value_name = "ID", conflicts_with_all = ["operands", "print"])]
    task: Option<String>,
    /// With --task: show the file in its directory instead
    #[arg(long, requires = "task")]
    reveal: bool,
    #[command(flatten)]
    service: ServiceArgs,
}

/// What became of one operand.
#[derive(Debug, Default, PartialEq, Eq)]
struct Handed {
    waiting: Vec<String>,
    added: Vec<String>,
}

pub(crate) async fn run(args: &OpenArgs, environment: &Environment) -> anyhow::Result<Exit> {
    if let Some(task) = &args.task {
        return open_task(task, args, environment).await;
    }
    let operands: Vec<Operand> = args
        .operands
        .iter()
        .map(|operand| Operand::parse(operand))
        .collect::<Result<_, UsageError>>()?;
    let operands: Vec<Operand> = operands
        .into_iter()
        .filter(|operand| *operand != Operand::Nothing)
        .collect();
    if args.operands.is_empty() {
        return show_page(args, environment).await;
    }
    if operands.is_empty() {
        return Ok(Exit::Success);
    }
    let mut client = connect(&args.service, environment).await?;
    let mut handed = Handed::default();
    let mut files = Vec::new();
    for operand in operands {
        match operand {
            Operand::Nothing => {}
            Operand::Page(place) => drop(open_page(&page::address(&client.target, place).await?)?),
            Operand::Download { url, file_name } => submit(&mut client, url, file_name, &mut handed).await?,
            Operand::File(path) => files.push(path),
        }
    }
    if !files.is_empty() {
        return add::run(&add::AddArgs::of(files, args.service.clone())?, environment).await;
    }
    if args.service.json {
        return print_json(&json!({ "transactionIds": handed.waiting, "taskIds": handed.added }));
    }
    let waiting = handed
        .waiting
        .iter()
        .map(|id| format!("waits for your confirmation: svc capture accept {id}"));
    print_lines(waiting.chain(handed.added.iter().map(|id| format!("added {id}"))))
}

async fn open_task(task: &str, args: &OpenArgs, environment: &Environment) -> anyhow::Result<Exit> {
    let mut client = Client::connect(&args.service.target(environment)?).await?;
    let task_id = find::tasks(&mut client, &[task.to_owned()]).await?.remove(0);
    let params = OpenTaskParams {
        task_id,
        reveal: args.reveal,
    };
    let OkResult { .. } = client.call(Method::TaskOpen, &params).await?;
    let (record, sentence) = if args.reveal {
        (
            json!({ "revealed": params.task_id }),
            "showed the file in its directory",
        )
    } else {
        (json!({ "opened": params.task_id }), "opened the file")
    };
    args.service.print_done(&record, sentence)
}

async fn submit(client: &mut Client, url: String, file_name: String, handed: &mut Handed) -> anyhow::Result<()> {
    let params = CaptureSubmitParams {
        request: DownloadRequest {
            url,
            filename: file_name,
            ..DownloadRequest::default()
        },
        silent: None,
    };
    match client.call(Method::CaptureSubmit, &params).await? {
        CaptureResult::TransactionIds(ids) => handed.waiting.extend(ids),
        CaptureResult::TaskIds(ids) => handed.added.extend(ids),
        CaptureResult::Ignored(_) => bail!(
            "the service takes no downloads from other programs: takeover is switched off; switch it on with svc config \
             server set local_server_takeover_enabled=true"
        ),
    }
    Ok(())
}

/// Opens the page, or prints its address where no browser can be opened.
async fn show_page(args: &OpenArgs, environment: &Environment) -> anyhow::Result<Exit> {
    let mut target = Arc::new(args.service.target(environment)?);
    let page = match page::address(&target, "").await {
        Err(error) if error.downcast_ref().is_some_and(is_away) && can_start(&args.service, &target) => {
            target = connect(&args.service, environment).await?.target;
            page::address(&target, "").await?
        }
        answer => answer?,
    };
    let is_opened = !args.print && open_page(&page).is_ok();
    let record = json!({ "url": page, "opened": is_opened });
    let sentence = if is_opened {
        format!("opened the page of the service at {}", target.address)
    } else {
        page
    };
    args.service.print_done(&record, &sentence)
}

/// The starter of the browser ends by itself, at once or with the browser.
fn open_page(url: &str) -> anyhow::Result<Child> {
    browser::open(url).with_context(|| format!("cannot open {url} in a browser"))
}

/// Whether nothing answers, or what answered is ending, so that a service may have to be started.
fn is_away(error: &RemoteError) -> bool {
    matches!(
        error,
        RemoteError::Unreachable { .. } | RemoteError::NoKey { .. } | RemoteError::Closed { .. }
    )
}

/// Whether the options select the service of this machine, which this command may start.
fn can_start(args: &ServiceArgs, target: &Target) -> bool {
    !args.names_a_service() && target.own_data_dir().is_some()
}

/// Connects to the service that the options select. If they select the one of this machine and it does not run, it is
/// started, unless another one does so at the same time.
async fn connect(args: &ServiceArgs, environment: &Environment) -> anyhow::Result<Client> {
    let first = args.target(environment)?;
    match Client::connect(&first).await {
        Err(error) if is_away(&error) && can_start(args, &first) => {}
        answer => return Ok(answer?),
    }
    let mut agent = start(args)?;
    let mut until = Instant::now() + START_TIME;
    let mut has_ended = false;
    loop {
        // Where it listens is known only when it does.
        let failure = match Client::connect(&args.target(environment)?).await {
            Ok(client) => return Ok(client),
            Err(error) if is_away(&error) || error.is_temporary() => error,
            Err(error) => return Err(error.into()),
        };
        if Instant::now() >= until {
            return Err(failure.into());
        }
        // It fails if another one was started at the same time, which then answers soon.
        if !has_ended && agent.try_wait().is_ok_and(|status| status.is_some()) {
            has_ended = true;
            until = Instant::now() + OTHERS_TIME;
        } else if has_ended && Instant::now() + LOOK_EVERY >= until {
            bail!("svc agent ended right after its start; run it in a terminal to see why");
        }
        sleep(LOOK_EVERY).await;
    }
}

/// Starts `svc agent`. It outlives this command, as it does when the session starts it: a service has no owner but its
/// data directory.
fn start(args: &ServiceArgs) -> anyhow::Result<Child> {
    let program = std::env::current_exe().context("cannot find this executable")?;
    let mut command = Command::new(&program);
    command.arg("agent");
    if let Some(data_dir) = &args.data_dir {
        command.arg("--data-dir").arg(data_dir);
    }
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    #[cfg(unix)]
    {
        use std::os::unix::process::CommandExt as _;
        // Ctrl-C in the terminal of this command is not meant for it.
        command.process_group(0);
    }
    note("starting svc agent");
    command
        .spawn()
        .with_context(|| format!("cannot start {} agent", program.display()))
}
