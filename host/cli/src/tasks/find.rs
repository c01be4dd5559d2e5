//! Finds tasks and queues by the names that users type.

use protocol::{FindTasksParams, FoundTasks, Method, QueueDto};

use crate::{
    ids::{self, Known},
    service::Client,
};

/// The complete ids of the named tasks. Fails for an ambiguous beginning, else with all that are unknown.
pub(crate) async fn tasks(client: &mut Client, given: &[String]) -> anyhow::Result<Vec<String>> {
    // The service looks: it may have a hundred thousand tasks.
    let prefixes = given.iter().map(|text| ids::normal(text)).collect();
    let FoundTasks { task_ids } = client.call(Method::FindTasks, &FindTasksParams { prefixes }).await?;
    Known::new("task", task_ids).find(given)
}

/// Finds a queue by id, name, or unique prefix of an id.
pub(crate) async fn queue(client: &mut Client, text: &str) -> anyhow::Result<QueueDto> {
    let queues: Vec<QueueDto> = client.ask(Method::QueueList).await?;
    pick(queues, text)
}

fn pick(queues: Vec<QueueDto>, text: &str) -> anyhow::Result<QueueDto> {
    let names = queues
        .iter()
        .map(|queue| (queue.queue_id.as_str(), queue.name.as_str()));
    let id = ids::named("queue", names, text)?;
    let found = queues.into_iter().find(|queue| queue.queue_id == id);
    Ok(found.expect("the id is one of theirs"))
}

#[cfg(test)]
mod tests {
    use command::UsageError;

    use super::*;
    use crate::service::RemoteError;

    fn queue(id: &str, name: &str) -> QueueDto {
        QueueDto {
            queue_id: id.into(),
            name: name.into(),
            ..QueueDto::default()
        }
    }

    #[test]
    fn a_queue_is_found_by_id_then_by_name() {
        let queues = || {
            vec![
                queue("main", "Default"),
                queue("later", "twin"),
                queue("beef-1", "twin"),
                queue("x", "main"),
            ]
        };
        assert_eq!(pick(queues(), "main").unwrap().name, "Default");
        assert_eq!(pick(queues(), "Default").unwrap().queue_id, "main");
        assert_eq!(pick(queues(), "beef").unwrap().queue_id, "beef-1");
        assert!(pick(queues(), "twin").unwrap_err().is::<UsageError>());
        assert!(pick(queues(), "nothing").unwrap_err().is::<RemoteError>());
    }
}
