//! The sizes that a listing does not tell, asked from the servers of its files for a preview.

use std::time::Duration;

use tokio::time::{Instant, timeout};

use crate::{
    call::{GRACE, Resolved},
    install::Plugins,
    policy::grant::CallTarget,
    runtime::{Entry, FileKind, Link},
};

/// The most files of a preview whose servers are asked, and for how long: a person waits for it.
const MAX_ASKED: usize = 64;
const WALL: Duration = Duration::from_secs(5);

impl Plugins {
    /// Asks servers for the sizes that the listing does not tell, first of the files that are downloaded by default. They
    /// are asked as the plugin would ask, on hosts that it may reach. What is not told in time stays unknown; no
    /// error fails the preview.
    pub(super) async fn add_sizes(&self, resolved: &mut Resolved, given: &CallTarget) {
        let entries = &resolved.listing.entries;
        let in_turn = (0..entries.len()).filter(|at| entries[*at].is_selected());
        let in_turn = in_turn.chain((0..entries.len()).filter(|at| !entries[*at].is_selected()));
        let asked = in_turn.filter_map(|at| Some((at, unsized_link(&entries[at])?.clone())));
        let (places, links): (Vec<_>, Vec<_>) = asked.take(MAX_ASKED).unzip();
        let shared = &self.0;
        let Some(loaded) = shared.registry.get(&resolved.plugin).filter(|_| !links.is_empty()) else {
            return;
        };
        let Ok((running, manifest)) = loaded.callable() else {
            return;
        };
        let started = Instant::now();
        let asking = async {
            let _slot = shared.slots.take(&resolved.plugin).await.ok()?;
            let left = WALL.saturating_sub(started.elapsed());
            let call = shared.prepare(&resolved.plugin, &loaded, manifest, given, left);
            call.secrets.register_all().await;
            Some(running.guest.sizes(call, links).await)
        };
        let asked = tokio::select! {
            // The runtime ends in time by itself, and then has what was told so far.
            asked = timeout(WALL + GRACE, asking) => asked.ok().flatten(),
            _ = shared.registry.stopped(&resolved.plugin) => None,
            () = shared.stop.cancelled() => None,
        };
        for (at, size) in places.into_iter().zip(asked.unwrap_or_default()) {
            let facts = resolved.listing.entries[at].default_facts_mut();
            (facts.size, facts.is_size_of_server) = (size, size.is_some());
        }
    }
}

/// The link of a file of unknown size, if a request for its size does no harm and the answer is the file's.
fn unsized_link(entry: &Entry) -> Option<&Link> {
    let facts = entry.default_facts();
    let link = facts.link.as_ref().filter(|_| facts.size.is_none())?;
    let is_whole = link.segments.is_empty() && link.manifest.is_none() && link.audio.is_none();
    let is_web = matches!(link.url.scheme(), "http" | "https");
    (is_whole && is_web && !link.is_single_use && facts.kind != FileKind::Folder).then_some(link)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(change: impl FnOnce(&mut Link)) -> Entry {
        let mut link = Link::new("https://acme.test/a".parse().unwrap());
        change(&mut link);
        let mut entry = Entry::default();
        entry.facts.link = Some(link);
        entry
    }

    #[test]
    fn only_whole_files_whose_link_survives_the_question_are_asked_for() {
        let is_asked = |entry: &Entry| unsized_link(entry).is_some();
        let plain = entry(|_| {});
        assert!(is_asked(&plain));
        let unasked: [fn(&mut Link); 4] = [
            |link| link.is_single_use = true,
            |link| link.manifest = Some("hls".to_owned()),
            |link| link.audio = Some(Box::new(Link::new("https://acme.test/sound".parse().unwrap()))),
            |link| link.url = "ftp://acme.test/a".parse().unwrap(),
        ];
        for change in unasked {
            assert!(!is_asked(&entry(change)));
        }
        let (mut sized, mut folder, mut none) = (plain.clone(), plain.clone(), plain);
        sized.facts.size = Some(0);
        folder.facts.kind = FileKind::Folder;
        none.facts.link = None;
        assert!(![sized, folder, none].iter().any(is_asked));
    }
}
