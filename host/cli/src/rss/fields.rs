//! The options that describe a subscription.

use std::path::PathBuf;

use command::amount;
use protocol::RssSourceDto;

use crate::{secret, service::Client, tasks::find};

/// What is not given stays as it is.
#[derive(Debug, Default, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "these are switches of the command line")]
pub(super) struct FieldArgs {
    /// Name [default: the feed's title]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Download new items whose title has these words: blanks mean and, | means or
    #[arg(short, long, value_name = "PATTERN")]
    include: Option<String>,
    /// Leave items whose title has these words
    #[arg(short, long, value_name = "PATTERN")]
    exclude: Option<String>,
    /// The patterns are regular expressions
    #[arg(long, value_name = "BOOLEAN", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    regex: Option<bool>,
    /// Download everything that is new; needed without --include
    #[arg(long, value_name = "BOOLEAN", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    all: Option<bool>,
    /// Only list new items
    #[arg(long, conflicts_with_all = ["all", "download"])]
    no_download: bool,
    /// Download again what is new, after --no-download
    #[arg(long)]
    download: bool,
    /// Download each episode of a series once
    #[arg(long, value_name = "BOOLEAN", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    episodes: Option<bool>,
    /// Accepted qualities such as "1080p bluray,720p", best first; "" for all
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    quality: Option<Vec<String>>,
    /// Download an episode again in a better quality
    #[arg(long, value_name = "BOOLEAN", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    upgrade: Option<bool>,
    /// Smallest size, such as 100M; 0 for none
    #[arg(long, value_name = "SIZE", value_parser = amount::parse_bytes)]
    min_size: Option<u64>,
    /// Largest size; 0 for none
    #[arg(long, value_name = "SIZE", value_parser = amount::parse_bytes)]
    max_size: Option<u64>,
    /// Directory of its downloads, where the service runs [default: the queue's]
    #[arg(short, long, value_name = "DIR")]
    dir: Option<String>,
    /// Directories below it, of {series}, {season}, {episode}, {title} and {source}
    #[arg(long, value_name = "TEMPLATE")]
    template: Option<String>,
    /// Queue of its downloads; "" for the default one
    #[arg(long, value_name = "QUEUE")]
    queue: Option<String>,
    /// Minutes between two fetches [default: 30]
    #[arg(long, value_name = "MINUTES")]
    interval: Option<u32>,
    /// Downloads that one fetch begins at most [default: 20]
    #[arg(long, value_name = "N")]
    max_per_fetch: Option<u32>,
    /// Create downloads paused
    #[arg(long, value_name = "BOOLEAN", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    paused: Option<bool>,
    /// Whether it is fetched
    #[arg(long, value_name = "BOOLEAN")]
    enabled: Option<bool>,
    /// File whose first line is the Cookie header of the feed and of downloads from its site, - for standard input
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    cookies_file: Option<PathBuf>,
    /// Forget the cookies
    #[arg(long, conflicts_with = "cookies_file")]
    no_cookies: bool,
    /// Downloads carry the feed's site as Referer [default: true]
    #[arg(long, value_name = "BOOLEAN")]
    referer: Option<bool>,
    /// Tell clients the titles of new downloads [default: true]
    #[arg(long, value_name = "BOOLEAN")]
    notify: Option<bool>,
    /// User agent of feed and downloads
    #[arg(long, value_name = "TEXT")]
    user_agent: Option<String>,
    /// Proxy of feed and downloads
    #[arg(long, value_name = "URL", value_hint = clap::ValueHint::Url)]
    proxy: Option<String>,
    /// Links of the feed may lead to private addresses, such as those of the local network
    #[arg(long, value_name = "BOOLEAN", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    allow_private: Option<bool>,
    /// Plugin that reads the feed; plugin list says which do
    #[arg(long, value_name = "PLUGIN")]
    provider: Option<String>,
    /// Field of the plugin, as "svc plugin settings PLUGIN" shows them, several times; an empty value unsets it
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair)]
    provider_field: Vec<(String, String)>,
    /// Secret field of the plugin, and the file whose first line it is, - for standard input
    #[arg(long, value_name = "KEY=FILE", value_parser = pair)]
    provider_secret: Vec<(String, String)>,
}

/// `KEY=VALUE`.
fn pair(text: &str) -> Result<(String, String), &'static str> {
    let (key, value) = text.split_once('=').ok_or("it has no =")?;
    Ok((key.to_owned(), value.to_owned()))
}

impl FieldArgs {
    /// Sets what was given. A queue is looked up by its name.
    pub(super) async fn apply(&self, source: &mut RssSourceDto, client: &mut Client) -> anyhow::Result<()> {
        if let Some(queue) = &self.queue {
            source.queue_id = match queue.as_str() {
                "" => String::new(),
                named => find::queue(client, named).await?.queue_id,
            };
        }
        if self.no_cookies {
            source.cookies.clear();
        }
        if let Some(file) = &self.cookies_file {
            let cookies = secret::first_line("--cookies-file", file)?;
            cookies.expose().clone_into(&mut source.cookies);
        }
        let mut fields = self.provider_field.clone();
        for (key, file) in &self.provider_secret {
            let value = secret::first_line("--provider-secret", file.as_ref())?;
            fields.push((key.clone(), value.expose().to_owned()));
        }
        for (key, value) in fields {
            if value.is_empty() {
                source.provider_config.remove(&key);
            } else {
                source.provider_config.insert(key, value);
            }
        }
        set(&mut source.provider_id, self.provider.as_ref());
        if self.no_download {
            source.auto_download = false;
        } else if self.download || self.all == Some(true) || self.include.is_some() {
            source.auto_download = true;
        }
        set(&mut source.name, self.name.as_ref());
        set(&mut source.include_pattern, self.include.as_ref());
        set(&mut source.exclude_pattern, self.exclude.as_ref());
        set(&mut source.use_regex, self.regex.as_ref());
        set(&mut source.download_all, self.all.as_ref());
        set(&mut source.smart_episode, self.episodes.as_ref());
        let qualities = self
            .quality
            .as_ref()
            .map(|all| all.iter().filter(|one| !one.is_empty()).cloned().collect());
        set(&mut source.qualities, qualities.as_ref());
        set(&mut source.send_referer, self.referer.as_ref());
        set(&mut source.notify_on_download, self.notify.as_ref());
        set(&mut source.upgrade_quality, self.upgrade.as_ref());
        set(&mut source.size_min_bytes, self.min_size.as_ref());
        set(&mut source.size_max_bytes, self.max_size.as_ref());
        set(&mut source.save_dir, self.dir.as_ref());
        set(&mut source.dir_template, self.template.as_ref());
        set(&mut source.interval_minutes, self.interval.as_ref());
        set(&mut source.max_per_fetch, self.max_per_fetch.as_ref());
        set(&mut source.start_paused, self.paused.as_ref());
        set(&mut source.enabled, self.enabled.as_ref());
        set(&mut source.user_agent, self.user_agent.as_ref());
        set(&mut source.proxy_url, self.proxy.as_ref());
        set(&mut source.allow_private, self.allow_private.as_ref());
        Ok(())
    }
}

fn set<T: Clone>(field: &mut T, given: Option<&T>) {
    if let Some(given) = given {
        field.clone_from(given);
    }
}
