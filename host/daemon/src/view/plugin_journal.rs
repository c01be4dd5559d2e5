//! Maps a plugin's journal to the protocol's records.

use std::time::Duration;

use plugin_host::{Event, Identity, JournalEntry, PluginFault, Plugins, runtime::Report};
use protocol::{PluginCallDto, PluginEventDto, PluginJournalDto, PluginLineDto, PluginRequestDto};

pub(crate) fn of(plugins: &Plugins, plugin: &Identity) -> PluginJournalDto {
    let journal = plugins.journal();
    let line = |line: plugin_host::Line| PluginLineDto {
        at_ms: line.at_ms,
        call: line.call.0,
        level: line.level.name().to_owned(),
        text: line.text,
    };
    let request = |sent: plugin_host::Sent| PluginRequestDto {
        at_ms: sent.at_ms,
        call: sent.call.0,
        method: sent.line.method,
        address: sent.line.address,
        status: sent.line.status,
        received_bytes: sent.line.received_bytes,
        elapsed_ms: millis(sent.line.elapsed),
    };
    PluginJournalDto {
        events: journal.events(Some(plugin)).iter().map(event).collect(),
        lines: journal.lines(plugin).into_iter().map(line).collect(),
        requests: journal.requests(plugin).into_iter().map(request).collect(),
    }
}

fn event(entry: &JournalEntry) -> PluginEventDto {
    let (event, detail) = match &entry.event {
        Event::Installed { version } => ("installed", version.clone()),
        Event::Loaded { error } => ("loaded", error.clone().unwrap_or_default()),
        Event::Consented => ("consented", String::new()),
        Event::HostChosen { host, choice } => ("hostChosen", format!("{host} {choice}")),
        Event::Switched { is_on } => ("switched", if *is_on { "on" } else { "off" }.to_owned()),
        Event::Tripped => ("tripped", String::new()),
        Event::RolledBack { by_user } => ("rolledBack", if *by_user { "" } else { "it kept failing" }.to_owned()),
        Event::Pinned { is_pinned } => ("pinned", if *is_pinned { "on" } else { "off" }.to_owned()),
        Event::Revoked { level, reason } => ("revoked", format!("{level}: {reason}")),
        Event::AuthorChanged { to, reason: None } => ("authorChanged", to.clone()),
        Event::AuthorChanged {
            to,
            reason: Some(reason),
        } => ("authorChanged", format!("{to}, says the source: {reason}")),
        Event::NotUpdated { error } => ("notUpdated", error.clone()),
        Event::SettingsChanged { keys } => ("settingsChanged", keys.join(", ")),
        Event::Uninstalled => ("uninstalled", String::new()),
        Event::LoggedIn { slot } => ("loggedIn", slot.clone()),
        Event::LoggedOut { slot, by_user: true } => ("loggedOut", slot.clone()),
        Event::LoggedOut { slot, by_user: false } => ("loggedOut", format!("{slot}: its site ended the session")),
        Event::Called { action, fault, .. } => {
            let why = fault.as_ref().map(|fault| format!("{}: {fault}", fault.code()));
            ("called", format!("{action}: {}", why.as_deref().unwrap_or("ok")))
        }
        Event::Denied { denial, .. } => ("denied", denial.to_string()),
    };
    let call = match &entry.event {
        Event::Called {
            call,
            action,
            report,
            fault,
        } => Some(PluginCallDto {
            id: call.0,
            action: (*action).to_owned(),
            code: fault.as_ref().map_or("ok", PluginFault::code).to_owned(),
            ..call_dto(report)
        }),
        _ => None,
    };
    PluginEventDto {
        at_ms: entry.at_ms,
        event: event.to_owned(),
        detail,
        call,
    }
}

fn call_dto(report: &Report) -> PluginCallDto {
    PluginCallDto {
        instantiate_micros: u64::try_from(report.instantiate.as_micros()).unwrap_or(u64::MAX),
        cpu_ms: millis(report.cpu),
        wall_ms: millis(report.wall),
        requests: report.requests,
        received_bytes: report.received_bytes,
        peak_memory_bytes: report.peak_memory_bytes as u64,
        lost_lines: report.lost_log_lines,
        ..PluginCallDto::default()
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
