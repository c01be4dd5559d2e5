//! `svc unpack` and `svc post`: what follows finished downloads.

use std::{fs, io::Read as _, path::PathBuf, time::Duration};

use command::{Exit, UsageError, amount::counted, environment::Environment};
use protocol::{
    Method, OkResult, PostCleared, PostJobDto, PostJobParams, PostJobs, PostPasswords, PostStartRequest, PostStarted,
    PostState, PostStep,
};

use crate::{
    chain::{self, Steps},
    service::{Client, ServiceArgs},
    table,
    tasks::find,
};

pub(crate) const UNPACK_EXAMPLES: &str = "Examples:
  svc unpack 3f2a                              into a directory beside the archive, which is kept
  svc unpack 3f2a --delete-archive
  svc unpack 3f2a --password-file - < passwords.txt

Of an archive in several files, any of them is named; all have to be finished. ZIP, 7z, RAR, and tar with gzip, bzip2, xz or
Zstandard are unpacked. The directory appears when everything is unpacked and verified, or not at all.";

pub(crate) const EXAMPLES: &str = "Examples:
  svc config server set post_chain '[{\"kind\":\"unpack\",\"deleteArchive\":true}]'
  svc queue update films --chain '[{\"kind\":\"checksum\",\"algorithms\":[\"sha-256\"]}]'
  svc post                                     what was done, and what is being done
  svc post retry 12
  svc post passwords --file - < passwords.txt  tried on archives that are encrypted; replaces all

Steps: unpack (deleteArchive, into), rename (template), checksum (algorithms), mux and remux (container: mp4, matroska or
webM), plugin (identity).";

/// Passwords that are read: 100 of 512 bytes.
const MAX_PASSWORD_FILE_BYTES: u64 = 64 * 1024;

/// How often a job is looked at that a command waits for.
const LOOK_EVERY: Duration = Duration::from_millis(300);

#[derive(Debug, clap::Args)]
pub struct UnpackArgs {
    /// Id of a finished task
    id: String,
    /// File with passwords, one a line; - for standard input
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    password_file: Option<PathBuf>,
    /// Delete the archive when its content is there and verified
    #[arg(long)]
    delete_archive: bool,
    /// Absolute path of the directory that the new one is made in, on the machine of the service
    #[arg(long, value_name = "DIR")]
    into: Option<String>,
    /// Do not wait for the end
    #[arg(long)]
    detach: bool,
    #[command(flatten)]
    service: ServiceArgs,
}

#[derive(Debug, clap::Args)]
pub struct PostArgs {
    #[command(subcommand)]
    command: Option<PostCommand>,
    #[command(flatten)]
    service: ServiceArgs,
}

#[derive(Debug, clap::Subcommand)]
enum PostCommand {
    /// List what follows downloads: jobs that wait, run and have ended
    #[command(visible_alias = "ls")]
    List,
    /// Take the steps of a task's queue now, or others
    Start {
        /// Id of a finished task
        id: String,
        /// Other steps, as a JSON array
        #[arg(long, value_name = "JSON", value_parser = chain::steps)]
        steps: Option<Steps>,
    },
    /// End jobs that wait or run; what was unpacked so far is removed
    Cancel(JobArgs),
    /// Take the failed or cancelled step of jobs again
    Retry(JobArgs),
    /// Forget all jobs that have ended
    Clear,
    /// Replace the passwords that are tried on archives
    Passwords {
        /// File with passwords, one a line; - for standard input. An empty one: none
        #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
        file: PathBuf,
    },
}

#[derive(Debug, clap::Args)]
struct JobArgs {
    /// Numbers of jobs, from svc post
    #[arg(value_name = "JOB", required = true)]
    jobs: Vec<u64>,
}

pub(crate) async fn unpack(args: &UnpackArgs, environment: &Environment) -> anyhow::Result<Exit> {
    let service = &args.service;
    let passwords = args.password_file.as_ref();
    let passwords = passwords.map(|file| read_passwords("--password-file", file));
    let mut client = service.connect(environment).await?;
    let request = PostStartRequest {
        task_id: task(&mut client, &args.id).await?,
        steps: vec![PostStep::Unpack {
            delete_archive: args.delete_archive,
            into: args.into.clone().unwrap_or_default(),
        }],
        passwords: passwords.transpose()?.unwrap_or_default(),
        ..PostStartRequest::default()
    };
    let started: PostStarted = client.call(Method::PostStart, &request).await?;
    if args.detach {
        let sentence = format!("unpacks as job {}; see svc post", started.job_id);
        return service.print_done(&started, &sentence);
    }
    let job = ended(&mut client, started.job_id).await?;
    match job.state {
        PostState::Done => {
            let place = job.files.first().map_or("", String::as_str);
            service.print_done(&job, &format!("unpacked into {place}"))
        }
        PostState::Cancelled => anyhow::bail!("it was cancelled"),
        _ => anyhow::bail!("{}; the archive is kept", job.message),
    }
}

pub(crate) async fn run(args: &PostArgs, environment: &Environment) -> anyhow::Result<Exit> {
    let service = &args.service;
    let mut client = service.connect(environment).await?;
    let client = &mut client;
    match args.command.as_ref().unwrap_or(&PostCommand::List) {
        PostCommand::List => {
            let list: PostJobs = client.ask(Method::PostList).await?;
            service.print(&list, || lines(&list))
        }
        PostCommand::Start { id, steps } => {
            let request = PostStartRequest {
                task_id: task(client, id).await?,
                steps: steps.clone().map(|steps| steps.0).unwrap_or_default(),
                ..PostStartRequest::default()
            };
            let started: PostStarted = client.call(Method::PostStart, &request).await?;
            service.print_done(&started, &format!("job {}", started.job_id))
        }
        PostCommand::Cancel(which) => each(client, service, Method::PostCancel, which, "cancelled").await,
        PostCommand::Retry(which) => each(client, service, Method::PostRetry, which, "tries again").await,
        PostCommand::Clear => {
            let cleared: PostCleared = client.ask(Method::PostClear).await?;
            let count = usize::try_from(cleared.count).unwrap_or(usize::MAX);
            service.print_done(&cleared, &format!("forgot {}", counted(count, "job")))
        }
        PostCommand::Passwords { file } => {
            let passwords = read_passwords("--file", file)?;
            let count = passwords.len();
            let done: OkResult = client
                .call(Method::PostSetPasswords, &PostPasswords { passwords })
                .await?;
            service.print_done(&done, &format!("{} for archives", counted(count, "password")))
        }
    }
}

async fn each(
    client: &mut Client,
    service: &ServiceArgs,
    method: Method,
    JobArgs { jobs }: &JobArgs,
    what: &str,
) -> anyhow::Result<Exit> {
    for job_id in jobs {
        let _: OkResult = client.call(method, &PostJobParams { job_id: *job_id }).await?;
    }
    let done = serde_json::json!({ "jobIds": jobs });
    service.print_done(&done, &format!("{what}: {}", counted(jobs.len(), "job")))
}

async fn task(client: &mut Client, id: &str) -> anyhow::Result<String> {
    let id = id.to_owned();
    let found = find::tasks(client, std::slice::from_ref(&id)).await?;
    Ok(found.into_iter().next().unwrap_or_default())
}

/// The job once it has ended.
async fn ended(client: &mut Client, job_id: u64) -> anyhow::Result<PostJobDto> {
    loop {
        let list: PostJobs = client.ask(Method::PostList).await?;
        let job = list.jobs.into_iter().find(|job| job.job_id == job_id);
        let Some(job) = job else {
            anyhow::bail!("job {job_id} was forgotten meanwhile");
        };
        if !matches!(job.state, PostState::Waiting | PostState::Running) {
            return Ok(job);
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// One password a line; lines are taken as they are, because spaces may belong to a password.
fn read_passwords(option: &str, path: &PathBuf) -> Result<Vec<String>, UsageError> {
    let mut text = String::new();
    let read = if path.as_os_str() == "-" {
        std::io::stdin().take(MAX_PASSWORD_FILE_BYTES).read_to_string(&mut text)
    } else {
        fs::File::open(path).and_then(|file| file.take(MAX_PASSWORD_FILE_BYTES).read_to_string(&mut text))
    };
    read.map_err(|error| UsageError::new(option, format!("cannot read {}: {error}", path.display())))?;
    Ok(text
        .lines()
        .filter(|line| !line.is_empty())
        .map(ToOwned::to_owned)
        .collect())
}

fn lines(list: &PostJobs) -> Vec<String> {
    let row = |job: &PostJobDto| {
        let step = usize::try_from(job.step).ok().and_then(|step| job.steps.get(step));
        let file = job.files.first().map_or("", String::as_str);
        let what = match job.state {
            PostState::Waiting => "waits".to_owned(),
            PostState::Running => match job.progress {
                Some(thousandths) => format!("{}.{} %", thousandths / 10, thousandths % 10),
                None => "runs".to_owned(),
            },
            PostState::Done => "done".to_owned(),
            PostState::Failed => "failed".to_owned(),
            PostState::Cancelled => "cancelled".to_owned(),
        };
        [
            job.job_id.to_string(),
            what,
            step.map_or("", name).to_owned(),
            file.to_owned(),
            job.message.clone(),
        ]
    };
    table::lines(["JOB", "STATE", "STEP", "FILE", "WHY"], list.jobs.iter().map(row))
}

fn name(step: &PostStep) -> &'static str {
    match step {
        PostStep::Unpack { .. } => "unpack",
        PostStep::Rename { .. } => "rename",
        PostStep::Checksum { .. } => "checksum",
        PostStep::Mux { .. } => "mux",
        PostStep::Remux { .. } => "remux",
        PostStep::Plugin { .. } => "plugin",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_are_lines() {
        let job = |state, progress| PostJobDto {
            job_id: 7,
            files: vec!["/d/a.zip".to_owned()],
            steps: vec![PostStep::Checksum {
                algorithms: vec!["md5".to_owned()],
            }],
            state,
            progress,
            ..PostJobDto::default()
        };
        let jobs = vec![job(PostState::Running, Some(123)), job(PostState::Done, None)];
        let shown = lines(&PostJobs { jobs, passwords: 0 }).join("\n");
        assert!(shown.contains("12.3 %") && shown.contains("checksum"), "{shown}");
    }
}
