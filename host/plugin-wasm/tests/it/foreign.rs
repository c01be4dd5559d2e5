//! Plugins that our kit did not make: what counts is the contract, not who made the component.

use plugin_host::{GuestError, PluginFault};
use plugin_wasm::{Limits, Wanted};

use crate::rig::{Rig, context};

#[tokio::test]
async fn a_component_by_hand_lists_a_file_and_sees_nothing_of_the_machine() {
    let component = wat::parse_str(include_str!("foreign/listing.wat")).unwrap();
    let loaded = Rig::new().load(component).await;
    let imports = &loaded.interface().imports;
    assert!(
        imports.iter().all(|import| import.starts_with("listing.")),
        "{imports:?}"
    );
    let url = "https://example.org/file";
    let listing = loaded
        .resolve(url, Some("password"), context().0, Limits::resolve())
        .await;
    let listing = listing.result.unwrap();
    let [entry] = &listing.entries[..] else {
        panic!("{listing:?}")
    };
    // No environment variables and no arguments: their number is in the name.
    assert_eq!((entry.name.as_str(), entry.facts.size), ("file 0.bin", Some(42)));
    assert_eq!(entry.facts.link.as_ref().unwrap().url.as_str(), url);

    let wanted = Wanted {
        url,
        entry_id: "1",
        variant_id: None,
    };
    let link = loaded.link(wanted, context().0, Limits::link()).await.result;
    let unsupported = GuestError::Unsupported(String::new());
    assert_eq!(link.unwrap_err(), PluginFault::Answer(unsupported));
}
