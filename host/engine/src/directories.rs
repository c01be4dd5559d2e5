//! Directories of servers as lists of files: a resolver over the transports that can list, beside that of plugins.

use std::{collections::HashMap, sync::Arc};

use transfer::{Directory, DirectoryFile, Failure, FailureKind, SafeUrl, Source, Transport};

use crate::{
    model::{
        group::{LeftOut, LeftOutKind},
        resolution::{Item, ResolverId},
    },
    resolver::{List, ListedFile, ResolveFuture, ResolveRequest, Resolved, Resolver},
};

/// The resolver's name. That of a plugin has an `@`.
const NAME: &str = "directory";

/// The resolver of directories, and the one for everything else.
#[derive(Debug)]
pub(crate) struct Directories {
    transports: HashMap<&'static str, Arc<dyn Transport>>,
    others: Option<Arc<dyn Resolver>>,
}

impl Directories {
    pub(crate) fn new(
        transports: HashMap<&'static str, Arc<dyn Transport>>,
        others: Option<Arc<dyn Resolver>>,
    ) -> Self {
        Self { transports, others }
    }
}

impl Resolver for Directories {
    fn claim(&self, url: &SafeUrl) -> Option<ResolverId> {
        let of_others = self.others.as_ref().and_then(|others| others.claim(url));
        of_others.or_else(|| {
            let transport = self.transports.get(url.scheme())?;
            transport.is_directory(url).then(|| ResolverId::new(NAME))
        })
    }

    fn resolve(&self, request: ResolveRequest) -> ResolveFuture {
        if request.resolution.resolver.as_str() != NAME {
            return match &self.others {
                Some(others) => others.resolve(request),
                None => Box::pin(async {
                    let message = "the plugin that knows this URL is not installed";
                    Err(Failure::new(FailureKind::PluginUnavailable, message).into())
                }),
            };
        }
        let Some(transport) = self.transports.get(request.url.scheme()) else {
            return Box::pin(async { Ok(Resolved::Pass) });
        };
        let proxy = request.proxies.for_url(&request.url);
        let listing = transport.list(Source {
            given_by: request.given_by,
            request: request.request,
            netrc: request.netrc.filter(|_| request.url.credentials().is_none()),
            proxy,
            ignore_tls_errors: request.ignore_tls_errors,
            ..Source::new(request.url)
        });
        Box::pin(async move { Ok(Resolved::List(list(listing.await?))) })
    }
}

fn list(directory: Directory) -> List {
    let mut left_out = Vec::new();
    let unreadable = directory
        .unreadable
        .into_iter()
        .map(|name| (LeftOutKind::Unreadable, name));
    let too_deep = directory.too_deep.into_iter().map(|name| (LeftOutKind::TooDeep, name));
    for (kind, name) in unreadable.chain(too_deep) {
        LeftOut { kind, name, count: 0 }.add_to(&mut left_out);
    }
    List {
        resolver: ResolverId::new(NAME),
        name: directory.name.map(|name| name.as_str().to_owned()).unwrap_or_default(),
        files: directory.files.into_iter().filter_map(file).collect(),
        left_out,
    }
}

fn file(file: DirectoryFile) -> Option<ListedFile> {
    let DirectoryFile {
        url,
        name,
        directories,
        size_bytes,
    } = file;
    Some(ListedFile {
        item: Item::new(name.as_str(), None).ok()?,
        url: Some(url),
        name,
        directories,
        size_bytes,
        checksum: None,
    })
}
