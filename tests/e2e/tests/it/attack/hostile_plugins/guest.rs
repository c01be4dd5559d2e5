//! Guests: small core modules by hand, made into components with the real contract.

#![expect(clippy::unwrap_used, reason = "the helpers of tests fail as tests do")]

use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

/// The contract as plugins are built for it.
const WIT: &str = include_str!("../../../../../../plugin-sdk/wit/plugin.wit");

/// The memory of most guests.
pub(super) const MEMORY: &str = r#"(memory (export "memory") 1)"#;

/// A component whose preview does what `body` says. It may use the parameters `$url`, `$length` and `$listing`, and
/// `$give_back`, after which it may use the listing no more.
pub(super) fn previewer(items: &str, body: &str) -> Vec<u8> {
    let wat = format!(
        r#"(module
            (import "svc:plugin/listing@0.1.0" "[resource-drop]listing" (func $give_back (param i32)))
            {items}
            (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) i32.const 1024)
            (func (export "svc:plugin/resolver@0.1.0#resolve") (param i32 i32 i32 i32 i32 i32) (result i32) unreachable)
            (func (export "svc:plugin/resolver@0.1.0#more") (param i32 i32 i32 i32 i32) (result i32) unreachable)
            (func (export "svc:plugin/resolver@0.1.0#link-for")
                (param i32 i32 i32 i32 i32 i32 i32) (result i32) unreachable)
            (func (export "svc:plugin/previewer@0.1.0#preview")
                (param $url i32) (param $length i32) (param $listing i32) (result i32)
                {body}
                (call $give_back (local.get $listing))
                (i32.const 16)))"#
    );
    let imports = "import env; import log; import http; import vault; import text; import listing;";
    component(&wat, &format!("{imports} export resolver; export previewer;"))
}

/// A component that reads feeds as `body` says, with the parameters `$url`, `$length`, `$etag` and `$etag_length` (0
/// without one) and `$sink`.
pub(super) fn feed_handler(items: &str, body: &str) -> Vec<u8> {
    let wat = format!(
        r#"(module
            (import "svc:plugin/feed-sink@0.1.0" "[resource-drop]sink" (func $give_back (param i32)))
            {items}
            (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) i32.const 1024)
            (func (export "svc:plugin/feed-handler@0.1.0#fetch")
                (param $url i32) (param $length i32) (param $has_since i32) (param $since i64)
                (param $has_etag i32) (param $etag i32) (param $etag_length i32) (param $sink i32) (result i32)
                {body}
                (call $give_back (local.get $sink))
                (i32.const 16)))"#
    );
    component(&wat, "import feed-sink; export feed-handler;")
}

/// What `world` imports and a guest does not use is left out of its component.
fn component(wat: &str, world: &str) -> Vec<u8> {
    let mut resolve = Resolve::default();
    let contract = format!("{WIT}\nworld test {{ {world} }}");
    let package = resolve.push_str("plugin.wit", &contract).unwrap();
    let world = resolve.select_world(&[package], Some("test")).unwrap();
    let mut module = wat::parse_str(wat).unwrap();
    embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8).unwrap();
    let mut encoder = ComponentEncoder::default().validate(true).module(&module).unwrap();
    encoder.encode().unwrap()
}
