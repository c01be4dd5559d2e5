//! `daemon.siteAuth.*`

use engine::Site;
use protocol::{
    ErrorCode, Method, Request, RpcError, SiteAuthCredential, SiteAuthEntryDto, SiteAuthSaveRequest, SiteParams,
    SiteUrlParams,
};
use transfer::{Credentials, SafeUrl, Secret};

use crate::{
    call::answer::{Answer, Peer, read, wrote},
    refusal::{Refuse as _, invalid},
    service::Service,
};

pub(super) async fn call(
    service: &Service,
    method: Method,
    request: &Request,
    peer: &Peer,
) -> Result<Answer, RpcError> {
    let engine = &service.engine;
    match method {
        Method::SiteAuthList => read(&entries(service).await?),
        Method::SiteAuthGet => {
            let params: SiteParams = request.params()?;
            let site: Site = params.site.parse::<Site>().refused()?;
            let url = SafeUrl::parse(site.as_str()).map_err(|error| invalid("site", error.to_string()))?;
            credential(service, &url, peer).await
        }
        Method::SiteAuthMatch => {
            let params: SiteUrlParams = request.params()?;
            let url = SafeUrl::parse(&params.url).map_err(|error| invalid("url", error.to_string()))?;
            credential(service, &url, peer).await
        }
        Method::SiteAuthSave => {
            let params: SiteAuthSaveRequest = request.params()?;
            let site: Site = params.site.parse::<Site>().refused()?;
            if params.user.is_empty() {
                return Err(invalid("user", "user must not be empty"));
            }
            for (name, text) in [("user", &params.user), ("pass", &params.pass)] {
                if text.contains(char::is_control) {
                    let why = format!("{name} must not contain line ends or other control characters");
                    return Err(invalid(name, why));
                }
            }
            let entry = SiteAuthEntryDto::new(site.to_string(), params.user.clone());
            let credentials = Credentials {
                user: params.user,
                password: Secret::new(params.pass),
            };
            engine.site_save(site, credentials).await.refused()?;
            wrote(&entry)
        }
        Method::SiteAuthDelete => {
            let params: SiteParams = request.params()?;
            engine
                .site_delete(params.site.parse::<Site>().refused()?)
                .await
                .refused()?;
            wrote(&entries(service).await?)
        }
        Method::SiteAuthClear => {
            engine.site_clear().await.refused()?;
            wrote(&entries(service).await?)
        }
        _ => Err(RpcError::method_not_found(method.name())),
    }
}

async fn entries(service: &Service) -> Result<Vec<SiteAuthEntryDto>, RpcError> {
    let sites = service.engine.sites().await.refused()?;
    Ok(sites
        .into_iter()
        .map(|(site, user)| SiteAuthEntryDto::new(site.to_string(), user))
        .collect())
}

/// The stored credential that a request to `url` would use, with its password, or null. Only the agent may read it.
async fn credential(service: &Service, url: &SafeUrl, peer: &Peer) -> Result<Answer, RpcError> {
    if !peer.is_local_agent {
        return Err(RpcError::application(
            ErrorCode::Unauthorized,
            "only the agent of this machine may read passwords",
        ));
    }
    let found = service.engine.site_match(url).await.refused()?;
    let site = Site::of(url);
    let credential = found.zip(site).map(|(credentials, site)| SiteAuthCredential {
        site: site.to_string(),
        user: credentials.user,
        pass: credentials.password.expose().to_owned(),
    });
    read(&credential)
}
