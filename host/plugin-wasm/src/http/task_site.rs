//! The user's cookies and headers for the site of a task.

use transfer::RequestOptions;
use url::Url;

use super::header;

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

    /// The cookies and fields for a request to `url`: nothing unless that is on the task's own host, over a connection
    /// no less safe.
    pub(crate) fn fields_for(&self, url: &Url) -> (Option<&str>, Vec<(String, String)>) {
        let is_upgrade = url.scheme() == "https"
            && self.url.scheme() == "http"
            && url.host() == self.url.host()
            && url.port().is_none()
            && self.url.port().is_none();
        if url.origin() != self.url.origin() && !is_upgrade {
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
