//! Implements the management API's `Service`: reads from the projection, commands through the daemon, the set-up through
//! the gate.

use admission::throttle::Form;
use axum::{
    body::{Body, Bytes},
    http::{Request, Response, request::Parts},
};
use futures_util::future::{BoxFuture, FutureExt as _};
use protocol::{Method, client::CallError, proof::NoRandom};
use rest::{FileTicket, Filter, Page, PageError, Part, Service, SetupError};
use serde_json::value::RawValue;

use crate::{
    access::{key::AccessKey, peer_user::Peer, ticket::TICKET_TIME},
    gate::sender::Sender,
    projection::tasks::{self, Projection},
    settings::{file::ChangeError, switches::Settings},
    surface::state::App,
};

/// The sender of a request.
fn client(request: &Parts) -> (&Sender, &Peer) {
    let (sender, peer) = (request.extensions.get(), request.extensions.get());
    (
        sender.expect("the gate adds the sender to every request that it lets pass"),
        peer.expect("the listener adds the peer to every request"),
    )
}

impl App {
    async fn must_show_code(&self, request: &Parts) -> bool {
        let (sender, peer) = client(request);
        self.gate.needs_code(peer, sender, &request.headers).await
    }

    /// Rejects clients with a wrong or missing set-up code. Wrong codes are counted apart from wrong keys.
    fn check_code(&self, sender: &Sender, code: Option<&str>) -> Result<(), SetupError> {
        if let Some(seconds) = self.gate.wait(sender.source, Form::Code) {
            return Err(SetupError::TooMany { seconds });
        }
        let is_right = code.is_some_and(|code| self.setup_code.as_ref().is_some_and(|expect| expect.is(code)));
        if code.is_some() {
            self.gate.count(sender.source, Form::Code, is_right);
        }
        if is_right { Ok(()) } else { Err(SetupError::WrongCode) }
    }

    async fn change_first_key(&self, request: &Parts, key: &str, code: Option<&str>) -> Result<(), SetupError> {
        if self.must_show_code(request).await {
            self.check_code(client(request).0, code)?;
        }
        let key = AccessKey::new(key).map_err(|weak| SetupError::Weak(weak.to_string()))?;
        let first = move |settings: &Settings| match settings.key {
            Some(_) => Err(ChangeError::KeyExists),
            None => Ok(Settings {
                key: Some(key),
                ..settings.clone()
            }),
        };
        match self.gate.settings.change(first).await {
            Ok(_) => Ok(()),
            Err(ChangeError::KeyExists) => Err(SetupError::Completed),
            Err(error) => Err(SetupError::NotStored(error.to_string())),
        }
    }
}

impl Service for App {
    fn has_key(&self) -> bool {
        self.gate.settings.current().key.is_some()
    }

    fn offers_api(&self) -> bool {
        self.gate.settings.current().api
    }

    fn is_draining(&self) -> bool {
        self.shutdown.drain.is_cancelled()
    }

    fn command<'s>(&'s self, method: Method, params: &'s RawValue) -> BoxFuture<'s, Result<Box<RawValue>, CallError>> {
        async move { self.daemon.call_raw(method, &params).await }.boxed()
    }

    fn fetch(&self, request: Request<Bytes>) -> BoxFuture<'_, Result<Response<Body>, CallError>> {
        async move { Ok(self.daemon.fetch(request).await?.map(Body::new)) }.boxed()
    }

    fn part(&self, part: Part) -> BoxFuture<'_, Result<String, CallError>> {
        let text = match part {
            Part::Queues => Projection::queues,
            Part::Groups => Projection::groups,
            Part::Plugins => Projection::plugins,
            Part::Sites => Projection::sites,
        };
        async move { Ok(self.daemon.known().await?.with_tasks(|daemon| text(daemon).to_owned())) }.boxed()
    }

    fn task<'s>(&'s self, id: &'s str) -> BoxFuture<'s, Result<Option<String>, CallError>> {
        async move { Ok(self.daemon.known().await?.with_tasks(|daemon| daemon.task(id))) }.boxed()
    }

    fn tasks<'s>(
        &'s self,
        filter: Filter,
        limit: Option<usize>,
        cursor: Option<&'s str>,
    ) -> BoxFuture<'s, Result<Page, PageError>> {
        async move {
            let hub = self.daemon.known().await?;
            let page = hub.with_tasks(|daemon| daemon.page(filter, limit, cursor));
            let tasks::Page { tasks, next, total } = page.map_err(|tasks::BadCursor| PageError::BadCursor)?;
            let tasks = Box::new(tasks);
            Ok(Page { tasks, next, total })
        }
        .boxed()
    }

    fn device(&self) -> Option<rest::Device> {
        let link = self.link.as_ref()?;
        Some(rest::Device {
            fingerprint: link.announced_fingerprint()?.to_string(),
            name: link.about().name.clone(),
            platform: link.about().platform.clone(),
        })
    }

    fn ticket(&self, path: &str) -> Result<FileTicket, NoRandom> {
        Ok(FileTicket {
            text: self.gate.tickets.make(path)?,
            valid_for: TICKET_TIME,
        })
    }

    fn needs_code<'s>(&'s self, request: &'s Parts) -> BoxFuture<'s, bool> {
        self.must_show_code(request).boxed()
    }

    fn set_first_key<'s>(
        &'s self,
        request: &'s Parts,
        key: &'s str,
        code: Option<&'s str>,
    ) -> BoxFuture<'s, Result<(), SetupError>> {
        self.change_first_key(request, key, code).boxed()
    }
}
