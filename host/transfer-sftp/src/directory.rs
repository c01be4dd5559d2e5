//! The names in directories, for the walk through a directory and those below it.

use egress::Pins;
use transfer::{
    Directory, Failure, SafeUrl, Source,
    failure::FailureKind,
    run::walk::{self, Entry, Tree, too_many},
};

use crate::{
    access::Access,
    packet::Name,
    place::{Place, below, file_name},
    session::Session,
    shared::Shared,
};

/// The most names of one directory, those included that are left out.
const MAX_NAMES: usize = 50_000;

/// Lists the directory at the first URL of `source`.
pub(crate) async fn list(shared: &Shared, source: &Source) -> Result<Directory, Failure> {
    let url = &source.urls[0];
    let place = Place::of(url)?;
    let access = Access::of(&shared.config, source, url)?;
    walk::list(url, || list_once(shared, &access, &place)).await
}

async fn list_once(shared: &Shared, access: &Access, place: &Place) -> Result<Directory, Failure> {
    let pins = Pins::default();
    let url = access.url.as_url();
    let session = Session::open(shared, access, pins.narrow(url, access.reach)).await?;
    let mut login = Login { session, access, place };
    let found = walk::walk(&mut login, place.name()).await?;
    login.session.close().await;
    Ok(found)
}

struct Login<'a> {
    session: Session,
    access: &'a Access,
    place: &'a Place,
}

impl Tree for Login<'_> {
    const UNREADABLE: &'static [FailureKind] = &[FailureKind::NotFound, FailureKind::Forbidden];

    async fn entries(&mut self, components: &[Vec<u8>]) -> Result<Vec<Entry>, Failure> {
        entries(&mut self.session, self.access, &self.place.below(components)).await
    }

    fn url(&self) -> &SafeUrl {
        &self.access.url
    }

    fn below(&self, components: &[&[u8]]) -> Result<SafeUrl, Failure> {
        below(&self.access.url, components)
    }
}

/// The files and directories in the directory `path`. Names that are not one component are left out.
async fn entries(session: &mut Session, access: &Access, path: &[u8]) -> Result<Vec<Entry>, Failure> {
    let handle = session.open_directory(path).await?;
    let (mut found, mut seen) = (Vec::new(), 0);
    while let Some(names) = session.read_directory(&handle).await? {
        seen += names.len().max(1);
        if seen > MAX_NAMES {
            return Err(too_many(
                &access.url,
                format_args!("{MAX_NAMES} names in one directory"),
            ));
        }
        for name in names {
            found.extend(entry(session, path, name).await?);
        }
    }
    session.close_handle(handle).await?;
    Ok(found)
}

async fn entry(session: &mut Session, path: &[u8], name: Name) -> Result<Option<Entry>, Failure> {
    let Some(on_disk) = file_name(&name.bytes) else {
        return Ok(None);
    };
    let mut attributes = name.attributes;
    if attributes.kind().is_none() {
        let slash: &[u8] = if path.ends_with(b"/") { b"" } else { b"/" };
        match session.link_attributes(&[path, slash, &name.bytes].concat()).await {
            Ok(found) => attributes = found,
            Err(failure) if matches!(failure.kind, FailureKind::NotFound | FailureKind::Forbidden) => return Ok(None),
            Err(failure) => return Err(failure),
        }
    }
    Ok(attributes.kind().map(|kind| Entry {
        name: name.bytes.to_vec(),
        on_disk,
        kind,
        size: attributes.size,
    }))
}
