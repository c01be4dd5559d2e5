//! What scripts find: requests, texts, storage, the host's time and chance.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use plugin_host::{GuestError, PluginFault};
use plugin_wasm::{Answer, Exchange, Exchanged, Limits, Network};

use super::{Site, URL, answered, error, load, on, resolve_on, value, value_on};

#[tokio::test]
async fn requests_carry_what_was_put_into_them_and_responses_give_what_came() {
    let site = || {
        Site::default().page(
            "https://example.org/api?q=a+b&r=1",
            200,
            &[("content-type", "text/html"), ("x-a", "1"), ("x-a", "2")],
            "<a class=f href=/x>T&amp;<b>u</b></a>",
        )
    };
    let begin = "const r = await http.get('https://example.org/api').query('q', 'a b').query({ r: 1 }).header('X-B', 'c').send();";
    let cases = [
        ("return r.status;", "200"),
        ("return r.ok;", "true"),
        ("return r.url;", "https://example.org/api?q=a+b&r=1"),
        (
            "return r.header('X-A') + r.headerAll('x-a').length + r.headers.get('x-none');",
            "12null",
        ),
        ("return r.text().length;", "37"),
        ("return r.bytes() instanceof Uint8Array && r.bytes().length;", "0"),
        (
            "return JSON.stringify(r.select('a.f')[0]);",
            r#"{"tag":"a","text":"T&u","html":"T&amp;<b>u</b>","attributes":{"class":"f","href":"/x"}}"#,
        ),
        ("return r.select('a')[0].attribute('href');", "/x"),
        ("return r.regex('<(\\\\w+)', 1) + '|' + r.regex(/href/);", "a,b|href"),
    ];
    for (body, expect) in cases {
        let (first, second) = (format!("{begin} {body}"), format!("{begin} r.bytes(); {body}"));
        let body = if expect == "0" { second } else { first };
        assert_eq!(value_on(site(), &body).await, expect, "{body}");
    }
}

#[tokio::test]
async fn json_is_searched_by_the_host_and_read_by_the_script() {
    let site = || {
        Site::default().text(
            "https://example.org/j",
            r#"{"files": [{"name": "ä", "size": 5}], "n": null}"#,
        )
    };
    let get = "const r = await http.get('https://example.org/j').send();";
    assert_eq!(
        value_on(site(), &format!("{get} return r.json('/files')[0].name")).await,
        "ä"
    );
    assert_eq!(
        value_on(site(), &format!("{get} return r.json().files[0].size")).await,
        "5"
    );
    assert_eq!(value_on(site(), &format!("{get} return r.json('/n')")).await, "null");
    let script = format!("export async function resolve() {{ {get} r.json('/gone'); }}");
    let fault = resolve_on(site(), &script).await.result.unwrap_err();
    assert!(matches!(fault, PluginFault::Answer(GuestError::Parse(_))), "{fault:?}");
}

#[tokio::test]
async fn a_form_a_text_and_bytes_are_sent() {
    #[derive(Debug, Default)]
    struct Echo;
    impl Network for Echo {
        fn exchange(&self, exchange: Exchange) -> Exchanged<'_> {
            Box::pin(async move {
                let mut headers = exchange.headers.iter();
                let kind = headers.find(|(name, _)| name.eq_ignore_ascii_case("content-type"));
                let kind = kind.map_or("", |(_, value)| value);
                let body = String::from_utf8_lossy(&exchange.body).into_owned();
                let body = format!("{} {kind} {body}", exchange.method).into();
                Ok(Answer {
                    status: 200,
                    headers: Vec::new(),
                    body,
                })
            })
        }
    }
    let cases = [
        (
            "http.post(u).form({ a: 'b c', d: 1 })",
            "POST application/x-www-form-urlencoded a=b+c&d=1",
        ),
        ("http.post(u).text('x', 'text/x')", "POST text/x x"),
        (
            "http.request('PUT', u).json({ a: [1] })",
            r#"PUT application/json {"a":[1]}"#,
        ),
        (
            "http.post(u).header('Content-Type', 'a/b').bytes(new Uint8Array([65, 66]))",
            "POST a/b AB",
        ),
    ];
    for (request, expect) in cases {
        let script = format!(
            "export async function resolve(call, out) {{ const u = 'https://example.org/'; out.title((await {request}.send()).text()); }}"
        );
        let (mut context, ..) = on(Site::default());
        context.network = Arc::new(Echo);
        let called = load(&script).await.resolve(URL, None, context, Limits::resolve()).await;
        assert_eq!(called.result.unwrap().title.unwrap(), expect);
    }
    let script = "export async function resolve(call, out) {
        const r = await fetch('https://example.org/', { method: 'POST', headers: { 'Content-Type': 'a/b' }, body: 'x' });
        out.title(await r.text()); }";
    let (mut context, ..) = on(Site::default());
    context.network = Arc::new(Echo);
    let called = load(script).await.resolve(URL, None, context, Limits::resolve()).await;
    assert_eq!(called.result.unwrap().title.unwrap(), "POST a/b x");
}

#[tokio::test]
async fn what_is_asked_for_together_is_sent_together() {
    let pages = (0..6).fold(Site::default(), |site, n| {
        site.text(&format!("https://example.org/{n}"), &n.to_string())
    });
    // Nobody is answered before all have asked.
    let site = Site {
        crowd: Some(tokio::sync::Barrier::new(6)),
        ..pages
    };
    let script = "export async function resolve(call, out) {
        const pages = await Promise.all([0, 1, 2, 3, 4, 5].map(n => http.get(`https://example.org/${n}`).send()));
        out.title(pages.map(page => page.text()).join('')); }";
    let called = resolve_on(site, script).await;
    assert_eq!(called.result.unwrap().title.unwrap(), "012345");
    assert_eq!(called.report.requests, 6);
}

#[tokio::test]
async fn a_status_that_is_no_success_is_the_right_error_unless_any_will_do() {
    let answer = async |status: u16, headers: &[(&str, &str)], body: &str| {
        let site = Site::default().page("https://example.org/x", status, headers, "");
        resolve_on(site, &format!("export async function resolve(call, out) {{ {body} }}"))
            .await
            .result
    };
    let send = "await http.get('https://example.org/x').send();";
    let cases = [
        (401, GuestError::LoginRequired(None)),
        (403, GuestError::Forbidden("the site refuses access".into())),
        (404, GuestError::NotFound("the site does not have it".into())),
        (410, GuestError::Gone("the site no longer has it".into())),
        (429, GuestError::RateLimited(Some(Duration::from_secs(30)))),
        (503, GuestError::Upstream(503)),
    ];
    for (status, expect) in cases {
        assert_eq!(
            answer(status, &[("retry-after", "30")], send).await.unwrap_err(),
            PluginFault::Answer(expect)
        );
    }
    let any = "out.title((await http.get('https://example.org/x').sendAny()).status);";
    assert_eq!(answer(404, &[], any).await.unwrap().title.unwrap(), "404");
    let fetched = "const r = await fetch('https://example.org/x'); out.title(`${r.ok} ${r.status}`);";
    assert_eq!(answer(500, &[], fetched).await.unwrap().title.unwrap(), "false 500");
}

#[tokio::test]
async fn hosts_that_were_not_granted_are_denied_and_can_be_caught() {
    let fault = error("await http.get('https://other.example/').send();").await;
    assert!(matches!(fault, PluginFault::Answer(GuestError::Denied(_))), "{fault:?}");
    assert_eq!(
        value("try { await fetch('https://other.example/') } catch (e) { return e.code }").await,
        "denied"
    );
    assert_eq!(
        value("return (await Promise.allSettled([fetch('https://other.example/'), 1])).map(r => r.status)").await,
        "rejected,fulfilled"
    );
}

#[tokio::test]
async fn urls_are_read_joined_and_changed() {
    let cases = [
        ("return call.url.segments", "s,a b"),
        (
            "return [call.url.protocol, call.url.host, call.url.pathname, call.url.search, call.url.origin]",
            "https:,example.org,/s/a%20b,?p=1,https://example.org",
        ),
        ("return call.url.searchParams.get('p')", "1"),
        ("return new URL('../x?y=1#z', call.url)", "https://example.org/x?y=1#z"),
        (
            "const u = new URL('http://h:81/a#f'); u.searchParams.set('q', 'a&b c'); u.hash = ''; return u + u.port + u.hostname",
            "http://h:81/a?q=a%26b+c81h",
        ),
        (
            "const u = new URL('http://h/a'); u.pathname = 'x/y'; u.search = 'q=1'; return u.href + JSON.stringify({ u })",
            r#"http://h/x/y?q=1{"u":"http://h/x/y?q=1"}"#,
        ),
        (
            "return URL.canParse('nothing') + String(URL.parse('x:')?.href)",
            "falsex:",
        ),
        (
            "const p = new URLSearchParams({ a: 1 }); p.append('a', 'ü'); p.delete('b'); return p + p.getAll('a').length",
            "a=1&a=%C3%BC2",
        ),
        (
            "return [...new URLSearchParams('?a=1&b=%zz+c')].join('|')",
            "a,1|b,%zz c",
        ),
    ];
    for (body, expect) in cases {
        assert_eq!(value(body).await, expect, "{body}");
    }
}

#[tokio::test]
async fn texts_are_searched_decoded_and_digested() {
    let cases = [
        ("return text.select('<p>a</p><p>b</p>', 'p').map(n => n.text)", "a,b"),
        (r"return text.captures(/(\w)=(\d)/, 'a=1 b=2').map(m => m[2])", "1,2"),
        ("return text.captures('(a)|(b)', 'b')[0][1]", "undefined"),
        ("return text.decode(text.base64('w6Q='))", "ä"),
        (
            "return text.hex(text.digest('md5', 'a'))",
            "0cc175b9c0f1b6a831c399e269772661",
        ),
        ("return text.filename('a/b')", "a_b"),
        (
            "return new TextDecoder().decode(new TextEncoder().encode('ä\\u{1F600}'))",
            "ä\u{1F600}",
        ),
    ];
    for (body, expect) in cases {
        assert_eq!(value(body).await, expect, "{body}");
    }
    assert!(matches!(answered("text.captures('(', '')").await, GuestError::Parse(_)));
}

#[tokio::test]
async fn storage_keeps_values_and_settings_have_types() {
    let script = "export async function resolve(call, out) {
        const count = (storage.get('count') ?? 0) + 1;
        storage.set('count', count);
        storage.set('other', { a: [1, 'ä'] }, 60);
        const keys = storage.keys('c');
        storage.remove('other');
        out.title(JSON.stringify([count, keys, storage.get('other') ?? null, settings.get('depth', 5), settings.get('deep', false),
            settings.get('none', 'd'), settings.get('depth'), settings.get('none') ?? null])); }";
    let loaded = load(script).await;
    let (mut context, ..) = on(Site::default());
    context.settings = BTreeMap::from([
        ("depth".to_owned(), "2".to_owned()),
        ("deep".to_owned(), "true".to_owned()),
    ]);
    for count in 1..3 {
        let listing = loaded
            .resolve(URL, None, context.clone(), Limits::resolve())
            .await
            .result
            .unwrap();
        assert_eq!(
            listing.title.unwrap(),
            format!(r#"[{count},["c{}"],null,2,true,"d","2",null]"#, "ount")
        );
    }
}

#[tokio::test]
async fn time_and_chance_are_the_host_s_so_that_a_call_repeats() {
    let body = "return JSON.stringify([Date.now(), new Date().toISOString(), env.now(), Math.random(), Math.random(), [...env.random(3)]])";
    let first = value(body).await;
    assert!(
        first.starts_with(r#"[1767225600000,"2026-01-01T00:00:00.000Z",1767225600000,0."#),
        "{first}"
    );
    assert_eq!(value(body).await, first);
    let many =
        "const n = Array.from({ length: 1000 }, Math.random); return n.every(x => x >= 0 && x < 1) && new Set(n).size";
    assert_eq!(value(many).await, "1000");
    assert_eq!(
        value("return [env.locale, env.hostVersion, env.hasFeature('nothing'), env.timeLeft() > 1000]").await,
        "en,0.1.0,false,true"
    );
}

#[tokio::test]
async fn what_a_script_says_is_heard() {
    let script = "export async function resolve(call, out) {
        log.info('a', 1, { b: [2] }); console.warn(new TypeError('c')); log.progress(1, 2, 'n'); }";
    let (context, _, log) = on(Site::default());
    load(script)
        .await
        .resolve(URL, None, context, Limits::resolve())
        .await
        .result
        .unwrap();
    let lines = log.0.lock().unwrap().clone();
    assert_eq!(lines[0], r#"Info: a 1 {"b":[2]}"#);
    assert!(
        lines[1].starts_with("Warn: TypeError: c\n") && lines[1].contains("plugin.js:2:"),
        "{lines:?}"
    );
    assert_eq!(lines[2], "1 n");
}
