//! `svc plugin new`: creates a working plugin from a template.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use clap::ValueEnum;
use command::{Exit, UsageError, print_lines};
use plugin_host::{Identity, fixture, manifest};

pub(super) const EXAMPLES: &str = "Examples:
  svc plugin new my-site                           in Rust
  svc plugin new my-site --lang js                 in JavaScript: no compiler, no build
  svc plugin new my-site --kind resolver --author acme
  svc plugin new my-site --kind feed               reads what \"svc rss\" subscribes to
  svc plugin new my-site --kind login              lists files for those who have an account
  svc plugin new my-site --kind hook               is told what becomes of downloads
  svc plugin new my-site --kind post               works on the files of finished downloads
  svc plugin new my-site --sdk ../svc/plugin-sdk   with the SDK of a checkout

The plugin that it makes works: \"svc plugin build\" and \"svc plugin test\" pass at once.";

/// The placeholder in the templates: in texts, in code and as a type.
const NAME: &str = "my-plugin";
const MODULE: &str = "my_plugin";
const TYPE: &str = "MyPlugin";
const TITLE: &str = "My plugin";

/// Encloses the parts of templates that only plugins with a preview have.
const PREVIEW: &str = "// preview\n";
const PREVIEW_END: &str = "// end of preview\n";

/// What the manifest and the description of a plugin say that reads feeds, or logs in, instead.
const RESOLVER: &str = r#""resolver": { "match": ["*://*/*index.json"], "multi": true },
    "preview": true"#;
const FEED: &str = r#""feed": { "match": ["*://*/*index.json"] }"#;
const LOGIN: &str = r#""resolver": { "match": ["https://files.example.org/*index.json"], "multi": true },
    "login": { "slots": [{ "id": "main", "title": "Account", "modes": ["password"] }] }"#;
const HOOK: &str = r#""hook": { "events": ["done", "error"], "match": ["https://files.example.org/*"] }"#;
const POST: &str = r#""post": {}"#;
const ONE_HOST: &str = r#"{ "hosts": ["https://files.example.org"] }"#;
const GIVEN_HOST: &str = r#"{ "inputHost": true }"#;
const SITE: &str = r#"{
    "hosts": ["https://files.example.org"],
    "secrets": { "access": ["https://files.example.org"] }
  }"#;
const DOWNLOADS: &str = "Downloads the files that a site lists in";
const READS: &str = "A feed of the files that a site lists in";
const LISTED: [&str; 2] = [
    "Downloads the files that a site lists in an index.json",
    "Downloads the files that a site lists in an `index.json`",
];
const TELLS: &str = "Tells a site which of its files were downloaded";
const NOTES: &str = "Writes beside each download where it is from";

/// The SDK's folder in a checkout.
const SDK: &str = "plugin-sdk";

/// The template's dependency on it.
const TEMPLATE_DEPENDENCY: &str = "svc-plugin = { path = \"../..\" }";

macro_rules! template {
    ($language:literal: $($file:literal $(as $name:literal)?),* $(,)?) => {
        &[$((template!(@name $file $(, $name)?), include_str!(concat!("../../../plugin-sdk/templates/", $language, "/", $file)))),*]
    };
    (@name $file:literal) => { $file };
    (@name $file:literal, $name:literal) => { $name };
}

type Files = &'static [(&'static str, &'static str)];

/// The templates of a language: what every plugin has, and what those have that resolve, read feeds, look on, work on finished
/// files or log in.
struct Templates {
    all: Files,
    resolver: Files,
    feed: Files,
    hook: Files,
    post: Files,
    login: Files,
}

const RUST: Templates = Templates {
    all: template!("rust":
        "Cargo.toml",
        "README.md",
        "ci.yml" as ".github/workflows/plugin.yml",
        "gitignore" as ".gitignore",
        "plugin.json",
        "tests/fixtures.rs",
    ),
    resolver: template!("rust": "fixtures/link.json", "fixtures/list.json", "src/lib.rs"),
    feed: template!("rust": "feed.json" as "fixtures/feed.json", "feed.rs" as "src/lib.rs"),
    hook: template!("rust":
        "hook-done.json" as "fixtures/done.json",
        "hook-error.json" as "fixtures/error.json",
        "hook.rs" as "src/lib.rs",
    ),
    post: template!("rust": "post.json" as "fixtures/post.json", "post.rs" as "src/lib.rs"),
    login: template!("rust":
        "login-list.json" as "fixtures/list.json",
        "login-required.json" as "fixtures/login-required.json",
        "login.json" as "fixtures/login.json",
        "login.rs" as "src/lib.rs",
    ),
};

const JS: Templates = Templates {
    all: template!("js":
        "README.md",
        "ci.yml" as ".github/workflows/plugin.yml",
        "gitignore" as ".gitignore",
        "plugin.json",
    ),
    resolver: template!("js": "fixtures/link.json", "fixtures/list.json", "plugin.js"),
    feed: template!("js": "feed.json" as "fixtures/feed.json", "feed.js" as "plugin.js"),
    hook: template!("js":
        "hook-done.json" as "fixtures/done.json",
        "hook-error.json" as "fixtures/error.json",
        "hook.js" as "plugin.js",
    ),
    // There are templates in Rust only.
    post: &[],
    login: &[],
};

impl Templates {
    fn files(&self, main: Kind) -> impl Iterator<Item = &'static (&'static str, &'static str)> + use<> {
        let own = match main {
            Kind::Resolver | Kind::Preview => self.resolver,
            Kind::Feed => self.feed,
            Kind::Hook => self.hook,
            Kind::Post => self.post,
            Kind::Login => self.login,
        };
        self.all.iter().chain(own)
    }
}

/// TypeScript types of the JavaScript API.
const TYPES: &str = include_str!("../../../plugin-sdk/js/svc-plugin.d.ts");

const LICENSE: &str = include_str!("../../../plugin-sdk/templates/LICENSE");

#[derive(Debug, clap::Args)]
pub struct NewArgs {
    /// The folder to make; its last part is the plugin's name, of lower-case letters, digits and -
    #[arg(value_name = "NAME", value_hint = clap::ValueHint::DirPath)]
    folder: PathBuf,
    /// What to write it in
    #[arg(long, value_enum, default_value = "rust")]
    lang: LanguageName,
    /// What it can do: list the files of a page, also before they are downloaded; read a feed; be told what becomes of
    /// downloads; work on finished ones; or log in to list files
    #[arg(long, value_enum, value_delimiter = ',', default_value = "resolver,preview")]
    kind: Vec<Kind>,
    /// Who makes it: the part of its identity after @
    #[arg(long, default_value = "me")]
    author: String,
    /// The folder of the Rust SDK [default: plugin-sdk of the checkout that svc or this folder is in]
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    sdk: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum LanguageName {
    Rust,
    Js,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Kind {
    Resolver,
    Preview,
    Feed,
    Hook,
    Post,
    Login,
}

pub(super) fn run(args: &NewArgs) -> anyhow::Result<Exit> {
    let (folder, name) = (args.folder.as_path(), args.name());
    let identity: Identity = format!("{name}@{}", args.author)
        .parse()
        .map_err(|error: plugin_host::InvalidIdentity| UsageError::new("NAME", error.to_string()))?;
    if !name.starts_with(|c: char| c.is_ascii_lowercase()) {
        return Err(UsageError::new("NAME", "a plugin's name begins with a letter").into());
    }
    if folder.symlink_metadata().is_ok() {
        return Err(UsageError::new("NAME", format!("{} is there already", folder.display())).into());
    }
    let main = args.main_kind();
    if !matches!(main, Kind::Resolver | Kind::Preview) && args.kind.len() > 1 {
        let problem = "a new plugin does one thing or resolves links: \"feed\", \"hook\", \"post\" and \"login\" each stand \
                       alone";
        return Err(UsageError::new("--kind", problem).into());
    }
    if matches!(main, Kind::Login | Kind::Post) && matches!(args.lang, LanguageName::Js) {
        let problem = "the templates of \"login\" and \"post\" are in Rust: use \"--lang rust\"";
        return Err(UsageError::new("--kind", problem).into());
    }
    let (templates, dependency) = match args.lang {
        LanguageName::Rust => (RUST, Some(dependency(args.sdk.as_deref())?)),
        LanguageName::Js => (JS, None),
    };
    fs::create_dir(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    for (name, text) in templates.files(main) {
        let text = personal(text, args, dependency.as_deref());
        write(&folder.join(name), &text)?;
    }
    write(&folder.join("LICENSE"), LICENSE)?;
    if matches!(args.lang, LanguageName::Js) {
        write(&folder.join("schema/svc-plugin.d.ts"), TYPES)?;
    }
    write(&folder.join("schema/plugin.schema.json"), manifest::SCHEMA)?;
    write(&folder.join("schema/fixture.schema.json"), fixture::SCHEMA)?;
    let mut lines = vec![format!("made {identity} in {}", folder.display())];
    lines.extend(dependency.map(|dependency| format!("it uses the SDK as {dependency}")));
    let build = match args.lang {
        LanguageName::Rust => format!("svc plugin build {0} && svc plugin test {0}", folder.display()),
        LanguageName::Js => format!("svc plugin test {}", folder.display()),
    };
    lines.push(format!("next: {build}"));
    print_lines(lines)
}

impl NewArgs {
    /// The kind that decides on the templates.
    fn main_kind(&self) -> Kind {
        let own = [Kind::Feed, Kind::Hook, Kind::Post, Kind::Login];
        own.into_iter()
            .find(|kind| self.kind.contains(kind))
            .unwrap_or(Kind::Resolver)
    }

    /// The plugin's name; empty if the folder's name is not UTF-8.
    fn name(&self) -> &str {
        let last = self.folder.file_name().and_then(|name| name.to_str());
        last.unwrap_or_default()
    }
}

/// The template with the plugin's own values.
fn personal(text: &str, args: &NewArgs, dependency: Option<&str>) -> String {
    let has_preview = args.kind.contains(&Kind::Preview);
    let mut text = preview(text, has_preview);
    match args.main_kind() {
        Kind::Feed => text = text.replace(RESOLVER, FEED).replace(DOWNLOADS, READS),
        Kind::Hook => {
            text = text.replace(RESOLVER, HOOK).replace(GIVEN_HOST, ONE_HOST);
            text = LISTED.iter().fold(text, |text, listed| text.replace(listed, TELLS));
        }
        Kind::Post => {
            text = text.replace(RESOLVER, POST).replace(GIVEN_HOST, "{}");
            text = LISTED.iter().fold(text, |text, listed| text.replace(listed, NOTES));
        }
        Kind::Login => text = text.replace(RESOLVER, LOGIN).replace(GIVEN_HOST, SITE),
        Kind::Resolver | Kind::Preview if !has_preview => {
            text = text.replace(": Resolver, Preview)", ": Resolver)");
            text = text.replace(" \"multi\": true },\n    \"preview\": true\n", " \"multi\": true }\n");
        }
        Kind::Resolver | Kind::Preview => {}
    }
    if let Some(dependency) = dependency {
        text = text.replace(TEMPLATE_DEPENDENCY, dependency);
    }
    let name = args.name();
    let words: Vec<_> = name.split(['-', '_']).filter(|word| !word.is_empty()).collect();
    let capital = |word: &str| word[..1].to_ascii_uppercase() + &word[1..];
    let in_title = capital(&words.join(" "));
    let type_name: String = words.iter().map(|word| capital(word)).collect();
    text.replace(&format!("{NAME}@me"), &format!("{name}@{}", args.author))
        .replace(NAME, name)
        .replace(MODULE, &name.replace('-', "_"))
        .replace(TYPE, &type_name)
        .replace(TITLE, &in_title)
}

/// Keeps or removes the parts for a preview.
fn preview(text: &str, has_preview: bool) -> String {
    match text
        .split_once(PREVIEW)
        .and_then(|(before, rest)| Some((before, rest.split_once(PREVIEW_END)?)))
    {
        Some((before, (part, after))) => {
            let part = if has_preview { part } else { "" };
            format!("{before}{part}{after}")
        }
        None => text.to_owned(),
    }
}

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

/// The dependency on the SDK; a path, because no registry has the SDK yet.
fn dependency(asked: Option<&Path>) -> anyhow::Result<String> {
    let found = match asked {
        Some(sdk) => Some(sdk.to_owned()).filter(|sdk| is_sdk(sdk)),
        None => near(std::env::current_exe().ok()).or_else(|| near(std::env::current_dir().ok())),
    };
    let Some(sdk) = found else {
        let problem = match asked {
            Some(sdk) => format!("{} is not the folder of svc-plugin", sdk.display()),
            None => "the SDK is not published yet: name the folder plugin-sdk of a checkout of Svc".to_owned(),
        };
        return Err(UsageError::new("--sdk", problem).into());
    };
    let sdk = fs::canonicalize(&sdk).with_context(|| format!("cannot find {}", sdk.display()))?;
    let path = serde_json::to_string(&sdk.display().to_string())?;
    Ok(format!("svc-plugin = {{ path = {path} }}"))
}

/// Finds the SDK in an ancestor of `path`.
fn near(path: Option<PathBuf>) -> Option<PathBuf> {
    let path = path?;
    let mut around = path.ancestors().map(|folder| folder.join(SDK));
    around.find(|sdk| is_sdk(sdk))
}

fn is_sdk(folder: &Path) -> bool {
    let text = fs::read_to_string(folder.join("Cargo.toml")).unwrap_or_default();
    text.contains("name = \"svc-plugin\"")
}

#[cfg(test)]
mod tests {
    use plugin_host::manifest::{Manifest, Reading};

    use super::*;

    fn args(name: &str, kind: &[Kind]) -> NewArgs {
        NewArgs {
            folder: name.into(),
            lang: LanguageName::Rust,
            kind: kind.to_vec(),
            author: "acme".to_owned(),
            sdk: None,
        }
    }

    const KINDS: [&[Kind]; 6] = [
        &[Kind::Resolver],
        &[Kind::Resolver, Kind::Preview],
        &[Kind::Feed],
        &[Kind::Hook],
        &[Kind::Post],
        &[Kind::Login],
    ];

    fn files(args: &NewArgs) -> impl Iterator<Item = &'static (&'static str, &'static str)> {
        RUST.files(args.main_kind()).chain(JS.files(args.main_kind()))
    }

    #[test]
    fn nothing_of_the_template_s_name_is_left() {
        for kind in KINDS {
            let args = args("photo-share", kind);
            for (name, text) in files(&args) {
                let text = personal(text, &args, Some("svc-plugin = \"1\""));
                for word in [NAME, MODULE, TYPE, TITLE, PREVIEW_END, "../.."] {
                    assert!(!text.contains(word), "{name}: {word}\n{text}");
                }
            }
        }
    }

    #[test]
    fn the_templates_of_logins_and_of_work_on_files_are_in_rust() {
        let around = tempfile::tempdir().unwrap();
        for kind in [Kind::Login, Kind::Post] {
            let args = NewArgs {
                folder: around.path().join("my-site"),
                lang: LanguageName::Js,
                ..args("x", &[kind])
            };
            assert!(run(&args).unwrap_err().to_string().contains("are in Rust"));
        }
    }

    #[test]
    fn a_folder_that_is_there_is_what_is_wrong_first() {
        let around = tempfile::tempdir().unwrap();
        let args = NewArgs {
            folder: around.path().join("my-site"),
            sdk: Some("/nowhere".into()),
            ..args("x", &[Kind::Resolver])
        };
        fs::create_dir(&args.folder).unwrap();
        assert!(run(&args).unwrap_err().to_string().contains("is there already"));
    }

    #[test]
    fn the_manifest_and_the_code_claim_what_was_asked_for() {
        for kind in KINDS {
            let args = args("x", kind);
            let has_preview = kind.contains(&Kind::Preview);
            for (name, text) in files(&args) {
                let text = personal(text, &args, None);
                match *name {
                    "plugin.json" => {
                        let (manifest, _) = Manifest::parse(text.as_bytes(), Reading::Strict).unwrap();
                        assert_eq!(manifest.identity.as_str(), "x@acme");
                        let can = manifest.capabilities;
                        assert_eq!(can.preview, has_preview);
                        let reads_feeds = args.main_kind() == Kind::Feed;
                        assert_eq!(can.feed.is_some(), reads_feeds);
                        let looks_on = args.main_kind() == Kind::Hook;
                        assert_eq!(can.hook.is_some(), looks_on);
                        let works = args.main_kind() == Kind::Post;
                        assert_eq!(can.post.is_some(), works);
                        assert_eq!(manifest.description.contains("Writes"), works);
                        assert_eq!(can.resolver.is_none(), reads_feeds || looks_on || works);
                        assert_eq!(manifest.description.contains("Tells"), looks_on);
                        assert_eq!(can.login.is_empty(), args.main_kind() != Kind::Login);
                        assert_eq!(manifest.description.contains("A feed"), reads_feeds);
                    }
                    "src/lib.rs" => assert_eq!(text.contains("Preview"), has_preview, "{text}"),
                    "plugin.js" => assert_eq!(text.contains("preview"), has_preview, "{text}"),
                    _ => {}
                }
            }
        }
    }
}
