//! Packs the committed description for the executable, a tenth of its size, and lists the files of the web interface.

#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "cargo speaks to build scripts through their environment; a build that fails says why"
)]

use std::{
    collections::BTreeMap,
    env,
    fmt::Write as _,
    fs,
    io::Write as _,
    path::{Path, PathBuf},
};

use flate2::{Compression, write::GzEncoder};

const NAME: &str = "openapi.json";

/// The built web interface. It is committed, so that building the service needs no Node.js.
const PAGE: &str = "../web/dist";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={NAME}");
    let made = env::var("OUT_DIR").unwrap();
    let mut packed = GzEncoder::new(Vec::new(), Compression::best());
    packed.write_all(&fs::read(NAME).unwrap()).unwrap();
    fs::write(Path::new(&made).join(format!("{NAME}.gz")), packed.finish().unwrap()).unwrap();
    println!("cargo::rerun-if-changed={PAGE}");
    assert!(
        Path::new(PAGE).join("index.html.gz").exists() || Path::new(PAGE).join("index.html").exists(),
        "{PAGE} has no index.html: it is committed, and host/web/build makes it"
    );
    fs::write(Path::new(&made).join("page.rs"), table(Path::new(PAGE))).unwrap();
}

/// The forms of a file: as it is, with gzip and with brotli.
type Forms = [Option<PathBuf>; 3];

/// Every file of the page with its forms, as an expression.
fn table(directory: &Path) -> String {
    let mut files: BTreeMap<String, Forms> = BTreeMap::new();
    let mut directories = vec![directory.to_owned()];
    while let Some(within) = directories.pop() {
        for entry in fs::read_dir(&within).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                directories.push(path);
                continue;
            }
            let name = path
                .strip_prefix(directory)
                .unwrap()
                .to_str()
                .unwrap()
                .replace('\\', "/");
            let (name, form) = match name.rsplit_once('.') {
                Some((name, "gz")) => (name, 1),
                Some((name, "br")) => (name, 2),
                _ => (name.as_str(), 0),
            };
            files.entry(name.to_owned()).or_default()[form] = Some(fs::canonicalize(path).unwrap());
        }
    }
    let mut text = "&[".to_owned();
    for (name, forms) in files {
        let [plain, gzip, brotli] = forms.map(|form| match form {
            Some(path) => format!("Some(include_bytes!({:?}))", path.to_str().unwrap()),
            None => "None".to_owned(),
        });
        write!(
            text,
            "File {{ name: {name:?}, plain: {plain}, gzip: {gzip}, brotli: {brotli} }},"
        )
        .unwrap();
    }
    text + "]"
}
