//! Guests: small core modules by hand, made into components with the real contract.

#![expect(clippy::unwrap_used, reason = "the helpers of tests fail as tests do")]

use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

/// The contract as plugins are built for it.
const WIT: &str = include_str!("../../../../../../plugin-sdk/wit/plugin.wit");

/// All that a guest may import; what it does not use is left out of the component.
const WORLD: &str = "world test {
    import env; import log; import http; import vault; import text; import listing;
    export resolver; export previewer;
}";

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
    let mut resolve = Resolve::default();
    let package = resolve.push_str("plugin.wit", &format!("{WIT}\n{WORLD}")).unwrap();
    let world = resolve.select_world(&[package], Some("test")).unwrap();
    let mut module = wat::parse_str(wat).unwrap();
    embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8).unwrap();
    let mut encoder = ComponentEncoder::default().validate(true).module(&module).unwrap();
    encoder.encode().unwrap()
}
