//! Network, clock and randomness of recorded and replayed calls.

use std::{collections::BTreeMap, sync::Arc};

use plugin_host::{Replay, Watch, World, fixture};

use crate::{
    call::Ambient,
    http::{Answer, Exchange, Exchanged, Network, NetworkError, Profile},
};

/// Wraps `network` and the clock for `world`.
pub(crate) fn around(world: World, network: Arc<dyn Network>, profile: &Arc<Profile>) -> (Arc<dyn Network>, Ambient) {
    let ambient = world.moment().map_or(Ambient::System, |moment| Ambient::Fixed {
        now_ms: moment.now_ms,
        seed: moment.seed,
    });
    let network: Arc<dyn Network> = match world {
        World::Live => network,
        World::Watched(watch) => Arc::new(Watched {
            network,
            watch,
            profile: Arc::clone(profile),
        }),
        World::Recorded(replay) => Arc::new(Recorded(replay)),
    };
    (network, ambient)
}

/// A network whose exchanges are recorded.
#[derive(Debug)]
struct Watched {
    network: Arc<dyn Network>,
    watch: Arc<Watch>,
    /// To redact all cookies: a site may also show ones that were not sent with a request.
    profile: Arc<Profile>,
}

/// A replayed network.
#[derive(Debug)]
struct Recorded(Arc<Replay>);

impl Network for Watched {
    fn exchange(&self, exchange: Exchange) -> Exchanged<'_> {
        Box::pin(async move {
            for cookie in self.profile.cookie_values() {
                self.watch.keep_secret("cookie", cookie.value().expose());
            }
            let answered = self.network.exchange(exchange.clone()).await;
            match &answered {
                Ok(answer) => self.watch.note(&asked(&exchange), response(answer)),
                Err(_) => self.watch.note_silence(exchange.url.as_str()),
            }
            answered
        })
    }
}

impl Network for Recorded {
    fn exchange(&self, exchange: Exchange) -> Exchanged<'_> {
        let answer = match self.0.answer(&asked(&exchange)) {
            None => Err(NetworkError::Failed("the recording has no such request".to_owned())),
            Some(response) if response.body().len() as u64 > exchange.max_bytes => {
                Err(NetworkError::TooLarge(exchange.max_bytes))
            }
            Some(response) => Ok(answer(&response)),
        };
        Box::pin(async { answer })
    }
}

fn asked(exchange: &Exchange) -> fixture::Asked<'_> {
    fixture::Asked {
        method: &exchange.method,
        url: exchange.url.as_str(),
        headers: &exchange.headers,
        body: &exchange.body,
    }
}

/// Headers of one name become the lines of one value.
fn response(answer: &Answer) -> fixture::Response {
    let mut headers = BTreeMap::<String, String>::new();
    for (name, value) in &answer.headers {
        let lines = headers.entry(name.to_ascii_lowercase()).or_default();
        if !lines.is_empty() {
            lines.push('\n');
        }
        lines.push_str(value);
    }
    fixture::Response::new(answer.status, headers, answer.body.to_vec())
}

fn answer(response: &fixture::Response) -> Answer {
    let fields = response.headers.iter().flat_map(|(name, lines)| {
        let lines = lines.split('\n');
        lines.map(|value| (name.to_ascii_lowercase(), value.to_owned()))
    });
    Answer {
        status: response.status,
        headers: fields.collect(),
        body: response.body().to_vec().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_the_same_after_it_was_written_down() {
        let field = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let original = Answer {
            status: 200,
            headers: vec![
                field("content-type", "text/html"),
                field("set-cookie", "a=b"),
                field("set-cookie", "c=d"),
            ],
            body: b"\xff".to_vec().into(),
        };
        assert_eq!(answer(&response(&original)), original);
    }
}
