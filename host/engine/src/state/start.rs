//! The parameters of a run: the task's own options, then its queue's, then the settings'.

use std::sync::Arc;

use transfer::{ConnectionPlan, CookieJar, GivenBy, Purpose, SafeUrl, Source, Target, UserHost};

use crate::{
    model::{
        id::RunId,
        proxy::ProxyChoice,
        site::{CookieSite, Site},
        spec::TaskSpec,
        task::Task,
    },
    proxies::Proxies,
    resolver::Link,
    state::{model::State, step::Start},
};

impl State {
    /// The run for `task`, with the resolver's `link` if it has one.
    pub(super) fn start(&self, task: &Task, run: RunId, link: Option<&Link>) -> Start {
        let settings = &self.settings.settings;
        let queue = &self.queue_states[&task.queue].queue.spec;
        let spec = task.spec();
        let target = Target {
            directory: task.save_dir.to_path_buf(),
            name: spec.file_name.clone().or_else(|| link?.file_name.clone()),
            on_conflict: spec.on_conflict.unwrap_or(settings.file_exists_behavior),
            reserved: task.path.as_deref().map(ToOwned::to_owned),
            adopt: spec.adopt,
            check_integrity: spec.check_integrity,
            use_server_time: spec.use_server_time.unwrap_or(settings.use_server_time),
        };
        let usual = ConnectionPlan::default();
        let ceiling = Some(settings.auto_max_connections)
            .filter(|ceiling| *ceiling > 0)
            .unwrap_or(usual.per_host);
        let mut connections = ConnectionPlan {
            segments: [spec.segments, queue.default_segments, settings.default_segments]
                .into_iter()
                .find(|segments| *segments > 0)
                .unwrap_or(0),
            per_host: spec.max_connections.unwrap_or(ceiling),
            min_split_bytes: spec.min_split_bytes.unwrap_or(usual.min_split_bytes),
            lowest_bytes_per_second: spec.lowest_speed_bytes,
        };
        let mut retry = spec.retry.unwrap_or_default();
        retry.not_found = spec.max_not_found;
        if let Some(link) = link {
            connections.per_host = connections
                .per_host
                .min(link.max_connections.unwrap_or(u16::MAX))
                .max(1);
            if link.is_single_use || link.is_whole_only {
                (connections.segments, connections.per_host) = (1, 1);
            }
            if link.is_single_use {
                retry.attempts = Some(1);
            }
        }
        Start {
            task: task.id,
            run,
            queue: task.queue,
            task_speeds: spec.speeds(),
            queue_speeds: queue.speeds(),
            purpose: match &task.seeding {
                Some(seeding) if seeding.recheck.is_some() => Purpose::Recheck,
                _ => Purpose::Download,
            },
            uploaded_bytes: task.seeding.as_ref().map_or(0, |seeding| seeding.uploaded_bytes),
            retry,
            source: match link {
                Some(link) => self.source_at(task, spec, link),
                None => self.source(task, spec),
            },
            target,
            connections,
            done_bytes: task.done_bytes,
            total_bytes: task.total_bytes,
        }
    }

    /// The source for a run of `task`. Each origin gets its own stored login only; for the first URL, the task's own
    /// credentials take precedence.
    pub(super) fn source(&self, task: &Task, spec: TaskSpec) -> Source {
        let settings = &self.settings.settings;
        let url = &spec.urls[0];
        let mut request = spec.request;
        if request.user_agent.is_empty() {
            let of_queue = &self.queue_states[&task.queue].queue.spec.default_user_agent;
            request.user_agent = if of_queue.is_empty() {
                settings.global_user_agent.clone()
            } else {
                of_queue.clone()
            };
        }
        let is_signed = request
            .headers
            .iter()
            .any(|(name, _)| name.eq_ignore_ascii_case("authorization"));
        if request.credentials.is_none() && !is_signed && url.credentials().is_none() {
            request.credentials = Site::of(url).and_then(|site| self.site_credentials(&site));
        }
        let with_cookies = spec.urls.iter().filter_map(|url| {
            let (_, jar) = self.cookies_of(url)?;
            Some((url.origin(), Arc::clone(jar)))
        });
        let site_cookies = with_cookies.collect();
        let owner = url.origin();
        let logins = spec.urls.iter().filter_map(|mirror| {
            let origin = Some(mirror.origin()).filter(|origin| *origin != owner)?;
            Some((origin, self.site_credentials(&Site::of(mirror)?)?))
        });
        Source {
            logins: logins.collect(),
            site_cookies,
            netrc: self
                .netrc
                .clone()
                .filter(|_| !spec.no_netrc && spec.given_by == GivenBy::User),
            proxy: self.proxy(&spec.proxy, url),
            urls: spec.urls,
            given_by: spec.given_by,
            request,
            ignore_tls_errors: spec.ignore_tls_errors,
            checksum: spec.checksum,
            pieces: spec.pieces,
            promised_size: spec.promised_size,
            promised_type: spec.promised_type,
            segments: Arc::default(),
            torrent: spec.torrent,
            follows_torrents: spec.follow_torrent.unwrap_or(settings.follows_torrents),
        }
    }

    /// The proxy for `url`.
    pub(super) fn proxy(&self, choice: &ProxyChoice, url: &SafeUrl) -> Option<SafeUrl> {
        self.proxies(choice).for_url(url)
    }

    /// The proxies for a resolver's requests on behalf of a task.
    pub(super) fn proxies(&self, choice: &ProxyChoice) -> Proxies {
        let settings = Arc::clone(&self.settings.settings);
        Proxies::new(choice.clone(), settings, Arc::clone(&self.system_proxy))
    }

    /// The source of a task's bytes at `link`. The user's secrets stay with the task's own site; the link's headers go
    /// to the origin of its first URL only.
    pub(super) fn source_at(&self, task: &Task, mut spec: TaskSpec, link: &Link) -> Source {
        let url = &link.urls[0];
        let user_host = UserHost::typed(task.url().as_url());
        spec.given_by = match spec.given_by {
            GivenBy::User => GivenBy::Other { user_host },
            other @ GivenBy::Other { .. } => other,
        };
        if url.origin() == task.url().origin() {
            let in_url = || task.url().credentials();
            spec.request.credentials = spec.request.credentials.or_else(in_url);
        } else {
            spec.request.drop_secrets();
            spec.request.headers.clear();
        }
        spec.request.headers.extend(link.headers.iter().cloned());
        spec.request.method = None;
        spec.request.body = None;
        spec.checksum = spec.checksum.or_else(|| link.checksum.clone());
        spec.promised_size = spec.promised_size.or(link.promised_size);
        spec.urls.clone_from(&link.urls);
        let mut source = Source {
            segments: Arc::clone(&link.segments),
            ..self.source(task, spec)
        };
        // The resolver chose the URL: it must not choose whose cookies are sent. Those of the task's own site may be.
        let own = self.cookies_of(task.url()).map(|(_, jar)| jar);
        source
            .site_cookies
            .retain(|_, jar| own.is_some_and(|own| Arc::ptr_eq(own, jar)));
        source
    }

    /// The stored cookies of the site of `url`. Sites are names that somebody registered, so at most one name above the
    /// host is one; a jar that does not belong to the host has no cookie that matches.
    fn cookies_of(&self, url: &SafeUrl) -> Option<(&CookieSite, &Arc<CookieJar>)> {
        if !matches!(url.scheme(), "http" | "https") {
            return None;
        }
        let host = url.as_url().host_str()?;
        let parents = host.match_indices('.').map(|(dot, _)| &host[dot + 1..]);
        std::iter::once(host)
            .chain(parents)
            .find_map(|name| self.cookies.get_key_value(name))
    }
}
