//! The options that describe a webhook.

use std::{
    io::Read as _,
    path::{Path, PathBuf},
};

use command::UsageError;
use protocol::WebhookEndpointDto;

use crate::{secret, service::Client, tasks::find};

/// The longest template that is read; the service accepts less.
const MAX_TEMPLATE_BYTES: u64 = 64 * 1024;

/// What is not given stays as it is.
#[derive(Debug, Default, clap::Args)]
pub(super) struct FieldArgs {
    /// Name [default: the host]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Body: json, discord, slack, telegram, ntfy or gotify [default: json]
    #[arg(long, value_name = "PRESET")]
    preset: Option<String>,
    /// Events such as task.completed,queue.drained [default: task.completed,task.failed]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    event: Option<Vec<String>>,
    /// Only events of this queue; "" for all
    #[arg(long, value_name = "QUEUE")]
    queue: Option<String>,
    /// Header, and the file whose first line is its value, - for standard input; an empty file name removes it
    #[arg(long, value_name = "NAME=FILE", value_parser = pair)]
    header: Vec<(String, String)>,
    /// File whose first line is the secret that signs deliveries, - for standard input
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    secret_file: Option<PathBuf>,
    /// Do not sign
    #[arg(long, conflicts_with = "secret_file")]
    no_secret: bool,
    /// File with a body of your own, with fields such as {{task.fileName}}, - for standard input
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    template_file: Option<PathBuf>,
    /// The body of the preset
    #[arg(long, conflicts_with = "template_file")]
    no_template: bool,
    /// Whether it gets anything
    #[arg(long, value_name = "BOOLEAN")]
    enabled: Option<bool>,
    /// The URL may be plain HTTP
    #[arg(long, value_name = "BOOLEAN", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    allow_http: Option<bool>,
    /// The URL may lead to private addresses, such as those of the local network
    #[arg(long, value_name = "BOOLEAN", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    allow_private: Option<bool>,
    /// Use the proxy of the service's settings
    #[arg(long, value_name = "BOOLEAN", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    use_proxy: Option<bool>,
}

/// `NAME=FILE`.
fn pair(text: &str) -> Result<(String, String), &'static str> {
    let (name, file) = text.split_once('=').ok_or("it has no =")?;
    Ok((name.to_owned(), file.to_owned()))
}

impl FieldArgs {
    /// Sets what was given. A queue is looked up by its name.
    pub(super) async fn apply(&self, endpoint: &mut WebhookEndpointDto, client: &mut Client) -> anyhow::Result<()> {
        if let Some(queue) = &self.queue {
            endpoint.queue_id = match queue.as_str() {
                "" => String::new(),
                named => find::queue(client, named).await?.queue_id,
            };
        }
        for (name, file) in &self.header {
            let headers = endpoint.headers.get_or_insert_default();
            headers.retain(|known, _| !known.eq_ignore_ascii_case(name));
            if !file.is_empty() {
                let value = secret::first_line("--header", file.as_ref())?;
                headers.insert(name.clone(), value.expose().to_owned());
            }
        }
        if let Some(file) = &self.secret_file {
            let given = secret::first_line("--secret-file", file)?;
            endpoint.sign_secret = Some(given.expose().to_owned());
        } else if self.no_secret {
            endpoint.sign_secret = Some(String::new());
        }
        if let Some(file) = &self.template_file {
            endpoint.body_template = read(file)?;
        } else if self.no_template {
            endpoint.body_template.clear();
        }
        set(&mut endpoint.name, self.name.as_ref());
        set(&mut endpoint.preset, self.preset.as_ref());
        set(&mut endpoint.events, self.event.as_ref());
        set(&mut endpoint.enabled, self.enabled.as_ref());
        set(&mut endpoint.allow_http, self.allow_http.as_ref());
        set(&mut endpoint.allow_private, self.allow_private.as_ref());
        set(&mut endpoint.use_proxy, self.use_proxy.as_ref());
        Ok(())
    }
}

fn read(path: &Path) -> Result<String, UsageError> {
    let mut text = String::new();
    let read = if path == Path::new("-") {
        std::io::stdin().take(MAX_TEMPLATE_BYTES).read_to_string(&mut text)
    } else {
        std::fs::File::open(path).and_then(|file| file.take(MAX_TEMPLATE_BYTES).read_to_string(&mut text))
    };
    read.map_err(|error| UsageError::new("--template-file", format!("cannot read {}: {error}", path.display())))?;
    Ok(text.trim().to_owned())
}

fn set<T: Clone>(field: &mut T, given: Option<&T>) {
    if let Some(given) = given {
        field.clone_from(given);
    }
}
