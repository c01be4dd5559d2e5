//! The calls of a plugin, with their arguments.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use plugin_package::Manifest;
use svc_plugin_fixture::{Call as FixtureCall, HookInput, Input, PostInput};
use transfer::Secret;
use url::Url;

use crate::{
    policy::health::Capability,
    runtime::{Call, Called, FeedRequest, Guest, Listing},
};

/// How long a link may take: a download waits for it.
const LINK_WALL: Duration = Duration::from_secs(10);

/// How long a plugin's own preview may take: it is there to be quick, because a person waits for it.
const PREVIEW_WALL: Duration = Duration::from_secs(5);

/// How long a feed may take. It runs in the background, but fetches of the same host wait for it.
const FEED_WALL: Duration = Duration::from_secs(20);

/// How long a step of a login may take: a person waits for it.
pub(crate) const LOGIN_WALL: Duration = Duration::from_secs(10);

/// How long a hook may take.
const HOOK_WALL: Duration = Duration::from_secs(5);

/// How long work on finished files may take: unpacking does. Only the steps that follow it wait for it.
const POST_WALL: Duration = Duration::from_mins(30);

/// A call about a URL.
#[derive(Debug, Clone)]
pub(crate) enum Ask {
    /// List the files; with the password of a share.
    Resolve(Option<Secret>),
    /// The next page, by its token.
    More(String),
    /// The link of an entry, or of a variant of it.
    LinkFor(String, Option<String>),
    /// A quick listing without links.
    Preview,
    /// The items of a feed.
    Feed(FeedRequest),
    /// What became of a download.
    Hook(HookInput),
    /// Work on the files of a finished download; without their contents, unless it is of a fixture.
    Post(PostInput),
}

impl Ask {
    /// The call of a fixture; `None` for those of a login, which are about an account and not about a URL, for a hook that is
    /// told nothing, and for work on no files.
    pub(crate) fn of(call: FixtureCall, input: &Input) -> Option<Self> {
        Some(match call {
            FixtureCall::Resolve => Self::Resolve(input.password.clone().map(Secret::new)),
            FixtureCall::More => Self::More(input.token.clone()),
            FixtureCall::LinkFor => Self::LinkFor(input.entry.clone(), input.variant.clone()),
            FixtureCall::Preview => Self::Preview,
            FixtureCall::Feed => Self::Feed(FeedRequest {
                since_ms: input.since,
                etag: input.etag.clone(),
                // The fields of a source are among the settings of a fixture.
                config: BTreeMap::new(),
            }),
            FixtureCall::Hook => Self::Hook(input.hook.clone()?),
            FixtureCall::Post => Self::Post(input.post.clone()?),
            FixtureCall::Login | FixtureCall::CheckLogin | FixtureCall::RefreshLogin | FixtureCall::Logout => {
                return None;
            }
        })
    }

    /// The call in the format of fixtures, including the password.
    pub(crate) fn in_fixture(&self, url: &Url) -> (FixtureCall, Input) {
        let mut input = Input {
            url: url.to_string(),
            ..Input::default()
        };
        let call = match self {
            Self::Resolve(password) => {
                input.password = password.as_ref().map(|password| password.expose().to_owned());
                FixtureCall::Resolve
            }
            Self::More(token) => {
                input.token.clone_from(token);
                FixtureCall::More
            }
            Self::LinkFor(entry, variant) => {
                input.entry.clone_from(entry);
                input.variant.clone_from(variant);
                FixtureCall::LinkFor
            }
            Self::Preview => FixtureCall::Preview,
            Self::Feed(request) => {
                input.since = request.since_ms;
                input.etag.clone_from(&request.etag);
                FixtureCall::Feed
            }
            Self::Hook(event) => {
                input.hook = Some(event.clone());
                FixtureCall::Hook
            }
            Self::Post(files) => {
                input.post = Some(files.clone());
                FixtureCall::Post
            }
        };
        (call, input)
    }

    /// Its name in interfaces and fixtures.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Resolve(_) => "resolve",
            Self::More(_) => "more",
            Self::LinkFor(..) => "linkFor",
            Self::Preview => "preview",
            Self::Feed(_) => "feed",
            Self::Hook(_) => "hook",
            Self::Post(_) => "post",
        }
    }

    pub(crate) fn capability(&self) -> Capability {
        match self {
            Self::Resolve(_) | Self::More(_) | Self::LinkFor(..) => Capability::Resolver,
            Self::Preview => Capability::Preview,
            Self::Feed(_) => Capability::Feed,
            Self::Hook(_) => Capability::Hook,
            Self::Post(_) => Capability::Post,
        }
    }

    /// The time limit; `None` if the plugin does not have the function.
    pub(crate) fn wall(&self, manifest: &Manifest) -> Option<Duration> {
        let capabilities = &manifest.capabilities;
        let resolver = capabilities.resolver.as_ref();
        match self {
            Self::LinkFor(..) => resolver.map(|_| LINK_WALL),
            Self::Preview if capabilities.preview => resolver.map(|_| PREVIEW_WALL),
            Self::Resolve(_) | Self::More(_) | Self::Preview => resolver.map(|resolver| resolver.wall),
            Self::Feed(_) => capabilities.feed.as_ref().map(|_| FEED_WALL),
            Self::Hook(_) => capabilities.hook.as_ref().map(|_| HOOK_WALL),
            Self::Post(_) => capabilities.post.as_ref().map(|_| POST_WALL),
        }
    }
}

/// Calls `preview`, or `resolve` if the plugin has no preview.
pub(crate) async fn preview(guest: Arc<dyn Guest>, call: Call) -> Called<Listing> {
    if guest.interface().exports.iter().any(|export| export == "previewer") {
        guest.preview(call).await
    } else {
        guest.resolve(call, None).await
    }
}
