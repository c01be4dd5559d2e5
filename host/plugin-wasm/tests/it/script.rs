//! Plugins that are scripts: what they find, how they fail, and what becomes of hostile ones.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use plugin_host::{
    Exceeded, FileKind, GuestError, HostPattern, Link, Listing, PluginFault, runtime::Called, runtime::Language,
};
use plugin_wasm::{
    Ambient, Answer, CallContext, Exchange, Exchanged, Limits, LoadError, Loaded, Network, NetworkError, ScriptError,
    Wanted,
};

use crate::rig::{Log, context, scripts};

const URL: &str = "https://example.org/s/a%20b?p=1";

async fn load(script: &str) -> Loaded {
    scripts()
        .load(script.as_bytes().to_vec(), Language::Script)
        .await
        .unwrap()
}

async fn refused(script: impl Into<Vec<u8>>) -> ScriptError {
    match scripts().load(script.into(), Language::Script).await {
        Err(LoadError::Script(error)) => error,
        other => panic!("{other:?}"),
    }
}

/// Status, fields and body.
type Page = (u16, Vec<(String, String)>, String);

/// A site of a few pages, which notes what it is asked.
#[derive(Debug, Default)]
struct Site {
    pages: BTreeMap<String, Page>,
    asked: Mutex<Vec<String>>,
    /// How many requests are awaited before the first is answered.
    crowd: Option<tokio::sync::Barrier>,
}

impl Site {
    fn page(mut self, url: &str, status: u16, headers: &[(&str, &str)], body: &str) -> Self {
        let headers = headers
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let page = (status, headers.collect(), body.to_owned());
        self.pages.insert(url.to_owned(), page);
        self
    }

    fn text(self, url: &str, body: &str) -> Self {
        self.page(url, 200, &[], body)
    }
}

impl Network for Site {
    fn exchange(&self, exchange: Exchange) -> Exchanged<'_> {
        Box::pin(async move {
            self.asked
                .lock()
                .unwrap()
                .push(format!("{} {}", exchange.method, exchange.url));
            if let Some(crowd) = &self.crowd {
                crowd.wait().await;
            }
            let page = self.pages.get(exchange.url.as_str());
            let (status, headers, body) = page.ok_or(NetworkError::Failed("no such page".to_owned()))?.clone();
            let body = body.into();
            Ok(Answer { status, headers, body })
        })
    }
}

fn on(site: Site) -> (CallContext, Arc<Site>, Arc<Log>) {
    let (mut context, log) = context();
    let site = Arc::new(site);
    context.grants.hosts = vec!["https://example.org".parse::<HostPattern>().unwrap()];
    context.network = site.clone();
    context.ambient = Ambient::Fixed {
        now_ms: 1_767_225_600_000,
        seed: 7,
    };
    (context, site, log)
}

async fn resolve_on(site: Site, script: &str) -> Called<Listing> {
    load(script)
        .await
        .resolve(URL, Some("pw"), on(site).0, Limits::resolve())
        .await
}

async fn resolve(script: &str) -> Called<Listing> {
    resolve_on(Site::default(), script).await
}

/// Runs `body` in a script's `resolve` and gives what it answered, as the listing's title.
async fn value_on(site: Site, body: &str) -> String {
    let script =
        format!("export async function resolve(call, out) {{ out.title(await (async () => {{ {body} }})()); }}");
    resolve_on(site, &script).await.result.unwrap().title.unwrap()
}

async fn value(body: &str) -> String {
    value_on(Site::default(), body).await
}

async fn error(body: &str) -> PluginFault {
    let script = format!("export async function resolve(call, out) {{\n{body}\n}}");
    resolve(&script).await.result.unwrap_err()
}

async fn answered(body: &str) -> GuestError {
    match error(body).await {
        PluginFault::Answer(error) => error,
        other => panic!("{other:?}"),
    }
}

async fn link(script: &str, variant: Option<&str>) -> Result<Link, PluginFault> {
    let wanted = Wanted {
        url: URL,
        entry_id: "e1",
        variant_id: variant,
    };
    load(script)
        .await
        .link(wanted, on(Site::default()).0, Limits::link())
        .await
        .result
}

// ------------------------------------------------------------------ loading

#[tokio::test]
async fn a_script_exports_the_interfaces_of_its_functions_and_can_reach_what_its_engine_can() {
    let loaded = load("export function resolve() {}").await;
    assert_eq!(loaded.interface().exports, ["resolver"]);
    for import in ["http.send-all", "listing.[method]link.secret-header", "storage.set"] {
        assert!(loaded.interface().imports.iter().any(|has| has == import), "{import}");
    }
    for unwanted in ["vault-reveal", "workspace", "login"] {
        assert!(
            !loaded.interface().imports.iter().any(|has| has.starts_with(unwanted)),
            "{unwanted}"
        );
    }
    let both = load("export async function resolve() {} export const preview = () => {};").await;
    assert_eq!(both.interface().exports, ["resolver", "previewer"]);
    assert_ne!(both.hash(), loaded.hash());
    let global = load("globalThis.resolve = () => {}; export default { preview() {} };").await;
    assert_eq!(global.interface().exports, ["resolver", "previewer"]);
    assert!(load("").await.interface().exports.is_empty());
}

#[tokio::test]
async fn a_script_that_cannot_be_parsed_is_refused_with_its_place() {
    let error = refused("export function resolve() {\n  let a = ;\n}").await;
    assert!(
        matches!(
            error,
            ScriptError::Mistake {
                line: Some(2),
                column: Some(_),
                ..
            }
        ),
        "{error:?}"
    );
    assert!(error.to_string().starts_with("plugin.js:2:"), "{error}");
    let error = refused("const a = 1;\nconst b = a.b.c;\n").await;
    assert!(matches!(error, ScriptError::Mistake { line: Some(2), .. }), "{error:?}");
    assert!(error.to_string().contains("TypeError"), "{error}");
    let error = refused("import x from 'elsewhere';").await;
    assert!(error.to_string().contains("elsewhere"), "{error}");
    let error = refused("await new Promise(() => {});").await;
    assert!(error.to_string().contains("never"), "{error}");
    assert_eq!(refused(vec![0xff]).await, ScriptError::NotText);
    assert_eq!(refused(vec![b' '; 1024 * 1024 + 1]).await, ScriptError::TooLong);
}

#[tokio::test]
async fn a_top_level_without_end_is_no_plugin() {
    let refused = scripts().load(b"while (true) {}".to_vec(), Language::Script).await;
    assert!(
        matches!(refused, Err(LoadError::TryOut(PluginFault::Limit(Exceeded::Cpu(_))))),
        "{refused:?}"
    );
}

// ------------------------------------------------------------------ what scripts find

#[tokio::test]
async fn everything_about_a_listing_can_be_said() {
    let script = r#"
        export async function resolve(call, out) {
            out.title("T").description("D").cover("https://example.org/c.png").nextPage("2").askPassword("?");
            const entry = out.add("1", "a.mp4");
            entry.kind("videoStream").folder("x/y").size(5).modified(1000).checksum("sha1", "AA").mediaType("video/mp4")
                .thumbnail("https://example.org/t.png").duration(9000).notSelected();
            entry.variant("hd", "HD", 2).size(7).link("https://example.org/hd");
            entry.link(new Link("https://example.org/a").mirror("https://example.org/b").header("Referer", "x")
                .ranges(true).singleUse().expiresIn(60).maxConnections(3).audio("https://example.org/s").manifest("hls"));
            out.add(2, "b");
        }"#;
    let listing = resolve(script).await.result.unwrap();
    assert_eq!(
        (listing.title.as_deref(), listing.description.as_deref()),
        (Some("T"), Some("D"))
    );
    assert_eq!(listing.cover.unwrap().as_str(), "https://example.org/c.png");
    assert_eq!(
        (listing.next_page.as_deref(), listing.password_prompt.as_deref()),
        (Some("2"), Some("?"))
    );
    let entry = &listing.entries[0];
    assert_eq!(
        (entry.id.as_str(), entry.name.as_str(), entry.folder.join("/").as_str()),
        ("1", "a.mp4", "x/y")
    );
    assert_eq!(entry.thumbnail.as_ref().unwrap().as_str(), "https://example.org/t.png");
    assert_eq!(entry.is_selected, Some(false));
    let facts = &entry.facts;
    assert_eq!(facts.kind, FileKind::VideoStream);
    assert_eq!(
        (facts.size, facts.modified_ms, facts.duration_ms),
        (Some(5), Some(1000), Some(9000))
    );
    assert_eq!(facts.checksums, [("sha1".to_owned(), "aa".to_owned())]);
    assert_eq!(facts.media_type.as_deref(), Some("video/mp4"));
    let link = facts.link.as_ref().unwrap();
    assert_eq!(link.mirrors[0].as_str(), "https://example.org/b");
    assert_eq!(link.headers, [("referer".to_owned(), "x".to_owned())]);
    assert_eq!((link.supports_ranges, link.is_single_use), (Some(true), true));
    assert_eq!(
        (link.expires_ms, link.max_connections),
        (Some(1_767_225_660_000), Some(3))
    );
    assert_eq!(link.audio.as_ref().unwrap().url.as_str(), "https://example.org/s");
    assert_eq!(link.manifest.as_deref(), Some("hls"));
    let variant = &entry.variants[0];
    assert_eq!(
        (variant.id.as_str(), variant.label.as_str(), variant.rank),
        ("hd", "HD", 2)
    );
    assert_eq!((variant.facts.size, variant.facts.link.is_some()), (Some(7), true));
    assert_eq!(listing.entries[1].id, "2");
}

#[tokio::test]
async fn all_four_functions_are_called_with_what_they_need() {
    let script = r"
        export const preview = (call, out) => { out.title(`preview ${call.url}`); };
        export const resolve = (call, out) => { out.title(`resolve ${call.password}`); };
        export const more = (call, token, out) => { out.title(`more ${token}`); };
        export const linkFor = async (call, entry, variant) => new Link(`https://example.org/${entry}/${variant}`);";
    let loaded = load(script).await;
    let title = |called: Called<Listing>| called.result.unwrap().title.unwrap();
    let context = || on(Site::default()).0;
    assert_eq!(
        title(loaded.preview(URL, context(), Limits::preview()).await),
        format!("preview {URL}")
    );
    assert_eq!(
        title(loaded.resolve(URL, Some("pw"), context(), Limits::resolve()).await),
        "resolve pw"
    );
    assert_eq!(
        title(loaded.resolve(URL, None, context(), Limits::resolve()).await),
        "resolve undefined"
    );
    assert_eq!(
        title(loaded.more(URL, "2", context(), Limits::resolve()).await),
        "more 2"
    );
    assert_eq!(
        link(script, None).await.unwrap().url.as_str(),
        "https://example.org/e1/undefined"
    );
    assert_eq!(
        link(script, Some("hd")).await.unwrap().url.as_str(),
        "https://example.org/e1/hd"
    );
}

#[tokio::test]
async fn functions_that_a_script_lacks_are_unsupported() {
    let fault = link("export function resolve() {}", None).await.unwrap_err();
    assert!(
        matches!(fault, PluginFault::Answer(GuestError::Unsupported(_))),
        "{fault:?}"
    );
    let loaded = load("export function resolve() {}").await;
    let more = loaded.more(URL, "2", on(Site::default()).0, Limits::resolve()).await;
    assert!(
        matches!(more.result, Err(PluginFault::Answer(GuestError::Unsupported(_)))),
        "{more:?}"
    );
    let preview = loaded.preview(URL, on(Site::default()).0, Limits::preview()).await;
    assert_eq!(preview.result.unwrap_err(), PluginFault::NotExported("previewer"));
}

#[tokio::test]
async fn files_may_be_answered_instead_of_added() {
    let script = r#"
        globalThis.resolve = async () => ({ title: "T", files: [
            { url: "https://example.org/d/a%20b.zip", size: 5, headers: { Referer: "x" } },
            { url: "https://example.org/2", name: "b", id: "two" } ] });"#;
    let listing = resolve(script).await.result.unwrap();
    assert_eq!(listing.title.as_deref(), Some("T"));
    let names: Vec<_> = listing
        .entries
        .iter()
        .map(|entry| (entry.id.as_str(), entry.name.as_str()))
        .collect();
    assert_eq!(names, [("https://example.org/d/a%20b.zip", "a b.zip"), ("two", "b")]);
    assert_eq!(listing.entries[0].facts.link.as_ref().unwrap().headers.len(), 1);
    let one = resolve("export const resolve = () => 'https://example.org/one.bin';")
        .await
        .result
        .unwrap();
    assert_eq!(one.entries[0].name, "one.bin");
}

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

// ------------------------------------------------------------------ errors

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

// ------------------------------------------------------------------ hostile scripts

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

#[tokio::test]
async fn nothing_of_the_machine_is_there() {
    for name in [
        "process",
        "require",
        "Deno",
        "std",
        "os",
        "print",
        "scriptArgs",
        "XMLHttpRequest",
        "WebSocket",
        "host",
        "svc",
    ] {
        assert_eq!(
            value(&format!("return typeof globalThis['{name}']")).await,
            "undefined",
            "{name}"
        );
    }
    assert!(matches!(answered("await import('fs')").await, GuestError::Internal(_)));
}

// ------------------------------------------------------------------ the engine that is embedded

/// The folder of the engine that is embedded.
fn engine() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plugins/js-runtime")
}

#[test]
fn the_engine_that_is_embedded_was_built_from_the_sources_beside_it() {
    let of = |folder: &str, ending: &str| {
        let files = fs::read_dir(engine().join(folder))
            .unwrap()
            .map(|file| file.unwrap().path());
        let mut files: Vec<_> = files
            .filter(|file| file.extension().is_some_and(|is| is == ending))
            .collect();
        files.sort();
        files
    };
    let whole = ["Cargo.toml", "Cargo.lock"].map(|name| engine().join(name));
    let parts = [
        of("src", "js"),
        of("src", "rs"),
        of("wit", "wit"),
        of("../../plugin-sdk/wit", "wit"),
        of("snapshot", "toml"),
        of("snapshot/src", "rs"),
    ];
    let mut digest = ring::digest::Context::new(&ring::digest::SHA256);
    for file in whole.into_iter().chain(parts.into_iter().flatten()) {
        digest.update(&fs::read(file).unwrap());
    }
    let digest = data_encoding::HEXLOWER.encode(digest.finish().as_ref());
    let noted = fs::read_to_string(engine().join("js-runtime.from")).unwrap();
    assert!(
        noted.lines().any(|line| line == format!("sources {digest}")),
        "plugins/js-runtime has changed; plugins/js-runtime/build builds it again"
    );
}

#[tokio::test]
async fn the_types_for_authors_name_what_is_there() {
    let types = fs::read_to_string(engine().join("../../plugin-sdk/js/svc-plugin.d.ts")).unwrap();
    let mut globals = Vec::new();
    for line in types.lines() {
        let line = line.trim_start_matches("declare ");
        for keyword in ["const ", "class ", "function "] {
            if let Some(rest) = line.strip_prefix(keyword) {
                globals.extend(rest.split([':', ' ', '(', '<']).next().map(str::to_owned));
            }
        }
    }
    assert!(globals.len() > 10, "{globals:?}");
    for global in globals {
        assert_ne!(value(&format!("return typeof {global}")).await, "undefined", "{global}");
    }
}
