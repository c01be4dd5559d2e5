//! `daemon.siteCookies.*`

use std::collections::BTreeMap;

use engine::{CookieSite, CookieSummary};
use plugin_host::registrable;
use protocol::{Method, Request, RpcError, SiteCookiesDto, SiteCookiesImportRequest, SiteParams};
use transfer::{Cookie, CookieJar};

use crate::{
    call::answer::{Answer, done, read, wrote},
    refusal::{Refuse as _, invalid},
    service::Service,
    view,
};

/// An export of one site has a few KiB. The frames of `/rpc` have at most 1 MiB, and the quotes of JSON count twice there.
const MAX_IMPORT_BYTES: usize = 512 * 1024;

/// Cookies of a site: they are sent together, and servers accept 8 to 64 KiB of headers.
const MAX_SITE_BYTES: usize = 64 * 1024;

pub(super) async fn call(service: &Service, method: Method, request: &Request) -> Result<Answer, RpcError> {
    let engine = &service.engine;
    match method {
        Method::SiteCookiesList => {
            let sites = engine.cookie_sites().await.refused()?;
            let entries: Vec<_> = sites.iter().map(entry).collect();
            read(&entries)
        }
        Method::SiteCookiesImport => {
            let params: SiteCookiesImportRequest = request.params()?;
            let sites = parse(&params)?;
            let entries: Vec<_> = sites
                .iter()
                .map(|(site, jar)| entry(&CookieSummary::of(site, jar)))
                .collect();
            engine.cookies_save(sites).await.refused()?;
            wrote(&entries)
        }
        Method::SiteCookiesDelete => {
            let params: SiteParams = request.params()?;
            let site = params.site.parse::<CookieSite>().refused()?;
            engine.cookies_delete(site).await.refused()?;
            done()
        }
        Method::SiteCookiesClear => {
            engine.cookies_clear().await.refused()?;
            done()
        }
        _ => Err(RpcError::method_not_found(method.name())),
    }
}

fn entry(summary: &CookieSummary) -> SiteCookiesDto {
    SiteCookiesDto {
        site: summary.site.to_string(),
        count: summary.count,
        expires_at: summary.expires,
    }
}

/// The cookies of an export, by site.
fn parse(params: &SiteCookiesImportRequest) -> Result<Vec<(CookieSite, CookieJar)>, RpcError> {
    let refuse = |message: String| Err(invalid("cookies", message));
    if params.cookies.len() > MAX_IMPORT_BYTES {
        return refuse(format!(
            "the export has more than {} KiB; export the cookies of one site only",
            MAX_IMPORT_BYTES >> 10
        ));
    }
    let now = view::now_millis().max(0) / 1000;
    let jar =
        CookieJar::parse(&params.cookies, now.unsigned_abs()).map_err(|error| invalid("cookies", error.to_string()))?;
    let only = match params.site.trim() {
        "" => None,
        site => Some(site.parse::<CookieSite>().refused()?),
    };
    let mut by_site: BTreeMap<&str, Vec<&Cookie>> = BTreeMap::new();
    for cookie in jar.iter() {
        if let Some(site) = site_of(cookie).filter(|site| only.as_ref().is_none_or(|only| only.as_str() == *site)) {
            by_site.entry(site).or_default().push(cookie);
        }
    }
    if by_site.is_empty() {
        return refuse(
            "the export has no cookie that can be stored: they have expired, or are of other sites".to_owned(),
        );
    }
    let mut sites = Vec::new();
    for (site, cookies) in by_site {
        if cookies.iter().map(|cookie| cookie.pair().len()).sum::<usize>() > MAX_SITE_BYTES {
            return refuse(format!(
                "the cookies of {site} have more than {} KiB together",
                MAX_SITE_BYTES >> 10
            ));
        }
        sites.push((
            site.parse::<CookieSite>().refused()?,
            cookies.into_iter().cloned().collect(),
        ));
    }
    Ok(sites)
}

/// The site of a cookie: the domain that its owner registered, because logins set cookies of several hosts below it, which
/// are exported and removed together. A host that is no such name (an address, `localhost`, a public suffix) is a site of
/// its own. `None` for a cookie of everybody below a public suffix: no browser accepts one.
fn site_of(cookie: &Cookie) -> Option<&str> {
    let domain = &*cookie.domain;
    let is_address = domain.starts_with('[') || domain.parse::<std::net::Ipv4Addr>().is_ok();
    match registrable(domain) {
        Some(site) if !is_address => Some(site),
        _ => (!cookie.includes_subdomains).then_some(domain),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(cookies: &str, site: &str) -> Result<Vec<(String, usize)>, String> {
        let params = SiteCookiesImportRequest {
            cookies: cookies.to_owned(),
            site: site.to_owned(),
        };
        let sites = parse(&params).map_err(|error| error.message)?;
        let counts = sites.iter().map(|(site, jar)| (site.to_string(), jar.iter().count()));
        Ok(counts.collect())
    }

    #[test]
    fn cookies_are_kept_by_the_domain_that_somebody_registered() {
        let domains = [
            ".example.co.uk",
            "login.example.co.uk",
            "me.github.io",
            ".co.uk",
            "127.0.0.1",
            "[::1]",
            "localhost",
            ".intranet",
        ];
        let text = domains.map(|domain| format!("{domain}\tFALSE\t/\tFALSE\t0\tname\tvalue\n"));
        let text = text.concat();
        let expected = [
            ("127.0.0.1", 1),
            ("[::1]", 1),
            ("example.co.uk", 2),
            ("localhost", 1),
            ("me.github.io", 1),
        ];
        assert_eq!(
            parsed(&text, "").unwrap(),
            expected.map(|(site, count)| (site.to_owned(), count))
        );
        assert_eq!(
            parsed(&text, "Example.co.uk").unwrap(),
            [("example.co.uk".to_owned(), 2)]
        );
        assert!(parsed(&text, "other.test").unwrap_err().contains("other sites"));
        assert!(parsed(".co.uk\tTRUE\t/\tFALSE\t0\tn\tv", "").is_err());
    }

    #[test]
    fn what_is_too_large_is_refused_without_its_content() {
        let long = "v".repeat(4000);
        let lines = (0..20).map(|number| format!("a.test\tFALSE\t/\tFALSE\t0\tn{number}\t{long}\n"));
        let message = parsed(&lines.collect::<Vec<_>>().concat(), "").unwrap_err();
        assert!(message.contains("a.test") && !message.contains("vvv"), "{message}");
        assert!(
            parsed(&"#".repeat(MAX_IMPORT_BYTES + 1), "")
                .unwrap_err()
                .contains("512 KiB")
        );
        assert!(parsed("", "").is_err());
    }
}
