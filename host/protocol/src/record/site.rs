//! Credentials and cookies of sites.

use serde::{Deserialize, Serialize};

/// A site with saved credentials, without the password.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct SiteAuthEntryDto {
    /// `scheme://host[:port]`.
    pub site: String,
    /// The user name.
    #[serde(default)]
    pub username: String,
    /// The user name again, under the name that existing clients read.
    pub user: String,
}

impl SiteAuthEntryDto {
    /// The entry of a site.
    pub fn new(site: impl Into<String>, user: impl Into<String>) -> Self {
        let user = user.into();
        Self {
            site: site.into(),
            username: user.clone(),
            user,
        }
    }
}

/// Params of `daemon.siteAuth.save`.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct SiteAuthSaveRequest {
    /// The site, or any URL of it; a bare host means https.
    #[schema(min_length = 1, example = "https://example.com")]
    pub site: String,
    /// The user name; not empty.
    #[serde(alias = "username")]
    #[schema(min_length = 1, example = "user")]
    pub user: String,
    /// The password.
    #[serde(alias = "password", default)]
    pub pass: String,
}

impl std::fmt::Debug for SiteAuthSaveRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SiteAuthSaveRequest({}, {}, ***)", self.site, self.user)
    }
}

/// A credential with its password, for the local agent only.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SiteAuthCredential {
    /// The site.
    pub site: String,
    /// The user name.
    pub user: String,
    /// The password.
    pub pass: String,
}

impl std::fmt::Debug for SiteAuthCredential {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SiteAuthCredential({}, {}, ***)", self.site, self.user)
    }
}

/// Names a site.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SiteParams {
    /// The site.
    pub site: String,
}

/// Names a site by one of its URLs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SiteUrlParams {
    /// The URL.
    pub url: String,
}

/// A site with stored cookies. Their names and values are not shown.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SiteCookiesDto {
    /// A registered domain, such as `example.com`, or a host.
    pub site: String,
    /// How many cookies are stored.
    pub count: usize,
    /// When the last of them expires, in Unix seconds; absent if one never does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<u64>,
}

/// Params of `daemon.siteCookies.import`.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct SiteCookiesImportRequest {
    /// The export of a browser: the text of a `cookies.txt` (Netscape's format), or the JSON that extensions write. At most
    /// 512 KiB.
    #[schema(min_length = 1, example = "example.com\tFALSE\t/\tTRUE\t0\tsession\tvalue")]
    pub cookies: String,
    /// Take the cookies of this site only, and leave out the others.
    #[serde(default)]
    pub site: String,
}

impl std::fmt::Debug for SiteCookiesImportRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SiteCookiesImportRequest({}, ***)", self.site)
    }
}
