//! The user's cookies and headers for the site of a task.

use accounts::BoundSecret;
use plugin_host::runtime::cookie_values;
use transfer::{RequestOptions, Secret};
use url::Url;

use super::{
    account::{MIN_COOKIE_BYTES, MIN_SECRET_BYTES},
    header,
};

/// The user's cookies and headers for a task's own site. They are only sent there, and the plugin never sees them.
#[derive(Debug, Clone)]
pub struct TaskSite {
    url: Url,
    request: RequestOptions,
}

impl TaskSite {
    /// Takes them from the options for `url`.
    pub fn new(url: Url, request: RequestOptions) -> Self {
        Self { url, request }
    }

    /// The secrets among what the user gave, by name, if one of `hops` may have been told them. Short cookies and fields
    /// are not, because pages have such words anyway, nor fields that describe a program instead of its user.
    pub(crate) fn secrets_for(&self, hops: &[Url]) -> Vec<(String, BoundSecret)> {
        if !hops.iter().any(|hop| self.covers(hop)) {
            return Vec::new();
        }
        let mut secrets: Vec<(String, &str)> = Vec::new();
        let cookies = cookie_values(self.request.cookies.expose());
        secrets.extend(cookies.map(|value| ("cookie".to_owned(), value)));
        for (name, value) in &self.request.headers {
            let name = name.to_ascii_lowercase();
            if header::may_identify(&name) {
                let value = value.expose();
                // `Bearer TOKEN`
                let credential = value.split_once(' ').filter(|_| name == "authorization");
                secrets.extend(credential.map(|(_, credential)| (name.clone(), credential)));
                secrets.push((name, value));
            }
        }
        secrets.retain(|(_, value)| value.len() >= MIN_COOKIE_BYTES);
        let mut secrets: Vec<_> = secrets
            .into_iter()
            .map(|(name, value)| (name, Secret::new(value)))
            .collect();
        if let Some(login) = &self.request.credentials {
            let password = login.password.expose();
            let both = Secret::new(format!("{}:{password}", login.user));
            let given = [("password", login.password.clone()), ("login", both)];
            let given = given
                .into_iter()
                .filter(|(_, value)| value.expose().len() >= MIN_SECRET_BYTES);
            secrets.extend(given.map(|(name, value)| (name.to_owned(), value)));
        }
        let bound = |value| BoundSecret::captured(value, &self.url, Vec::new());
        secrets.into_iter().map(|(name, value)| (name, bound(value))).collect()
    }

    /// Whether `url` is on the task's own host, over a connection no less safe.
    fn covers(&self, url: &Url) -> bool {
        let is_upgrade = url.scheme() == "https"
            && self.url.scheme() == "http"
            && url.host() == self.url.host()
            && url.port().is_none()
            && self.url.port().is_none();
        url.origin() == self.url.origin() || is_upgrade
    }

    /// The cookies and fields for a request to `url`: nothing unless that is on the task's own host, over a connection
    /// no less safe.
    pub(crate) fn fields_for(&self, url: &Url) -> (Option<&str>, Vec<(String, String)>) {
        if !self.covers(url) {
            return (None, Vec::new());
        }
        let given = self.request.headers.iter();
        let given = given.filter(|(name, value)| header::guest_may_send(name) && header::is_value(value.expose()));
        let mut fields: Vec<_> = given
            .map(|(name, value)| (name.to_ascii_lowercase(), value.expose().to_owned()))
            .collect();
        if let Some(login) = &self.request.credentials {
            fields.retain(|(name, _)| name != "authorization");
            fields.push(("authorization".to_owned(), login.basic()));
        }
        let known = [
            ("referer", &self.request.referrer),
            ("user-agent", &self.request.user_agent),
        ];
        let known = known
            .into_iter()
            .filter(|(_, value)| !value.is_empty() && header::is_value(value));
        fields.extend(known.map(|(name, value)| (name.to_owned(), value.clone())));
        let cookies = self.request.cookies.expose();
        (
            Some(cookies).filter(|cookies| !cookies.is_empty() && header::is_value(cookies)),
            fields,
        )
    }
}
