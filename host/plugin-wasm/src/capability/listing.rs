//! The listing that a resolver fills in.

use plugin_host::{Facts, FileKind, LeftOutKind};
use wasmtime::component::Resource;

use crate::{
    capability::{bindings::svc::plugin::listing, state::CallState},
    listing::{EntryRef, LinkBuilder, ListingHandle},
};

impl listing::Host for CallState {}

impl CallState {
    fn facts(&mut self, entry: &Resource<EntryRef>) -> wasmtime::Result<&mut Facts> {
        let at = *self.table.get(entry)?;
        Ok(self.listing.facts_mut(at))
    }
}

impl listing::HostListing for CallState {
    fn title(&mut self, _: Resource<ListingHandle>, s: String) -> wasmtime::Result<()> {
        let title = self.listing.text(s)?;
        self.listing.listing_mut().title = Some(title);
        Ok(())
    }

    fn description(&mut self, _: Resource<ListingHandle>, s: String) -> wasmtime::Result<()> {
        let description = self.listing.text(s)?;
        self.listing.listing_mut().description = Some(description);
        Ok(())
    }

    fn cover(&mut self, _: Resource<ListingHandle>, url: String) -> wasmtime::Result<()> {
        let cover = self.listing.url("cover", &url)?;
        self.listing.listing_mut().cover = Some(cover);
        Ok(())
    }

    fn add(&mut self, _: Resource<ListingHandle>, id: String, name: String) -> wasmtime::Result<Resource<EntryRef>> {
        let entry = self.listing.add(id, &name)?;
        Ok(self.table.push(EntryRef { entry, variant: None })?)
    }

    fn next_page(&mut self, _: Resource<ListingHandle>, token: String) -> wasmtime::Result<()> {
        let token = self.listing.text(token)?;
        self.listing.listing_mut().next_page = Some(token);
        Ok(())
    }

    fn ask_password(&mut self, _: Resource<ListingHandle>, prompt: String) -> wasmtime::Result<()> {
        let prompt = self.listing.text(prompt)?;
        self.listing.listing_mut().password_prompt = Some(prompt);
        Ok(())
    }

    fn left_out(
        &mut self,
        _: Resource<ListingHandle>,
        why: listing::LeftOut,
        name: String,
        count: u32,
    ) -> wasmtime::Result<()> {
        self.listing.leave_out(why.into(), &name, count);
        Ok(())
    }

    fn drop(&mut self, handle: Resource<ListingHandle>) -> wasmtime::Result<()> {
        self.table.delete(handle)?;
        Ok(())
    }
}

impl listing::HostEntry for CallState {
    fn kind(&mut self, entry: Resource<EntryRef>, k: listing::FileKind) -> wasmtime::Result<()> {
        self.facts(&entry)?.kind = k.into();
        Ok(())
    }

    fn dir(&mut self, entry: Resource<EntryRef>, relative: String) -> wasmtime::Result<()> {
        let at = *self.table.get(&entry)?;
        Ok(self.listing.set_folder(at, &relative)?)
    }

    fn size(&mut self, entry: Resource<EntryRef>, bytes: u64) -> wasmtime::Result<()> {
        self.facts(&entry)?.size = Some(bytes);
        Ok(())
    }

    fn modified_ms(&mut self, entry: Resource<EntryRef>, t: u64) -> wasmtime::Result<()> {
        self.facts(&entry)?.modified_ms = Some(t);
        Ok(())
    }

    fn checksum(&mut self, entry: Resource<EntryRef>, alg: String, hex: String) -> wasmtime::Result<()> {
        let at = *self.table.get(&entry)?;
        Ok(self.listing.add_checksum(at, &alg, &hex)?)
    }

    fn media_type(&mut self, entry: Resource<EntryRef>, s: String) -> wasmtime::Result<()> {
        let media_type = self.listing.text(s)?;
        self.facts(&entry)?.media_type = Some(media_type);
        Ok(())
    }

    fn thumbnail(&mut self, entry: Resource<EntryRef>, url: String) -> wasmtime::Result<()> {
        let at = *self.table.get(&entry)?;
        let thumbnail = self.listing.url("thumbnail", &url)?;
        self.listing.entry_mut(at).thumbnail = Some(thumbnail);
        Ok(())
    }

    fn duration_ms(&mut self, entry: Resource<EntryRef>, ms: u64) -> wasmtime::Result<()> {
        self.facts(&entry)?.duration_ms = Some(ms);
        Ok(())
    }

    fn default_selected(&mut self, entry: Resource<EntryRef>, b: bool) -> wasmtime::Result<()> {
        let at = *self.table.get(&entry)?;
        self.listing.entry_mut(at).selected = Some(b);
        Ok(())
    }

    fn add_variant(
        &mut self,
        entry: Resource<EntryRef>,
        id: String,
        label: String,
        rank: i32,
    ) -> wasmtime::Result<Resource<EntryRef>> {
        let at = *self.table.get(&entry)?;
        let variant = self.listing.add_variant(at, id, label, rank)?;
        Ok(self.table.push(variant)?)
    }

    fn link(&mut self, entry: Resource<EntryRef>, l: Resource<LinkBuilder>) -> wasmtime::Result<()> {
        let at = *self.table.get(&entry)?;
        let link = self.table.delete(l)?;
        Ok(self.listing.set_link(at, link)?)
    }

    fn drop(&mut self, entry: Resource<EntryRef>) -> wasmtime::Result<()> {
        self.table.delete(entry)?;
        Ok(())
    }
}

impl listing::HostLink for CallState {
    fn new(&mut self, url: String) -> wasmtime::Result<Resource<LinkBuilder>> {
        let link = LinkBuilder::new(&url, &self.limits.output)?;
        Ok(self.table.push(link)?)
    }

    fn mirror(&mut self, link: Resource<LinkBuilder>, url: String) -> wasmtime::Result<()> {
        Ok(self.table.get_mut(&link)?.add_mirror(&url, &self.limits.output)?)
    }

    fn header(&mut self, link: Resource<LinkBuilder>, name: String, value: String) -> wasmtime::Result<()> {
        Ok(self
            .table
            .get_mut(&link)?
            .add_header(&name, &value, &self.limits.output)?)
    }

    fn secret_header(&mut self, link: Resource<LinkBuilder>, name: String, template: String) -> wasmtime::Result<()> {
        Ok(self
            .table
            .get_mut(&link)?
            .add_secret_header(&name, &template, &self.limits.output)?)
    }

    fn account(&mut self, link: Resource<LinkBuilder>, slot: String) -> wasmtime::Result<()> {
        let limits = &self.limits.output;
        Ok(self.table.get_mut(&link)?.set_account(slot, limits)?)
    }

    fn range_supported(&mut self, link: Resource<LinkBuilder>, b: bool) -> wasmtime::Result<()> {
        self.table.get_mut(&link)?.link_mut().supports_ranges = Some(b);
        Ok(())
    }

    fn single_use(&mut self, link: Resource<LinkBuilder>, b: bool) -> wasmtime::Result<()> {
        self.table.get_mut(&link)?.link_mut().is_single_use = b;
        Ok(())
    }

    fn expires_ms(&mut self, link: Resource<LinkBuilder>, t: u64) -> wasmtime::Result<()> {
        self.table.get_mut(&link)?.link_mut().expires_ms = Some(t);
        Ok(())
    }

    fn max_connections(&mut self, link: Resource<LinkBuilder>, n: u32) -> wasmtime::Result<()> {
        self.table.get_mut(&link)?.link_mut().max_connections = Some(n);
        Ok(())
    }

    fn pair_audio(&mut self, link: Resource<LinkBuilder>, l: Resource<LinkBuilder>) -> wasmtime::Result<()> {
        let audio = self.table.delete(l)?;
        Ok(self.table.get_mut(&link)?.set_audio(audio, &self.limits.output)?)
    }

    fn manifest(&mut self, link: Resource<LinkBuilder>, kind: String) -> wasmtime::Result<()> {
        Ok(self.table.get_mut(&link)?.set_manifest(&kind)?)
    }

    fn segment(&mut self, link: Resource<LinkBuilder>, url: String, part: Option<(u64, u64)>) -> wasmtime::Result<()> {
        Ok(self
            .table
            .get_mut(&link)?
            .add_segment(&url, part, &self.limits.output)?)
    }

    fn segment_key_at(&mut self, link: Resource<LinkBuilder>, url: String, iv: Vec<u8>) -> wasmtime::Result<()> {
        Ok(self.table.get_mut(&link)?.set_key_at(&url, &iv, &self.limits.output)?)
    }

    fn segment_key(&mut self, link: Resource<LinkBuilder>, key: Vec<u8>, iv: Vec<u8>) -> wasmtime::Result<()> {
        Ok(self.table.get_mut(&link)?.set_key(&key, &iv)?)
    }

    fn no_segment_key(&mut self, link: Resource<LinkBuilder>) -> wasmtime::Result<()> {
        self.table.get_mut(&link)?.set_no_key();
        Ok(())
    }

    fn drop(&mut self, link: Resource<LinkBuilder>) -> wasmtime::Result<()> {
        self.table.delete(link)?;
        Ok(())
    }
}

impl From<listing::LeftOut> for LeftOutKind {
    fn from(why: listing::LeftOut) -> Self {
        match why {
            listing::LeftOut::Unreadable => Self::Unreadable,
            listing::LeftOut::TooManyFiles => Self::TooManyFiles,
            listing::LeftOut::TooManyFolders => Self::TooManyFolders,
            listing::LeftOut::TooDeep => Self::TooDeep,
        }
    }
}

impl From<listing::FileKind> for FileKind {
    fn from(kind: listing::FileKind) -> Self {
        match kind {
            listing::FileKind::File => Self::File,
            listing::FileKind::Folder => Self::Folder,
            listing::FileKind::VideoStream => Self::VideoStream,
            listing::FileKind::AudioStream => Self::AudioStream,
            listing::FileKind::Subtitle => Self::Subtitle,
            listing::FileKind::Image => Self::Image,
        }
    }
}
