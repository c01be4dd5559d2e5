//! The state machine of a login session. Pure: an input gives the next state and the effects to perform.
//!
//! ```text
//!   begin ──► stepping ──► showing a screen ──► (poll, answer) ──► stepping ──► storing ──► succeeded
//!                 └──────────► failed                  └──► cancelled, expired      └──► failed
//! ```

use std::collections::BTreeSet;

use plugin_package::manifest::LoginMode;
use transfer::{ByteCount, Secret};

use crate::screen::{Done, Screen};

/// How long a login may take from its beginning: as long as somebody needs who has to find the phone and type a code.
const MAX_MS: u64 = 15 * 60 * 1000;

/// How long nobody may ask about it.
const MAX_IDLE_MS: u64 = 5 * 60 * 1000;

/// The shortest time between two polls of a site. A client that asks more often is shown the present screen.
const MIN_POLL_MS: u64 = 500;

/// The most steps: three a minute for the whole time, and then some.
const MAX_STEPS: u32 = 600;

/// The longest answer in a field, and in the field of a browser's cookies.
const MAX_ANSWER_BYTES: usize = 4096;
const MAX_COOKIES_BYTES: usize = 256 * 1024;

/// A login session.
#[derive(Debug, Clone)]
pub struct Login {
    mode: LoginMode,
    state: State,
    screen: Screen,
    /// When it is over, in milliseconds of a clock that the caller chooses, like all times here.
    deadline: u64,
    idle_since: u64,
    /// When the site may be polled again.
    poll_at: Option<u64>,
    steps_left: u32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum State {
    /// A step of the plugin runs.
    Stepping,
    /// The plugin or the user is to act.
    Showing,
    /// The account is being written. Only the outcome of that ends the login: what is written stays.
    Storing(Done),
    Ended(Ended),
}

/// The end of a login.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// The account is stored.
    Succeeded(Done),
    /// The reason, for people.
    Failed(String),
    Cancelled,
    /// The user or the site took too long.
    Expired,
}

/// An input of the state machine.
#[derive(Debug, Clone)]
#[expect(clippy::large_enum_variant, reason = "one at a time, and never in a queue")]
pub enum Input {
    /// A client asks how it goes on.
    Poll,
    /// The user has filled in fields.
    Answer(Vec<(String, String)>),
    /// The user does not want to log in any more, or the plugin is gone.
    Cancel,
    /// The step of the plugin is over.
    Stepped(Result<Screen, StepFailure>),
    /// The account is about to be written. Until this the login can be cancelled, and nothing is stored.
    Storing,
    /// The account was stored, or not.
    Stored(Result<(), String>),
    /// Time has passed.
    Tick,
}

/// Why a step failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StepFailure {
    /// The plugin says so: the user can try again on the same screen.
    Refused(String),
    /// The session cannot go on.
    Broken(String),
}

/// A step of the plugin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    Start,
    Poll,
    /// Values of fields. A secret one is not here: it is stored under the key of its field, whose name is the value.
    Answer(Vec<(String, String)>),
}

/// A side effect to perform.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Keep a secret answer for the plugin's requests, under this name.
    Keep(String, Secret),
    /// Take cookies from a browser's export into the account.
    TakeCookies(Secret),
    Step(Step),
    /// Store the account with what was captured; its session ends at this time, in milliseconds of the Unix epoch, if the
    /// site says.
    Store(Done, Option<u64>),
    /// End the plugin's part, and forget what was captured.
    Discard,
}

/// Why an input is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("the login is over; begin another one")]
    Over,
    #[error("the login is waiting for the site; poll until it shows fields")]
    Busy,
    #[error("there is no field {0} on this screen")]
    UnknownField(String),
    #[error("the field {0} is not filled in")]
    Missing(String),
    #[error("the field {field} has more than {}", ByteCount(*limit as u64))]
    TooLong { field: String, limit: usize },
    #[error("the address begins with {0}; paste the one that the browser shows at the end of the login")]
    OtherAddress(String),
}

/// What a client sees of a login.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct View {
    /// The present screen.
    pub screen: Screen,
    pub ended: Option<Ended>,
}

impl Login {
    /// A login that begins `now`; its first step is [`Step::Start`].
    pub fn begin(mode: LoginMode, now: u64) -> (Self, Vec<Effect>) {
        let login = Self {
            mode,
            state: State::Stepping,
            screen: Screen::default(),
            deadline: now + MAX_MS,
            idle_since: now,
            poll_at: None,
            steps_left: MAX_STEPS,
        };
        (login, vec![Effect::Step(Step::Start)])
    }

    /// What a client sees.
    pub fn view(&self) -> View {
        View {
            screen: self.screen.clone(),
            ended: self.ended().cloned(),
        }
    }

    /// When it ends if nothing happens; never while the account is being written, which has its own end.
    pub fn expires_at(&self) -> Option<u64> {
        let is_storing = matches!(self.state, State::Storing(_));
        (!is_storing).then(|| self.deadline.min(self.idle_since + MAX_IDLE_MS))
    }

    /// How it ended, if it has.
    pub fn ended(&self) -> Option<&Ended> {
        match &self.state {
            State::Ended(ended) => Some(ended),
            State::Stepping | State::Showing | State::Storing(_) => None,
        }
    }

    /// Applies an input that arrives `now`.
    pub fn apply(&mut self, input: Input, now: u64) -> Result<Vec<Effect>, Refusal> {
        match (&self.state, &input) {
            (State::Ended(_), Input::Answer(_)) => return Err(Refusal::Over),
            (State::Storing(_), Input::Answer(_)) => return Err(Refusal::Busy),
            (State::Storing(done), Input::Stored(stored)) => {
                let ended = match stored {
                    Ok(()) => Ended::Succeeded(done.clone()),
                    Err(reason) => Ended::Failed(reason.clone()),
                };
                return Ok(self.end(ended));
            }
            (State::Ended(_) | State::Storing(_), _) => return Ok(Vec::new()),
            (State::Stepping | State::Showing, _) => {}
        }
        if self.expires_at().is_some_and(|expires| now >= expires) {
            return Ok(self.end(Ended::Expired));
        }
        Ok(match input {
            Input::Poll => self.poll(now),
            Input::Answer(values) => self.answer(values, now)?,
            Input::Cancel => self.end(Ended::Cancelled),
            Input::Stepped(Ok(screen)) => self.show(screen, now),
            Input::Stepped(Err(StepFailure::Refused(reason))) if self.screen.is_useful() => {
                self.screen.message = Some(reason);
                self.state = State::Showing;
                self.schedule_poll(now);
                Vec::new()
            }
            Input::Stepped(Err(StepFailure::Refused(reason) | StepFailure::Broken(reason))) => {
                self.end(Ended::Failed(reason))
            }
            Input::Storing => {
                if let Some(done) = self.screen.done.clone() {
                    self.state = State::Storing(done);
                }
                Vec::new()
            }
            // Nothing is written before it is about to be.
            Input::Stored(_) | Input::Tick => Vec::new(),
        })
    }

    fn poll(&mut self, now: u64) -> Vec<Effect> {
        self.idle_since = now;
        let is_due = self.state == State::Showing && self.poll_at.is_some_and(|poll_at| now >= poll_at);
        if !is_due {
            return Vec::new();
        }
        self.step(Step::Poll)
    }

    fn answer(&mut self, values: Vec<(String, String)>, now: u64) -> Result<Vec<Effect>, Refusal> {
        self.idle_since = now;
        if self.state == State::Stepping {
            return Err(Refusal::Busy);
        }
        let filled: BTreeSet<_> = values.iter().map(|(key, _)| key.as_str()).collect();
        let mut wanted = self.screen.fields.iter().map(|field| &field.key);
        if let Some(missing) = wanted.find(|key| !filled.contains(key.as_str())) {
            return Err(Refusal::Missing(missing.clone()));
        }
        let (mut effects, mut plain) = (Vec::new(), Vec::new());
        for (key, value) in values {
            self.take(key, value, &mut effects, &mut plain)?;
        }
        effects.extend(self.step(Step::Answer(plain)));
        Ok(effects)
    }

    /// Sorts an answer: what is secret is kept, the rest goes to the plugin.
    fn take(
        &self,
        key: String,
        value: String,
        effects: &mut Vec<Effect>,
        plain: &mut Vec<(String, String)>,
    ) -> Result<(), Refusal> {
        let is_cookies = self.mode == LoginMode::Cookie && key == Screen::COOKIES;
        let limit = if is_cookies {
            MAX_COOKIES_BYTES
        } else {
            MAX_ANSWER_BYTES
        };
        if value.len() > limit {
            return Err(Refusal::TooLong { field: key, limit });
        }
        let open_url = self.screen.open_url.as_ref();
        if let (Screen::ADDRESS, Some(open_url)) = (key.as_str(), open_url) {
            return take_address(open_url.redirect_prefix.as_deref(), &value, effects, plain);
        }
        let field = self.screen.fields.iter().find(|field| field.key == key);
        let field = field.ok_or_else(|| Refusal::UnknownField(key.clone()))?;
        if is_cookies {
            effects.push(Effect::TakeCookies(Secret::new(value)));
        } else if field.is_secret {
            effects.push(Effect::Keep(key.clone(), Secret::new(value)));
            plain.push((key.clone(), key));
        } else {
            plain.push((key, value));
        }
        Ok(())
    }

    fn step(&mut self, step: Step) -> Vec<Effect> {
        let Some(left) = self.steps_left.checked_sub(1) else {
            return self.end(Ended::Failed("the login takes too many steps".to_owned()));
        };
        self.steps_left = left;
        self.state = State::Stepping;
        vec![Effect::Step(step)]
    }

    fn show(&mut self, screen: Screen, now: u64) -> Vec<Effect> {
        // A poll that shows nothing new leaves the screen as it is.
        let is_same = !screen.is_useful() && screen.open_url.is_none();
        let before = std::mem::replace(&mut self.screen, screen);
        if is_same {
            let message = self.screen.message.take();
            self.screen = before;
            self.screen.message = message.or(self.screen.message.take());
        }
        if let Some(done) = &self.screen.done {
            // Still stepping, until it is about to be written.
            return vec![Effect::Store(done.clone(), self.screen.expires_ms)];
        }
        self.state = State::Showing;
        self.schedule_poll(now);
        Vec::new()
    }

    fn schedule_poll(&mut self, now: u64) {
        let pause = self.screen.poll_after_ms.map(u64::from);
        self.poll_at = pause.map(|pause| now + pause.max(MIN_POLL_MS));
    }

    fn end(&mut self, ended: Ended) -> Vec<Effect> {
        self.state = State::Ended(ended);
        vec![Effect::Discard]
    }
}

/// Takes the address that a browser was sent to: its parameters are credentials, except `state`, which the plugin compares
/// with its own.
fn take_address(
    prefix: Option<&str>,
    address: &str,
    effects: &mut Vec<Effect>,
    plain: &mut Vec<(String, String)>,
) -> Result<(), Refusal> {
    let prefix = prefix.unwrap_or_default();
    let parsed = url::Url::parse(address).ok().filter(|_| address.starts_with(prefix));
    let parsed = parsed.ok_or_else(|| Refusal::OtherAddress(prefix.to_owned()))?;
    let fragment = parsed.fragment().unwrap_or_default().as_bytes();
    for (name, value) in parsed.query_pairs().chain(url::form_urlencoded::parse(fragment)) {
        let key = format!("{}.{name}", Screen::ADDRESS);
        if name == "state" {
            plain.push((key, value.into_owned()));
        } else {
            effects.push(Effect::Keep(key.clone(), Secret::new(value)));
            plain.push((key.clone(), key));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
