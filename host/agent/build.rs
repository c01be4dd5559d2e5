//! Packs the committed descriptions for the executable: a tenth of their size.

#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "cargo speaks to build scripts through their environment; a build that fails says why"
)]

use std::{env, fs, io::Write as _, path::Path};

use flate2::{Compression, write::GzEncoder};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let made = env::var("OUT_DIR").unwrap();
    for name in ["openapi.json", "mcp-tools.json"] {
        println!("cargo::rerun-if-changed={name}");
        let mut packed = GzEncoder::new(Vec::new(), Compression::best());
        packed.write_all(&fs::read(name).unwrap()).unwrap();
        fs::write(Path::new(&made).join(format!("{name}.gz")), packed.finish().unwrap()).unwrap();
    }
}
