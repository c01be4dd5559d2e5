//! `svc webhook`: HTTP endpoints that receive the events of downloads.

mod fields;

use command::{Exit, UsageError, amount, environment::Environment};
use jiff::{Timestamp, tz::TimeZone};
use protocol::{
    ConfigPatch, ConfigSnapshot, ErrorCode, Method, OkResult, WebhookDeliveries, WebhookDeliveryDto,
    WebhookDeliveryStatus, WebhookEndpointDto, WebhookSimulateParams, WebhookSimulated, WebhookTestParams,
};

use self::fields::FieldArgs;
use crate::{
    ids, secret,
    service::{Client, RemoteError, ServiceArgs},
    table,
};

pub(crate) const EXAMPLES: &str = "Examples:
  svc webhook add https://host/hook --secret-file key.txt --event task.completed,task.failed
  svc webhook add - --name chat --preset discord < url.txt     keeps the URL out of the history
  svc webhook add http://192.168.1.5:8123/api/hook --allow-http --allow-private
  svc webhook test chat                     sends an example once, and says what was answered
  svc webhook set chat --enabled false
  svc webhook log -n 10

A webhook is named by its id or its name. URLs are shown without path and query, header values and secrets not at all.
Deliveries are signed: X-Svc-Signature: t=<unix seconds>,v1=<hex HMAC-SHA256(secret, \"<t>.<body>\")>.";

/// The setting of the service that has all endpoints.
const SETTING: &str = "webhook.endpoints";

#[derive(Debug, clap::Args)]
pub struct WebhookArgs {
    #[command(subcommand)]
    command: Option<WebhookCommand>,
    #[command(flatten)]
    service: ServiceArgs,
}

#[derive(Debug, clap::Subcommand)]
enum WebhookCommand {
    /// List webhooks
    #[command(visible_alias = "ls")]
    List,
    /// Add a webhook
    Add {
        /// Where deliveries are sent, - to read it from standard input
        #[arg(value_name = "URL", value_hint = clap::ValueHint::Url)]
        target: String,
        #[command(flatten)]
        fields: Box<FieldArgs>,
    },
    /// Change a webhook; what is not given stays
    Set {
        #[command(flatten)]
        which: OneArgs,
        /// Another URL, - to read it from standard input. Of another host: give headers and secret again
        #[arg(long, value_name = "URL", value_hint = clap::ValueHint::Url)]
        to: Option<String>,
        #[command(flatten)]
        fields: Box<FieldArgs>,
    },
    /// Remove a webhook
    #[command(visible_alias = "rm")]
    Remove(OneArgs),
    /// Send an example to a webhook, once, and print the answer
    Test {
        #[command(flatten)]
        which: OneArgs,
        /// The event [default: task.completed]
        #[arg(long, value_name = "EVENT")]
        event: Option<String>,
    },
    /// Send an example to all webhooks that want the event, as if it had happened
    Simulate {
        /// The event [default: task.completed]
        #[arg(value_name = "EVENT")]
        event: Option<String>,
    },
    /// Print the deliveries since the start of the service, newest first
    Log {
        /// At most this many, 0 for all
        #[arg(short = 'n', long, value_name = "N", default_value_t = 50)]
        limit: usize,
        /// Forget them all
        #[arg(long)]
        clear: bool,
    },
}

#[derive(Debug, clap::Args)]
struct OneArgs {
    /// Name or id of the webhook
    webhook: String,
}

pub(crate) async fn run(args: &WebhookArgs, environment: &Environment) -> anyhow::Result<Exit> {
    let service = &args.service;
    let mut client = service.connect(environment).await?;
    let client = &mut client;
    match args.command.as_ref().unwrap_or(&WebhookCommand::List) {
        WebhookCommand::List => {
            let (_, endpoints) = endpoints(client).await?;
            service.print(&endpoints, || endpoint_lines(&endpoints))
        }
        WebhookCommand::Add { target, fields } => add(client, service, target, fields).await,
        WebhookCommand::Set { which, to, fields } => set(client, service, which, to.as_deref(), fields).await,
        WebhookCommand::Remove(which) => {
            let removed = change(client, |endpoints| {
                let id = find(endpoints, &which.webhook)?;
                let at = endpoints.iter().position(|endpoint| endpoint.id == id);
                Ok(endpoints.remove(at.expect("the id is one of theirs")))
            });
            let removed = removed.await?;
            service.print_done(&removed, &format!("removed {}", removed.name))
        }
        WebhookCommand::Test { which, event } => {
            let (_, endpoints) = endpoints(client).await?;
            let id = find(&endpoints, &which.webhook)?;
            let endpoint = endpoints.into_iter().find(|endpoint| endpoint.id == id);
            let params = WebhookTestParams {
                endpoint: endpoint.expect("the id is one of theirs"),
                event: event.clone().unwrap_or_default(),
            };
            let delivery: WebhookDeliveryDto = client.call(Method::WebhookTest, &params).await?;
            let exit = service.print(&delivery, || test_lines(&delivery))?;
            let is_delivered = delivery.status == WebhookDeliveryStatus::Delivered;
            Ok(if is_delivered { exit } else { Exit::Network })
        }
        WebhookCommand::Simulate { event } => {
            let event = event.clone().unwrap_or_default();
            let params = WebhookSimulateParams { event };
            let simulated: WebhookSimulated = client.call(Method::WebhookSimulate, &params).await?;
            let count = amount::counted(simulated.count, "webhook");
            service.print_done(
                &simulated,
                &format!("sending an example to {count}; see svc webhook log"),
            )
        }
        WebhookCommand::Log { clear: true, .. } => {
            let done: OkResult = client.ask(Method::WebhookClearDeliveries).await?;
            service.print_done(&done, "forgot all deliveries")
        }
        WebhookCommand::Log { limit, .. } => {
            let mut log: WebhookDeliveries = client.ask(Method::WebhookGet).await?;
            log.deliveries.truncate(if *limit == 0 { usize::MAX } else { *limit });
            service.print(&log, || log_lines(&log))
        }
    }
}

async fn add(client: &mut Client, service: &ServiceArgs, target: &str, fields: &FieldArgs) -> anyhow::Result<Exit> {
    let mut added = WebhookEndpointDto {
        url: url(target)?,
        ..WebhookEndpointDto::default()
    };
    fields.apply(&mut added, client).await?;
    let added = change(client, |endpoints| {
        let mut added = added.clone();
        added.id = new_id(&added, endpoints);
        if added.name.is_empty() {
            added.name.clone_from(&added.id);
        }
        endpoints.push(added.clone());
        Ok(added)
    });
    let added = added.await?;
    let added = shown(client, &added.id).await?;
    let sentence = format!("added {}; try it with: svc webhook test {}", added.name, added.id);
    service.print_done(&added, &sentence)
}

async fn set(
    client: &mut Client,
    service: &ServiceArgs,
    which: &OneArgs,
    to: Option<&str>,
    fields: &FieldArgs,
) -> anyhow::Result<Exit> {
    let (_, present) = endpoints(client).await?;
    let id = find(&present, &which.webhook)?;
    let changed = present.into_iter().find(|endpoint| endpoint.id == id);
    let mut changed = changed.expect("the id is one of theirs");
    if let Some(target) = to {
        changed.url = url(target)?;
    }
    fields.apply(&mut changed, client).await?;
    let replacing = change(client, |endpoints| {
        let known = endpoints.iter_mut().find(|endpoint| endpoint.id == id);
        let known = known.ok_or_else(|| UsageError::new(&which.webhook, "it was removed meanwhile"))?;
        known.clone_from(&changed);
        Ok(())
    });
    replacing.await?;
    let changed = shown(client, &id).await?;
    service.print_done(&changed, &format!("changed {}", changed.name))
}

fn url(target: &str) -> anyhow::Result<String> {
    if target == "-" {
        let line = secret::first_line("URL", target.as_ref())?;
        return Ok(line.expose().to_owned());
    }
    Ok(target.to_owned())
}

/// The configuration's revision, and the endpoints with masked secrets.
async fn endpoints(client: &mut Client) -> anyhow::Result<(u64, Vec<WebhookEndpointDto>)> {
    let config: ConfigSnapshot = client.ask(Method::ConfigGet).await?;
    let text = config.values.get(SETTING).map_or("", String::as_str);
    if text.is_empty() {
        return Ok((config.revision, Vec::new()));
    }
    let read: Result<Vec<WebhookEndpointDto>, _> = protocol::from_json(text.as_bytes());
    let endpoints = read.map_err(|mismatch| anyhow::anyhow!("the service's webhooks cannot be read: {mismatch}"))?;
    Ok((config.revision, endpoints))
}

async fn shown(client: &mut Client, id: &str) -> anyhow::Result<WebhookEndpointDto> {
    let (_, endpoints) = endpoints(client).await?;
    let found = endpoints.into_iter().find(|endpoint| endpoint.id == id);
    found.ok_or_else(|| UsageError::new(id, "it was removed meanwhile").into())
}

fn find(endpoints: &[WebhookEndpointDto], text: &str) -> anyhow::Result<String> {
    let names = endpoints
        .iter()
        .map(|endpoint| (endpoint.id.as_str(), endpoint.name.as_str()));
    ids::named("webhook", names, text)
}

/// Changes the list of endpoints. After a conflict with another client, retries once with the current list.
async fn change<T>(
    client: &mut Client,
    mut change: impl FnMut(&mut Vec<WebhookEndpointDto>) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let mut was_tried = false;
    loop {
        let (expected_revision, mut endpoints) = endpoints(client).await?;
        let changed = change(&mut endpoints)?;
        let value = if endpoints.is_empty() {
            String::new()
        } else {
            serde_json::to_string(&endpoints)?
        };
        let patch = ConfigPatch {
            expected_revision,
            values: [(SETTING.to_owned(), value)].into(),
            unset: Vec::new(),
        };
        match client.call::<ConfigSnapshot>(Method::ConfigPatch, &patch).await {
            Err(RemoteError::Call(error)) if !was_tried && error.application_code() == Some(ErrorCode::Conflict) => {
                was_tried = true;
            }
            Err(error) => return Err(error.into()),
            Ok(_) => return Ok(changed),
        }
    }
}

/// A short id of the name, or of the host, that no other has.
fn new_id(endpoint: &WebhookEndpointDto, others: &[WebhookEndpointDto]) -> String {
    let host = endpoint.url.split('/').nth(2).unwrap_or_default();
    let text = if endpoint.name.is_empty() { host } else { &endpoint.name };
    let plain = text.to_ascii_lowercase();
    let mut words = plain
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty());
    let first = words.next().unwrap_or("webhook").to_owned();
    let mut base = words.fold(first, |id, word| format!("{id}-{word}"));
    base.truncate(40);
    let is_free = |id: &String| others.iter().all(|other| other.id != *id);
    let numbered = (2_u32..).map(|number| format!("{base}-{number}"));
    std::iter::once(base.clone())
        .chain(numbered)
        .find(is_free)
        .expect("there are more numbers than webhooks")
}

fn endpoint_lines(endpoints: &[WebhookEndpointDto]) -> Vec<String> {
    let rows = endpoints.iter().map(|endpoint| {
        [
            endpoint.id.clone(),
            if endpoint.enabled { "on" } else { "off" }.to_owned(),
            endpoint.preset.clone(),
            endpoint.events.join(","),
            endpoint.url.clone(),
            endpoint.name.clone(),
        ]
    });
    table::lines(["ID", "STATE", "PRESET", "EVENTS", "URL", "NAME"], rows)
}

fn status(status: WebhookDeliveryStatus) -> &'static str {
    match status {
        WebhookDeliveryStatus::Pending => "pending",
        WebhookDeliveryStatus::Retrying => "retrying",
        WebhookDeliveryStatus::Delivered => "delivered",
        WebhookDeliveryStatus::Failed => "failed",
        WebhookDeliveryStatus::Dropped => "dropped",
    }
}

fn result(delivery: &WebhookDeliveryDto) -> String {
    match (delivery.error.as_str(), delivery.http_status) {
        ("", 0) => String::new(),
        ("", status) => format!("HTTP {status}"),
        (error, _) => error.to_owned(),
    }
}

fn test_lines(delivery: &WebhookDeliveryDto) -> Vec<String> {
    let mut lines = vec![format!("{}: {}", status(delivery.status), result(delivery))];
    if !delivery.response_body.is_empty() {
        lines.push(delivery.response_body.clone());
    }
    lines
}

fn log_lines(log: &WebhookDeliveries) -> Vec<String> {
    let rows = log.deliveries.iter().map(|delivery| {
        [
            time(delivery.created_at_ms),
            status(delivery.status).to_owned(),
            delivery.attempts.to_string(),
            delivery.event.clone(),
            delivery.endpoint_name.clone(),
            result(delivery),
        ]
    });
    let mut lines = table::lines(["TIME", "STATUS", ">TRIES", "EVENT", "WEBHOOK", "RESULT"], rows);
    if log.dropped > 0 {
        let dropped = usize::try_from(log.dropped).unwrap_or(usize::MAX);
        lines.push(format!(
            "{} dropped: too many waited",
            amount::counted(dropped, "delivery")
        ));
    }
    if log.missed > 0 {
        let missed = usize::try_from(log.missed).unwrap_or(usize::MAX);
        lines.push(format!(
            "{} lost: too many happened at once",
            amount::counted(missed, "event")
        ));
    }
    lines
}

fn time(at_ms: i64) -> String {
    let at = Timestamp::from_millisecond(at_ms).unwrap_or_default();
    at.to_zoned(TimeZone::system())
        .strftime("%Y-%m-%d %H:%M:%S")
        .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint(id: &str, name: &str, url: &str) -> WebhookEndpointDto {
        WebhookEndpointDto {
            id: id.into(),
            name: name.into(),
            url: url.into(),
            ..WebhookEndpointDto::default()
        }
    }

    #[test]
    fn an_id_is_made_of_the_name_or_the_host_and_is_free() {
        let others = [endpoint("team-chat", "", ""), endpoint("team-chat-2", "", "")];
        let id = |name: &str, url: &str| new_id(&endpoint("", name, url), &others);
        assert_eq!(id("Team Chat!", "https://host/x"), "team-chat-3");
        assert_eq!(id("", "https://hooks.example/x"), "hooks-example");
        assert_eq!(id("電影", "https://host/x"), "webhook");
    }
}
