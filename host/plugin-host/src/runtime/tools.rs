//! Programs of the user that calls may use, and what a call may have them look at.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

use engine::Proxies;
use futures_util::future::BoxFuture;
use transfer::{GivenBy, SafeUrl};
use url::Url;

use crate::policy::{grant::CallTarget, host::InputHost};

/// The most runs in one call. A page is one; a second one is the page of a file in a list.
const MAX_RUNS: u32 = 3;

/// The programs of the user; implemented by the embedder. Dropping a future ends the program.
pub trait Tools: fmt::Debug + Send + Sync + 'static {
    /// What a page has, in the JSON form that the contract of plugins describes.
    fn discover(&self, page: Page) -> BoxFuture<'_, Result<String, ToolError>>;
}

/// A page to look at.
#[derive(Debug, Clone)]
pub struct Page {
    /// Its URL: http or https, without a login.
    pub url: SafeUrl,
    /// Who gave the URL, on which depends what it may lead to.
    pub given_by: GivenBy,
    /// The proxy for it.
    pub proxy: Option<SafeUrl>,
}

/// Why a program gave no result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ToolError {
    /// It is off, missing, or too old.
    #[error("{0}")]
    NotAllowed(String),
    /// The page, or what it leads to, may not be reached.
    #[error("{0}")]
    Denied(String),
    /// It found nothing.
    #[error("{0}")]
    Failed(String),
    /// As many runs go on as there may be: not the fault of the plugin, and a later call may succeed.
    #[error("{0}")]
    Busy(String),
    /// It used up a limit.
    #[error("{0}")]
    TooMuch(String),
}

/// The programs that one call may use.
#[derive(Debug, Clone)]
pub struct CallTools {
    tools: Arc<dyn Tools>,
    input: Option<InputHost>,
    proxies: Proxies,
    runs: Arc<AtomicU32>,
}

impl CallTools {
    pub(crate) fn new(tools: Arc<dyn Tools>, given: &CallTarget) -> Self {
        Self {
            tools,
            input: given.by_user.then(|| InputHost::given_by_user(given.url.clone())),
            proxies: given.proxies.clone(),
            runs: Arc::default(),
        }
    }

    /// What the page at `url` has. The user gave a URL of the call's own host, if it was the user who gave that; any other
    /// was found, and must be a public one.
    pub async fn discover(&self, url: &str) -> Result<String, ToolError> {
        let denied = |reason: &str| ToolError::Denied(reason.to_owned());
        let parsed = Url::parse(url).map_err(|error| denied(&format!("not a URL: {error}")))?;
        let has_login = !parsed.username().is_empty() || parsed.password().is_some();
        if !matches!(parsed.scheme(), "http" | "https") || has_login {
            return Err(denied("only http and https URLs without user names can be looked at"));
        }
        let is_given = self.input.as_ref().is_some_and(|input| input.covers(&parsed));
        let url = SafeUrl::parse(url).map_err(|error| denied(&error.to_string()))?;
        if self.runs.fetch_add(1, Ordering::Relaxed) >= MAX_RUNS {
            let reason = format!("a call may look at {MAX_RUNS} pages");
            return Err(ToolError::TooMuch(reason));
        }
        let page = Page {
            given_by: if is_given {
                GivenBy::User
            } else {
                GivenBy::Other { user_host: None }
            },
            proxy: self.proxies.for_url(&url),
            url,
        };
        self.tools.discover(page).await
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use futures_util::FutureExt as _;

    use super::*;

    /// Keeps what it was asked.
    #[derive(Debug, Default)]
    struct Asked(Mutex<Vec<Page>>);

    impl Tools for Asked {
        fn discover(&self, page: Page) -> BoxFuture<'_, Result<String, ToolError>> {
            self.0.lock().unwrap().push(page);
            async { Ok("{}".to_owned()) }.boxed()
        }
    }

    fn call(given: &str, by_user: bool) -> (CallTools, Arc<Asked>) {
        let asked = Arc::<Asked>::default();
        let target = CallTarget {
            by_user,
            ..CallTarget::by_user(Url::parse(given).unwrap())
        };
        (CallTools::new(Arc::clone(&asked) as _, &target), asked)
    }

    #[tokio::test]
    async fn only_the_host_that_the_user_gave_counts_as_given() {
        let (tools, asked) = call("http://nas.local:8080/watch?v=1", true);
        tools.discover("http://nas.local:8080/other").await.unwrap();
        tools.discover("http://nas.local:9090/").await.unwrap();
        let (found, asked_too) = call("http://nas.local:8080/watch?v=1", false);
        found.discover("http://nas.local:8080/watch?v=1").await.unwrap();
        let given = |asked: &Asked| -> Vec<_> {
            let pages = asked.0.lock().unwrap();
            pages.iter().map(|page| page.given_by == GivenBy::User).collect()
        };
        assert_eq!(given(&asked), [true, false]);
        assert_eq!(given(&asked_too), [false]);
    }

    #[tokio::test]
    async fn files_logins_and_a_fourth_page_are_refused() {
        let (tools, asked) = call("https://video.test/", true);
        for refused in [
            "file:///etc/passwd",
            "ftp://video.test/",
            "https://me:pw@video.test/",
            "--exec",
        ] {
            let answer = tools.discover(refused).await;
            assert!(matches!(answer, Err(ToolError::Denied(_))), "{refused}: {answer:?}");
        }
        for _ in 0..MAX_RUNS {
            tools.discover("https://video.test/").await.unwrap();
        }
        // Clones count together: a repeated call has a new one.
        let answer = tools.clone().discover("https://video.test/").await;
        assert!(matches!(answer, Err(ToolError::TooMuch(_))), "{answer:?}");
        assert_eq!(asked.0.lock().unwrap().len(), 3);
    }
}
