//! Prints log and requests of a plugin under development as they happen.

use std::{convert::Infallible, iter, time::Duration};

use cli::{Client, RemoteError, Target};
use command::print_now;
use protocol::{Method, PluginJournalDto, PluginParams};

use crate::loader::lines_of;

/// The polling interval. The journal keeps far more entries than occur in between.
const INTERVAL: Duration = Duration::from_millis(500);

/// The pause before reconnecting to a service.
const PAUSE: Duration = Duration::from_secs(2);

/// Prints new entries of a plugin's journal.
pub(super) async fn follow(target: &Target, identity: &str) -> Infallible {
    loop {
        // The caller reports that the service is unreachable.
        let Err(_away) = follow_connected(target, identity).await;
        tokio::time::sleep(PAUSE).await;
    }
}

async fn follow_connected(target: &Target, identity: &str) -> Result<Infallible, RemoteError> {
    let mut client = Client::connect(target).await?;
    let params = PluginParams {
        identity: identity.to_owned(),
    };
    let journal: PluginJournalDto = client.call(Method::PluginJournal, &params).await?;
    let mut since = lines(&journal, i64::MIN).last().map_or(i64::MIN, |(at_ms, _)| *at_ms);
    loop {
        tokio::time::sleep(INTERVAL).await;
        let journal: PluginJournalDto = client.call(Method::PluginJournal, &params).await?;
        for (at_ms, line) in lines(&journal, since) {
            since = at_ms;
            print_now(&line);
        }
    }
}

/// Entries after `since`, in order.
fn lines(journal: &PluginJournalDto, since: i64) -> Vec<(i64, String)> {
    let lines = journal.lines.iter();
    let lines = lines.flat_map(|line| {
        let mut texts = lines_of(&line.text);
        let first = format!("  [{}] {}: {}", line.call, line.level, texts.next().unwrap_or_default());
        let rest = texts.map(|text| format!("      {text}"));
        iter::once(first).chain(rest).map(|text| (line.at_ms, text))
    });
    let events = journal.events.iter().filter_map(|event| {
        let line = match (&event.call, event.event.as_str()) {
            (Some(call), _) => format!(
                "  [{}] {} ({} ms, {} of them computing, {} requests)",
                call.id, event.detail, call.wall_ms, call.cpu_ms, call.requests
            ),
            (None, "denied") => format!("  denied: {}", event.detail),
            _ => return None,
        };
        Some((event.at_ms, line))
    });
    let mut lines: Vec<_> = lines.chain(events).filter(|(at_ms, _)| *at_ms > since).collect();
    // The lines of a call precede its end, even within one millisecond; the sort is stable.
    lines.sort_by_key(|(at_ms, _)| *at_ms);
    lines
}

#[cfg(test)]
mod tests {
    use protocol::{PluginCallDto, PluginEventDto, PluginLineDto};

    use super::*;

    #[test]
    fn lines_and_calls_are_printed_once_in_order() {
        let line = |at_ms, text: &str| PluginLineDto {
            at_ms,
            call: 7,
            level: "info".to_owned(),
            text: text.to_owned(),
        };
        let call = PluginCallDto {
            id: 7,
            ..PluginCallDto::default()
        };
        let event = |at_ms, event: &str, call| PluginEventDto {
            at_ms,
            event: event.to_owned(),
            detail: "a detail".to_owned(),
            call,
        };
        let journal = PluginJournalDto {
            lines: vec![line(1, "old"), line(5, "new\\n  at b\\n")],
            events: vec![
                event(3, "loaded", None),
                event(4, "denied", None),
                event(5, "called", Some(call)),
            ],
            requests: Vec::new(),
        };
        let lines: Vec<_> = lines(&journal, 1).into_iter().map(|(_, line)| line).collect();
        assert_eq!(
            lines,
            [
                "  denied: a detail",
                "  [7] info: new",
                "        at b",
                "  [7] a detail (0 ms, 0 of them computing, 0 requests)"
            ]
        );
    }
}
