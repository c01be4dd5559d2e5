//! `svc export`: prints a service's unfinished downloads in another program's format.

use aria2::{
    files,
    option::{self, Row},
};
use command::{Exit, environment::Environment, print_bytes};
use protocol::{CreateTaskRequest, ErrorCode, Method, TaskDto, TaskIdParams, TaskStatus};

use crate::service::{RemoteError, ServiceArgs};

const EXAMPLES: &str = "Examples:
  svc export aria2 > session.txt
  svc import aria2 session.txt --url http://nas:17800   moves them to another service
  aria2c --input-file session.txt

The list has every download that is not complete, with its GID, but no passwords, cookies or headers: a service never \
shows those.";

/// The format.
#[derive(Debug, clap::Subcommand)]
pub enum ExportCommand {
    /// As a session file of aria2
    #[command(after_help = EXAMPLES)]
    Aria2(Aria2Args),
}

#[derive(Debug, clap::Args)]
pub struct Aria2Args {
    #[command(flatten)]
    service: ServiceArgs,
}

pub(crate) async fn run(command: &ExportCommand, environment: &Environment) -> anyhow::Result<Exit> {
    let ExportCommand::Aria2(args) = command;
    aria2(args, environment).await
}

async fn aria2(args: &Aria2Args, environment: &Environment) -> anyhow::Result<Exit> {
    let mut client = args.service.connect(environment).await?;
    let tasks = client.snapshot().await?.daemon.tasks;
    let mut list = String::new();
    for task in tasks.into_iter().filter(|task| task.status != TaskStatus::Completed) {
        let params = TaskIdParams {
            task_id: task.task_id.clone(),
        };
        match client.call::<CreateTaskRequest>(Method::TaskRequest, &params).await {
            Ok(request) => list.push_str(&entry(&task, request)),
            // It was removed in the meantime.
            Err(RemoteError::Call(error)) if error.application_code() == Some(ErrorCode::NotFound) => {}
            Err(error) => return Err(error.into()),
        }
    }
    print_bytes(list.as_bytes())
}

fn entry(task: &TaskDto, mut request: CreateTaskRequest) -> String {
    // The service redacts their values.
    request.headers = None;
    let asked = option::saved(&request, &task.task_id);
    let mut options = asked.filtered(|row| asked.get(row.name()) != row.default());
    if task.status == TaskStatus::Paused {
        options.put(Row::of("pause").expect("it is in the table"), "true".to_owned(), false);
    }
    let uris: Vec<String> = std::iter::once(request.url).chain(request.mirrors).collect();
    files::entry(&uris, &options)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_to_do_is_an_entry_that_is_read_again() {
        let task = TaskDto {
            task_id: "0123abcd-4567-4def-8000-000000000000".into(),
            status: TaskStatus::Paused,
            ..TaskDto::default()
        };
        let request = CreateTaskRequest {
            url: "http://a/f".into(),
            mirrors: vec!["http://b/f".into()],
            save_dir: "/d".into(),
            segments: 3,
            // More than aria2 allows.
            max_connections: Some(100),
            ..CreateTaskRequest::default()
        };
        let text = entry(&task, request.clone());
        assert_eq!(
            text,
            "http://a/f\thttp://b/f\t\n dir=/d\n gid=0123abcd45674def\n pause=true\n split=3\n"
        );
        let [read] = &files::list(&text)[..] else {
            panic!("there is one")
        };
        let made = option::created(&read.uris, &read.options, "/").unwrap().request;
        assert_eq!(
            (made.url, made.save_dir, made.segments),
            ("http://a/f".into(), "/d".into(), 3)
        );
        assert_eq!((made.mirrors, made.start_paused), (request.mirrors, true));
    }
}
