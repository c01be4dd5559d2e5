//! Maps logins and accounts of plugins to the protocol's records.

use plugin_host::{Account, LoginEnd, LoginView, SlotSummary, runtime::Screen};
use protocol::{
    LoginAccountDto, LoginFieldDto, LoginQrDto, LoginScreenDto, LoginSlotDto, LoginUrlDto, PluginAuthResponse,
    PluginAuthStatus,
};

pub(crate) fn progress(login: LoginView) -> PluginAuthResponse {
    let LoginView {
        session, slot, view, ..
    } = login;
    let ended = |status, message, auth_ref| PluginAuthResponse {
        status,
        session_id: session.clone(),
        message,
        auth_ref,
        ..PluginAuthResponse::default()
    };
    match view.ended {
        None => PluginAuthResponse {
            session_id: session,
            ..pending(view.screen)
        },
        Some(LoginEnd::Succeeded(done)) => ended(
            PluginAuthStatus::Success,
            format!("logged in as {}", done.display_name),
            Some(slot),
        ),
        Some(LoginEnd::Failed(reason)) => ended(PluginAuthStatus::Error, reason, None),
        Some(LoginEnd::Cancelled) => ended(PluginAuthStatus::Error, "the login was cancelled".to_owned(), None),
        Some(LoginEnd::Expired) => {
            let message = "the login took too long; begin another one";
            ended(PluginAuthStatus::Error, message.to_owned(), None)
        }
    }
}

/// A login that goes on, also in the form that clients read that know no screens.
fn pending(screen: Screen) -> PluginAuthResponse {
    let screen = screen_dto(screen);
    let (challenge, challenge_type) = match (&screen.qr, &screen.open_url) {
        (Some(qr), _) => (Some(qr.payload.clone()), Some("qrcode")),
        (None, Some(page)) => (Some(page.url.clone()), Some("url")),
        (None, None) => (None, None),
    };
    let hint = screen.qr.as_ref().map(|qr| &qr.hint);
    let message = if screen.message.is_empty() {
        hint
    } else {
        Some(&screen.message)
    };
    PluginAuthResponse {
        status: PluginAuthStatus::Pending,
        challenge,
        challenge_type: challenge_type.map(str::to_owned),
        message: message.cloned().unwrap_or_default(),
        screen: Some(screen),
        ..PluginAuthResponse::default()
    }
}

fn screen_dto(screen: Screen) -> LoginScreenDto {
    LoginScreenDto {
        message: screen.message.unwrap_or_default(),
        qr: screen.qr.map(|qr| LoginQrDto {
            payload: qr.payload,
            expires_in_seconds: qr.expires_in_s,
            hint: qr.hint,
        }),
        fields: screen
            .fields
            .into_iter()
            .map(|field| LoginFieldDto {
                key: field.key,
                label: field.label,
                secret: field.is_secret,
            })
            .collect(),
        open_url: screen.open_url.map(|page| LoginUrlDto {
            url: page.url.into(),
            redirect_prefix: page.redirect_prefix,
        }),
        poll_after_ms: screen.poll_after_ms,
    }
}

/// The accounts of a plugin. `success` if one of those that `is_meant` can be used.
pub(crate) fn accounts(slots: Vec<SlotSummary>, is_meant: impl Fn(&SlotSummary) -> bool) -> PluginAuthResponse {
    let meant: Vec<_> = slots
        .iter()
        .filter(|slot| is_meant(slot))
        .filter_map(|slot| slot.account.as_ref())
        .collect();
    let usable = meant.iter().find(|account| !account.is_expired);
    let (status, message) = match (usable, meant.first()) {
        (Some(account), _) => (PluginAuthStatus::Success, format!("logged in as {}", account.name)),
        (None, Some(account)) => {
            let message = format!("the site ended the session of {}; log in again", account.name);
            (PluginAuthStatus::Error, message)
        }
        (None, None) => (PluginAuthStatus::Error, "nobody is logged in".to_owned()),
    };
    PluginAuthResponse {
        status,
        message,
        auth_ref: usable.map(|account| account.slot.clone()),
        accounts: Some(slots.into_iter().map(slot).collect()),
        ..PluginAuthResponse::default()
    }
}

fn slot(summary: SlotSummary) -> LoginSlotDto {
    LoginSlotDto {
        slot: summary.id,
        title: summary.title,
        modes: summary.modes.iter().map(|mode| mode.name().to_owned()).collect(),
        account: summary.account.map(account),
    }
}

fn account(account: Account) -> LoginAccountDto {
    LoginAccountDto {
        id: account.id,
        name: account.name,
        since: account.since_ms,
        expired: account.is_expired,
        site: account.site,
    }
}
