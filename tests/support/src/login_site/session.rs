//! Sessions: a cookie, and tokens that are renewed.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{
    message::{bearer, cookie},
    state::{State, has_passed},
};
use crate::request::Request;

/// What a login gives.
pub(super) struct Session {
    user: String,
    cookie: String,
    access: String,
    access_ends: Instant,
    /// The one that works.
    refresh: String,
    /// Those that were used.
    used: Vec<String>,
    /// The cookie works.
    has_cookie: bool,
    has_ended: bool,
}

/// What a client is handed.
pub(super) struct Issued {
    pub(super) cookie: String,
    /// The tokens and the user.
    pub(super) tokens: Value,
}

/// What became of a refresh token.
pub(super) enum Renewed {
    Issued(Issued),
    /// It was used before, so somebody else has it: its session is over.
    Reused,
    Unknown,
}

impl State {
    /// Begins a session of a user.
    pub(super) fn begin_session(&mut self, user: &str) -> Issued {
        let session = Session {
            user: user.to_owned(),
            cookie: self.secret("session"),
            access: self.token("access"),
            access_ends: Instant::now() + self.access_lifetime(),
            refresh: self.token("refresh"),
            used: Vec::new(),
            has_cookie: true,
            has_ended: false,
        };
        let issued = self.hand_out(&session);
        self.sessions.push(session);
        issued
    }

    fn hand_out(&self, session: &Session) -> Issued {
        Issued {
            cookie: session.cookie.clone(),
            tokens: json!({
                "access_token": session.access,
                "refresh_token": session.refresh,
                "token_type": "Bearer",
                "expires_in": self.access_lifetime().as_secs(),
                "user": { "id": session.user, "name": self.name_of(&session.user) },
            }),
        }
    }

    /// Renews the session of a refresh token.
    pub(super) fn renew_session(&mut self, refresh: &str) -> Renewed {
        let (cookie, access, next) = (self.secret("session"), self.token("access"), self.token("refresh"));
        let ends = Instant::now() + self.access_lifetime();
        let mut open = self.sessions.iter_mut().filter(|session| !session.has_ended);
        let found = open.find(|session| session.refresh == refresh || session.used.iter().any(|used| used == refresh));
        let Some(session) = found else {
            return Renewed::Unknown;
        };
        if session.refresh != refresh {
            session.has_ended = true;
            self.reused_refresh_tokens += 1;
            return Renewed::Reused;
        }
        session.used.push(std::mem::replace(&mut session.refresh, next));
        (session.cookie, session.access, session.access_ends) = (cookie, access, ends);
        session.has_cookie = true;
        let renewed = session.refresh.clone();
        self.refreshes += 1;
        let session = self.sessions.iter().find(|session| session.refresh == renewed);
        session.map_or(Renewed::Unknown, |session| Renewed::Issued(self.hand_out(session)))
    }

    /// The user whose access token a request has.
    pub(super) fn user_of_token(&self, request: &Request) -> Option<String> {
        let token = bearer(request)?;
        let mut open = self.sessions.iter().filter(|session| !session.has_ended);
        let found = open.find(|session| session.access == token && !has_passed(session.access_ends));
        found.map(|session| session.user.clone())
    }

    /// The user whose cookie a request has.
    pub(super) fn user_of_cookie(&self, request: &Request) -> Option<String> {
        let value = cookie(request, "session")?;
        let mut open = self.sessions.iter().filter(|session| !session.has_ended);
        let found = open.find(|session| session.has_cookie && session.cookie == value);
        found.map(|session| session.user.clone())
    }

    /// Ends the session that a request has, by token or by cookie. False if it has none.
    pub(super) fn end_session(&mut self, request: &Request) -> bool {
        let (token, cookie) = (bearer(request), cookie(request, "session"));
        let is_it = |session: &Session| {
            token == Some(session.access.as_str()) || cookie.as_deref() == Some(session.cookie.as_str())
        };
        let mut open = self.sessions.iter_mut().filter(|session| !session.has_ended);
        let found = open.find(|session| is_it(session));
        found.map(|session| session.has_ended = true).is_some()
    }

    pub(super) fn expire_sessions(&mut self) {
        let now = Instant::now();
        for session in &mut self.sessions {
            session.access_ends = now.checked_sub(Duration::from_millis(1)).unwrap_or(now);
            session.has_cookie = false;
        }
    }

    pub(super) fn end_sessions(&mut self) {
        for session in &mut self.sessions {
            session.has_ended = true;
        }
    }

    pub(super) fn open_sessions(&self) -> usize {
        self.sessions.iter().filter(|session| !session.has_ended).count()
    }
}
