//! Our own plugin for releases, which is a script: its recorded calls, as `svc plugin test` plays them.

use std::path::Path;

use plugin_host::author::Candidate;
use plugin_wasm::{CompilerCommand, InternetConfig, LazyConfig, LazyRuntime};

/// A runtime whose compiled code stays; the engine of scripts is compiled once for all tests.
fn runtime() -> LazyRuntime {
    LazyRuntime::new(LazyConfig {
        cache_folder: Path::new(env!("CARGO_TARGET_TMPDIR")).join("lazy"),
        compiler: CompilerCommand {
            program: env!("CARGO_BIN_EXE_compile-plugin").into(),
            args: Vec::new(),
        },
        host_version: "0.1.0".to_owned(),
        locale: "en".to_owned(),
        internet: InternetConfig::default(),
    })
}

#[tokio::test]
async fn recorded_calls_give_what_they_gave() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plugins/release-assets");
    let plugin = Candidate::of_folder(&runtime(), &folder).await.unwrap();
    assert!(plugin.fixtures().len() > 15);
    for (file, fixture) in plugin.fixtures() {
        let replayed = plugin.replay(fixture.as_ref().unwrap()).await;
        assert!(
            replayed.problems.is_empty(),
            "{file}: {:#?}\n{:#}",
            replayed.problems,
            replayed.found
        );
    }
}
