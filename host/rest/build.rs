//! Packs the committed description for the executable: a tenth of its size.

#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "cargo speaks to build scripts through their environment; a build that fails says why"
)]

use std::{env, fs, io::Write as _, path::Path};

use flate2::{Compression, write::GzEncoder};

const NAME: &str = "openapi.json";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={NAME}");
    let made = env::var("OUT_DIR").unwrap();
    let mut packed = GzEncoder::new(Vec::new(), Compression::best());
    packed.write_all(&fs::read(NAME).unwrap()).unwrap();
    fs::write(Path::new(&made).join(format!("{NAME}.gz")), packed.finish().unwrap()).unwrap();
}
