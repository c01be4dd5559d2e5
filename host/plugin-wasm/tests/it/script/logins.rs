//! Logins of scripts: what an instance holds from its first step to its last.

use std::sync::Arc;

use accounts::Step;
use plugin_wasm::{CallContext, Limits, LoginSession, Profile};

use super::{Site, load, on};

const PAGE: &str = "https://example.org/page";

async fn begin(script: &str) -> LoginSession {
    let site = Site::default().text(PAGE, &"x".repeat(1000));
    let context = CallContext {
        login: Some(("main".to_owned(), Arc::<Profile>::default())),
        ..on(site).0
    };
    let loaded = load(script).await;
    loaded.begin_login("main".to_owned(), "password", context, Limits::login())
}

/// The message on the screen after a step.
async fn message(login: &mut LoginSession, step: Step) -> String {
    let screen = login.step(step).await.result.unwrap();
    screen.message.unwrap_or_default()
}

#[tokio::test]
async fn a_login_has_more_steps_than_an_instance_has_handles() {
    let script = "let steps = 0;
        export const login = {
            start(call, screen) { screen.message('0'); },
            poll(call, screen) { steps += 1; screen.message(String(steps)); },
        };";
    let mut login = begin(script).await;
    assert_eq!(message(&mut login, Step::Start).await, "0");
    for number in 1..=300 {
        assert_eq!(message(&mut login, Step::Poll).await, number.to_string());
    }
}

#[tokio::test]
async fn a_login_keeps_no_response_over_its_steps() {
    let script = format!(
        "const kept = [];
        export const login = {{
            async start(call, screen) {{
                kept.push(await http.get('{PAGE}').send());
                screen.message(String(kept[0].bytes().length));
            }},
            async poll(call, screen) {{
                kept.push(await http.get('{PAGE}').send());
                screen.message(kept.map((page) => page.text().length).join());
            }},
        }};"
    );
    let mut login = begin(&script).await;
    assert_eq!(message(&mut login, Step::Start).await, "1000");
    assert_eq!(message(&mut login, Step::Poll).await, "0,1000");
    assert_eq!(message(&mut login, Step::Poll).await, "0,0,1000");
}
