//! The network state that the calls of a plugin share, like a browser profile: cookies, and cached responses. All of it
//! is bounded.

use std::{
    collections::HashMap,
    fmt,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use accounts::BoundSecret;
use cookie_store::{Cookie, CookieDomain, CookieStore, RawCookie, serde::json};
use plugin_host::is_public_suffix;
use ring::digest::{Context, SHA256, SHA256_OUTPUT_LEN};
use tokio::{sync::OnceCell, time::Instant};
use transfer::Secret;
use url::Url;

use super::Response;
use crate::outside::Vault;

/// The longest cookie, as in browsers.
const MAX_COOKIE_BYTES: usize = 4096;

/// The most cookies; a plugin has a handful of sites with a handful each.
const MAX_COOKIES: usize = 300;

/// The longest time that a response is cached.
const MAX_LIFETIME: Duration = Duration::from_hours(1);

/// Cached bodies together.
const MAX_CACHE_BYTES: usize = 4 * 1024 * 1024;

/// The most cached responses of any size.
const MAX_CACHED: usize = 256;

/// Hash of a request with everything that is sent.
pub(crate) type CacheKey = [u8; SHA256_OUTPUT_LEN];

/// A plugin's profile. No lock is held across an await.
#[derive(Default)]
pub struct Profile {
    is_loaded: OnceCell<()>,
    jar: Mutex<Jar>,
    cache: Mutex<Cache>,
}

impl fmt::Debug for Profile {
    /// Cookies are secrets, and so are responses.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Profile").finish_non_exhaustive()
    }
}

#[derive(Default)]
struct Jar {
    cookies: CookieStore,
    /// Whether there are cookies that are not stored in the vault yet.
    has_news: bool,
}

#[derive(Default)]
struct Cache(HashMap<CacheKey, (Instant, Response)>);

impl Profile {
    /// Loads the stored cookies on first use.
    pub(crate) async fn load(&self, vault: &dyn Vault) {
        let load = || async {
            let cookies = vault.cookies().await.unwrap_or_default();
            if let Ok(cookies) = json::load(cookies.as_slice()) {
                self.jar().cookies = cookies;
            }
        };
        self.is_loaded.get_or_init(load).await;
    }

    /// Stores persistent cookies in the vault, if any changed.
    pub(crate) async fn save(&self, vault: &dyn Vault) {
        self.save_as(vault, json::save).await;
    }

    /// The same for the cookies of an account, including those that a browser drops when it is closed: most sites log in
    /// with one of those, and an account outlives the call that made it.
    pub(crate) async fn save_of_account(&self, vault: &dyn Vault) {
        self.save_as(vault, json::save_incl_expired_and_nonpersistent).await;
    }

    async fn save_as(&self, vault: &dyn Vault, write: fn(&CookieStore, &mut Vec<u8>) -> cookie_store::Result<()>) {
        let mut saved = Vec::new();
        {
            let mut jar = self.jar();
            if !std::mem::take(&mut jar.has_news) {
                return;
            }
            if let Err(error) = write(&jar.cookies, &mut saved) {
                tracing::warn!(%error, "the cookies of a plugin cannot be written");
                return;
            }
        }
        vault.keep_cookies(saved).await;
    }

    /// Stores a cookie from a response of `url`, if the site may set it.
    pub(crate) fn set_cookie(&self, text: &str, url: &Url) {
        let Ok(cookie) = RawCookie::parse(text) else { return };
        let is_everybodys = |domain: &str| Some(domain) != url.host_str() && is_public_suffix(domain);
        if text.len() > MAX_COOKIE_BYTES || cookie.domain().is_some_and(is_everybodys) {
            return;
        }
        let mut jar = self.jar();
        let is_known = jar
            .cookies
            .contains_any(url.host_str().unwrap_or_default(), "/", cookie.name());
        if jar.cookies.iter_any().count() >= MAX_COOKIES && !is_known {
            return;
        }
        // The jar refuses cookies for other domains and malformed ones.
        jar.has_news |= jar.cookies.insert_raw(&cookie, url).is_ok();
    }

    /// The cookies for a request to `url`, as they are sent.
    pub(crate) fn cookies_for(&self, url: &Url) -> Vec<String> {
        let jar = self.jar();
        let values = jar.cookies.get_request_values(url);
        values.map(|(name, value)| format!("{name}={value}")).collect()
    }

    /// The values of all cookies, each bound to its site.
    pub(crate) fn cookie_values(&self) -> Vec<BoundSecret> {
        let jar = self.jar();
        let bound = |cookie: &Cookie<'_>| {
            let (CookieDomain::HostOnly(domain) | CookieDomain::Suffix(domain)) = &cookie.domain else {
                return None;
            };
            // Of any connection: a site may repeat a cookie also where it would not be sent.
            let site = Url::parse(&format!("http://{domain}/")).ok()?;
            Some(BoundSecret::captured(Secret::new(cookie.value()), &site, Vec::new()))
        };
        jar.cookies.iter_any().filter_map(bound).collect()
    }

    /// The cached response to this request, unless expired.
    pub(crate) fn cached(&self, key: &CacheKey) -> Option<Response> {
        let cache = self.cache();
        let (until, response) = cache.0.get(key)?;
        (*until > Instant::now()).then(|| response.clone())
    }

    /// Caches a response; nothing else is evicted for it.
    pub(crate) fn keep(&self, key: CacheKey, response: &Response, lifetime: Duration) {
        let (mut cache, now) = (self.cache(), Instant::now());
        cache.0.retain(|_, (until, _)| *until > now);
        cache.0.remove(&key);
        let bytes: usize = cache.0.values().map(|(_, response)| response.body.len()).sum();
        if bytes + response.body.len() <= MAX_CACHE_BYTES && cache.0.len() < MAX_CACHED {
            cache
                .0
                .insert(key, (now + lifetime.min(MAX_LIFETIME), response.clone()));
        }
    }

    fn jar(&self) -> MutexGuard<'_, Jar> {
        self.jar.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn cache(&self) -> MutexGuard<'_, Cache> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The key of a request: its URL and headers.
pub(crate) fn cache_key(url: &Url, headers: &[(String, String)]) -> CacheKey {
    let mut context = Context::new(&SHA256);
    let fields = headers.iter().flat_map(|(name, value)| [name, value]);
    for text in std::iter::once(url.as_str()).chain(fields.map(String::as_str)) {
        context.update(&(text.len() as u64).to_le_bytes());
        context.update(text.as_bytes());
    }
    let digest = context.finish();
    digest.as_ref().try_into().expect("SHA-256 has 32 bytes")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::Answer;

    fn url(text: &str) -> Url {
        text.parse().unwrap()
    }

    #[test]
    fn a_site_cannot_set_cookies_for_others() {
        let profile = Profile::default();
        let from = url("https://a.acme.co.uk/");
        for cookie in [
            "a=1; Domain=co.uk",
            "b=1; Domain=uk",
            "c=1; Domain=evil.com",
            "d=1; Domain=b.acme.co.uk",
            "nonsense",
            &format!("e={}", "x".repeat(MAX_COOKIE_BYTES)),
        ] {
            profile.set_cookie(cookie, &from);
        }
        assert!(profile.cookies_for(&from).is_empty());
        profile.set_cookie("f=1; Domain=acme.co.uk; Secure", &from);
        assert_eq!(profile.cookies_for(&url("https://b.acme.co.uk/")), ["f=1"]);
        for other in ["http://b.acme.co.uk/", "https://evil.co.uk/"] {
            assert!(profile.cookies_for(&url(other)).is_empty(), "{other}");
        }
    }

    #[test]
    fn there_are_only_so_many_cookies() {
        let (profile, from) = (Profile::default(), url("https://acme.com/"));
        (0..2 * MAX_COOKIES).for_each(|number| profile.set_cookie(&format!("c{number}=1"), &from));
        profile.set_cookie("c0=2", &from);
        let cookies = profile.cookies_for(&from);
        assert_eq!(cookies.len(), MAX_COOKIES);
        assert!(cookies.contains(&"c0=2".to_owned()));
    }

    #[tokio::test(start_paused = true)]
    async fn responses_are_kept_for_their_time_and_not_too_many() {
        let profile = Profile::default();
        let response = |len: usize| {
            let answer = Answer {
                status: 200,
                headers: Vec::new(),
                body: vec![0; len].into(),
            };
            Response::new(answer, url("https://a.example/"))
        };
        profile.keep([0; 32], &response(1), Duration::from_secs(5));
        profile.keep([1; 32], &response(1), Duration::MAX / 2);
        profile.keep([2; 32], &response(MAX_CACHE_BYTES), Duration::from_secs(5));
        assert!(profile.cached(&[0; 32]).is_some() && profile.cached(&[2; 32]).is_none());
        tokio::time::advance(Duration::from_secs(5)).await;
        assert!(profile.cached(&[0; 32]).is_none() && profile.cached(&[1; 32]).is_some());
        tokio::time::advance(MAX_LIFETIME).await;
        assert!(profile.cached(&[1; 32]).is_none());
    }

    #[test]
    fn a_request_is_another_one_with_another_field() {
        let field = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let url = url("https://a.example/");
        let keys = [
            cache_key(&url, &[]),
            cache_key(&url, &[field("a", "bc")]),
            cache_key(&url, &[field("ab", "c")]),
            cache_key(&url, &[field("cookie", "a=1")]),
        ];
        let distinct: std::collections::BTreeSet<_> = keys.into_iter().collect();
        assert_eq!(distinct.len(), 4);
    }
}
