//! Plugins that are scripts: what they find, how they fail, and what becomes of hostile ones.

mod failing;
mod feeds;
mod logins;
mod tools;

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
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

#[tokio::test]
async fn a_script_exports_the_interfaces_of_its_functions_and_can_reach_what_its_engine_can() {
    let loaded = load("export function resolve() {}").await;
    assert_eq!(loaded.interface().exports, ["resolver"]);
    for import in ["http.send-all", "listing.[method]link.secret-header", "storage.set"] {
        assert!(loaded.interface().imports.iter().any(|has| has == import), "{import}");
    }
    for unwanted in ["vault-reveal", "workspace", "tools"] {
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

#[tokio::test]
async fn everything_about_a_listing_can_be_said() {
    let script = r#"
        export async function resolve(call, out) {
            out.title("T").description("D").cover("https://example.org/c.png").nextPage("2").askPassword("?")
                .leftOut("unreadable", "x/z").leftOut("tooManyFiles", "", 0);
            const entry = out.add("1", "a.mp4");
            entry.kind("videoStream").folder("x/y").size(5).modified(1000).checksum("sha1", "A".repeat(40)).mediaType("video/mp4")
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
    let left_out: Vec<_> = listing
        .left_out
        .iter()
        .map(|one| (one.kind.name(), one.name.as_str(), one.count))
        .collect();
    assert_eq!(left_out, [("unreadable", "x/z", 1), ("tooManyFiles", "", 0)]);
    let entry = &listing.entries[0];
    assert_eq!(
        (entry.id.as_str(), entry.name.as_str(), entry.folder.join("/").as_str()),
        ("1", "a.mp4", "x/y")
    );
    assert_eq!(entry.thumbnail.as_ref().unwrap().as_str(), "https://example.org/t.png");
    assert_eq!(entry.selected, Some(false));
    let facts = &entry.facts;
    assert_eq!(facts.kind, FileKind::VideoStream);
    assert_eq!(
        (facts.size, facts.modified_ms, facts.duration_ms),
        (Some(5), Some(1000), Some(9000))
    );
    assert_eq!(facts.checksums, [("sha1".to_owned(), "a".repeat(40))]);
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
