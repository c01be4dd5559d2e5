//! The WIT contract as generated Rust: a trait per interface that this host implements, and a set of indices per
//! interface that it calls.

wasmtime::component::bindgen!({
    path: ["../../plugin-sdk/wit", "../../plugins/js-runtime/wit"],
    inline: "
        package svc:host;
        world sandbox {
            import svc:plugin/env@0.1.0;
            import svc:plugin/log@0.1.0;
            import svc:plugin/http@0.1.0;
            import svc:plugin/vault@0.1.0;
            import svc:plugin/vault-reveal@0.1.0;
            import svc:plugin/tools@0.1.0;
            import svc:plugin/storage@0.1.0;
            import svc:plugin/text@0.1.0;
            import svc:plugin/listing@0.1.0;
            import svc:plugin/feed-sink@0.1.0;
            import svc:plugin/login-ui@0.1.0;
            import svc:plugin/workspace@0.1.0;
            import svc:script/answer@0.1.0;
            export svc:plugin/resolver@0.1.0;
            export svc:plugin/previewer@0.1.0;
            export svc:plugin/feed-handler@0.1.0;
            export svc:plugin/hook-handler@0.1.0;
            export svc:plugin/post-processor@0.1.0;
            export svc:plugin/login@0.1.0;
            export svc:script/script@0.1.0;
        }
    ",
    world: "svc:host/sandbox",
    imports: {
        "svc:plugin/http.send": async | trappable,
        "svc:plugin/http.send-all": async | trappable,
        "svc:plugin/http.[method]response.select": async | trappable,
        "svc:plugin/http.[method]response.json": async | trappable,
        "svc:plugin/http.[method]response.regex": async | trappable,
        "svc:plugin/text.regex-find": async | trappable,
        "svc:plugin/text.html-select": async | trappable,
        "svc:plugin/text.base64-decode": async | trappable,
        "svc:plugin/text.aes-decrypt-cbc": async | trappable,
        "svc:plugin/text.digest": async | trappable,
        "svc:plugin/text.sanitize-filename": async | trappable,
        "svc:plugin/vault.has": async | trappable,
        "svc:plugin/vault.forget": async | trappable,
        "svc:plugin/vault.digest": async | trappable,
        "svc:plugin/vault.hmac": async | trappable,
        "svc:plugin/vault.rsa-encrypt": async | trappable,
        "svc:plugin/vault-reveal.reveal": async | trappable,
        "svc:plugin/tools.discover": async | trappable,
        "svc:plugin/storage.get": async | trappable,
        "svc:plugin/storage.set": async | trappable,
        "svc:plugin/storage.remove": async | trappable,
        "svc:plugin/storage.keys": async | trappable,
        "svc:plugin/workspace.[method]dir.size": async | trappable,
        "svc:plugin/workspace.[method]dir.read": async | trappable,
        "svc:plugin/workspace.[method]dir.write-new": async | trappable,
        "svc:plugin/workspace.[method]dir.rename": async | trappable,
        "svc:plugin/workspace.[method]dir.unpack": async | trappable,
        "svc:plugin/workspace.[method]dir.mux": async | trappable,
        default: trappable,
    },
    exports: { default: async },
    with: {
        "svc:plugin/http.request": crate::http::Request,
        "svc:plugin/http.response": crate::http::Response,
        "svc:plugin/listing.listing": crate::listing::ListingHandle,
        "svc:plugin/listing.entry": crate::listing::EntryRef,
        "svc:plugin/listing.link": crate::listing::LinkBuilder,
        "svc:plugin/feed-sink.sink": crate::feed::SinkHandle,
        "svc:plugin/feed-sink.item": crate::feed::ItemRef,
        "svc:plugin/login-ui.screen": crate::capability::login::ScreenHandle,
        "svc:plugin/workspace.dir": crate::capability::workspace::DirHandle,
    },
});
