//! How scripts fail, by themselves and at the limits of the host.

use std::time::{Duration, Instant};

use plugin_host::{Exceeded, GuestError, PluginFault, runtime::Language};
use plugin_wasm::Limits;

use super::{Site, URL, answered, error, link, load, on, value};
use crate::rig::scripts;

#[tokio::test]
async fn every_error_of_the_contract_can_be_thrown() {
    let text = || "x".to_owned();
    let cases = [
        ("notMatched'", GuestError::NotMatched),
        ("invalidInput', 'x'", GuestError::InvalidInput(text())),
        ("loginRequired'", GuestError::LoginRequired(None)),
        ("loginRequired', 'x'", GuestError::LoginRequired(Some(text()))),
        ("captchaRequired', 'x'", GuestError::CaptchaRequired(text())),
        ("notFound', 'x'", GuestError::NotFound(text())),
        ("gone', 'x'", GuestError::Gone(text())),
        ("forbidden', 'x'", GuestError::Forbidden(text())),
        ("rateLimited', 5", GuestError::RateLimited(Some(Duration::from_secs(5)))),
        ("rateLimited'", GuestError::RateLimited(None)),
        ("upstream', 502", GuestError::Upstream(502)),
        ("network', 'x'", GuestError::Network(text())),
        ("denied', 'x'", GuestError::Denied(text())),
        ("parse', 'x'", GuestError::Parse(text())),
        ("unsupported', 'x'", GuestError::Unsupported(text())),
        ("internal', 'x'", GuestError::Internal(text())),
    ];
    for (arguments, expect) in cases {
        assert_eq!(answered(&format!("throw new PluginError('{arguments});")).await, expect);
    }
    let GuestError::Internal(text) = answered("throw new PluginError('nonsense');").await else {
        panic!()
    };
    assert!(text.contains("nonsense is no code"), "{text}");
}

#[tokio::test]
async fn other_errors_name_their_line_and_are_logged_whole() {
    let GuestError::Internal(text) = answered("\n  undefined.x;").await else {
        panic!()
    };
    assert!(
        text.starts_with("TypeError: ") && text.contains("(plugin.js:3:"),
        "{text}"
    );
    assert_eq!(answered("throw 'a text';").await, GuestError::Internal("a text".into()));
    assert_eq!(
        answered("throw undefined;").await,
        GuestError::Internal("undefined".into())
    );
    let GuestError::Internal(text) = answered("await null;\n(() => { throw new RangeError('deep') })();").await else {
        panic!()
    };
    assert!(text.contains("RangeError: deep (plugin.js:3:"), "{text}");
    let (context, _, log) = on(Site::default());
    let script = "export function resolve() { inner() }\nfunction inner() { throw new Error('e') }";
    load(script)
        .await
        .resolve(URL, None, context, Limits::resolve())
        .await
        .result
        .unwrap_err();
    let lines = log.0.lock().unwrap().join("\n");
    assert!(
        lines.contains("inner (plugin.js:2:") && lines.contains("resolve (plugin.js:1:"),
        "{lines}"
    );
}

#[tokio::test]
async fn rejections_that_nobody_handles_fail_the_call_and_handled_ones_do_not() {
    let GuestError::Internal(text) = answered("Promise.reject(new Error('lost'));").await else {
        panic!()
    };
    assert!(text.contains("lost"), "{text}");
    assert_eq!(
        answered("http.get('https://other.example/').send(); throw new PluginError('gone', 'x')").await,
        GuestError::Gone("x".into())
    );
    assert_eq!(
        value("const p = Promise.reject(1); await null; p.catch(() => {}); return 'fine'").await,
        "fine"
    );
    let GuestError::Internal(text) = answered("await new Promise(() => {});").await else {
        panic!()
    };
    assert!(text.contains("never happens"), "{text}");
}

#[tokio::test]
async fn values_that_the_host_cannot_take_are_errors_and_no_crashes() {
    for body in [
        "out.add('1', 'a').size(-1)",
        "out.add('1', 'a').size('x')",
        "out.add('1', 'a').size(2 ** 60)",
        "http.get('https://example.org/').timeout(NaN)",
        "storage.set('k', undefined)",
        "text.decode('x')",
        "env.random(-1)",
    ] {
        assert!(matches!(answered(body).await, GuestError::Internal(_)), "{body}");
    }
    assert_eq!(value("return 'a\\ud800b'").await, "a\u{fffd}b");
    assert!(matches!(
        error("out.add('1', 'a').kind('nonsense')").await,
        PluginFault::Answer(GuestError::Internal(_))
    ));
    assert!(matches!(
        error("out.add('1', 'a').link('file:///etc/passwd')").await,
        PluginFault::InvalidOutput { .. }
    ));
}

#[tokio::test]
async fn an_answer_of_the_wrong_shape_is_the_script_s_fault_and_not_the_site_s() {
    for (body, reason) in [
        ("return 5", "resolve: 5 is neither files nor a URL"),
        ("return true", "resolve: true is neither files nor a URL"),
        ("return 'a b'", r#"resolve: "a b" is no URL"#),
        (
            "return {}",
            "resolve: {} is no file: { url, name, size, folder, headers }",
        ),
        (
            "return [{ url: 7 }]",
            r#"resolve: {"url":7} is no file: { url, name, size, folder, headers }"#,
        ),
        (
            "return ['https://example.org/a']",
            r#"resolve: "https://example.org/a" is no file: { url, name, size, folder, headers }"#,
        ),
        ("return { files: 1 }", "resolve: 1 is no list of files"),
        (
            "return { url: 'https://example.org/a', size: -1 }",
            "resolve: a size is no whole number: -1",
        ),
    ] {
        let PluginFault::InvalidOutput {
            field: "answer",
            reason: said,
        } = error(body).await
        else {
            panic!("{body} is something else");
        };
        assert_eq!(said, reason, "{body}");
    }
    for answer in ["undefined", "5", "{ url: 'https://example.org/' }"] {
        let script = format!("export const resolve = () => {{}}; export const linkFor = () => ({answer});");
        let Err(PluginFault::InvalidOutput {
            field: "answer",
            reason,
        }) = link(&script, None).await
        else {
            panic!("{answer} is something else");
        };
        assert!(
            reason.starts_with("linkFor: ") && reason.ends_with(" is neither a URL nor a Link"),
            "{reason}"
        );
    }
    let long = format!("return {{ x: '{}' }}", "x".repeat(100_000));
    assert!(matches!(error(&long).await, PluginFault::InvalidOutput { reason, .. } if reason.len() < 200));
}

#[tokio::test]
async fn a_loop_without_end_is_ended_by_its_time_wherever_it_is() {
    for body in [
        "while (true) {}",
        "for (;;) await null;",
        "/(a+)+$/.test('a'.repeat(40) + 'b')",
        "'x'.repeat(1000).split('').sort(() => { for (;;); })",
    ] {
        let loaded = load(&format!("export async function resolve() {{ {body} }}")).await;
        let limits = Limits {
            cpu: Duration::from_millis(100),
            ..Limits::resolve()
        };
        let started = Instant::now();
        let called = loaded.resolve(URL, None, on(Site::default()).0, limits).await;
        // A script has twice what compiled code has.
        assert_eq!(
            called.result.unwrap_err(),
            PluginFault::Limit(Exceeded::Cpu(Duration::from_millis(200))),
            "{body}"
        );
        assert!(started.elapsed() < Duration::from_secs(5), "{body}");
    }
}

#[tokio::test]
async fn memory_is_the_host_s_limit_whatever_takes_it() {
    let limit = PluginFault::Limit(Exceeded::Memory(Limits::resolve().memory_bytes));
    for body in [
        "const a = []; for (;;) a.push(new Uint8Array(1 << 20));",
        "let s = 'xy'; for (;;) s += s;",
        "const a = []; for (;;) a.push({});",
        "out.title('x'.repeat(40 << 20))",
    ] {
        let limits = Limits {
            cpu: Duration::from_secs(20),
            wall: Duration::from_mins(1),
            ..Limits::resolve()
        };
        let loaded = load(&format!("export async function resolve(call, out) {{ {body} }}")).await;
        let fault = loaded
            .resolve(URL, None, on(Site::default()).0, limits)
            .await
            .result
            .unwrap_err();
        let is_too_long_a_string =
            matches!(&fault, PluginFault::Answer(GuestError::Internal(text)) if text.contains("string too long"));
        assert!(fault == limit || is_too_long_a_string, "{body}: {fault:?}");
    }
    // Who frees what is too much goes on.
    let body =
        "const a = []; try { for (;;) a.push(new Uint8Array(1 << 20)); } catch (e) { a.length = 0; return e.message }";
    assert_eq!(value(body).await, "out of memory");
}

#[tokio::test]
async fn recursion_ends_as_an_error_that_scripts_can_catch() {
    for body in [
        "(function f() { f() })()",
        "let a = []; for (let i = 0; i < 1e5; i++) a = [a]; JSON.stringify(a)",
        "JSON.parse('['.repeat(1e6))",
        "const o = { get x() { return this.x } }; o.x",
        "const p = new Proxy({}, { get: (t, k, r) => r[k] }); p.x",
        "new RegExp('('.repeat(1e5) + ')'.repeat(1e5))",
        "eval('('.repeat(1e5))",
        "let a = []; a[0] = a; a.flat(Infinity)",
        "class A { toString() { return `${this}` } } `${new A()}`",
    ] {
        let fault = error(body).await;
        assert!(
            matches!(
                &fault,
                PluginFault::Answer(GuestError::Internal(_)) | PluginFault::Limit(Exceeded::Stack)
            ),
            "{body}: {fault:?}"
        );
    }
    assert_eq!(
        value("try { (function f() { f() })() } catch (e) { return e instanceof RangeError }").await,
        "true"
    );
    // What honest scripts do fits.
    assert_eq!(
        value("return (function f(n) { return n ? f(n - 1) + 1 : 0 })(200)").await,
        "200"
    );
}

#[tokio::test]
async fn output_without_end_ends_at_a_limit() {
    let limits = || Limits {
        cpu: Duration::from_secs(20),
        wall: Duration::from_mins(1),
        ..Limits::resolve()
    };
    let script = "export async function resolve(call, out) { for (let i = 0; i < 20000; i++) out.add(i, 'a'); }";
    let fault = load(script)
        .await
        .resolve(URL, None, on(Site::default()).0, limits())
        .await
        .result
        .unwrap_err();
    assert_eq!(
        fault,
        PluginFault::Limit(Exceeded::Output("entries", limits().output.entries))
    );
    let script = "export async function resolve(call, out) { for (;;) out.add('1', 'a'); }";
    let fault = load(script)
        .await
        .resolve(URL, None, on(Site::default()).0, limits())
        .await
        .result
        .unwrap_err();
    assert_eq!(fault, PluginFault::Limit(Exceeded::Memory(limits().memory_bytes)));
}

#[tokio::test]
async fn a_script_that_bends_what_it_finds_harms_itself_only() {
    let hostile = "
        for (const type of [Object, Array, String, Map, Promise, Function, RegExp, Uint8Array]) {
            for (const key of Reflect.ownKeys(type.prototype)) {
                try { type.prototype[key] = () => { throw 'bent' } } catch {}
            }
        }
        globalThis.JSON = undefined; globalThis.PluginError = undefined; Symbol.iterator.x = 1;
        export async function resolve(call, out) { out.add('1', 'a').size(1); await http.get('https://example.org/').send(); }";
    let hostile = scripts().load(hostile.as_bytes().to_vec(), Language::Script).await;
    if let Ok(hostile) = hostile {
        let fault = hostile
            .resolve(URL, None, on(Site::default()).0, Limits::resolve())
            .await
            .result
            .unwrap_err();
        assert!(
            matches!(
                fault,
                PluginFault::Answer(_) | PluginFault::Trap { .. } | PluginFault::Limit(_)
            ),
            "{fault:?}"
        );
    }
    let body = "Array.prototype.map = () => []; globalThis.kept = 1; return 'bent'";
    assert_eq!(value(body).await, "bent");
    assert_eq!(value("return [1].map(x => x + 1) + typeof kept").await, "2undefined");
}
