//! What the WIT says, as the guest sees it: generated.

wit_bindgen::generate!({
    path: "wit",
    world: "sdk-imports",
});

/// Generates what a world exports; its imports are those above.
macro_rules! exports {
    ($world:literal, $macro:literal, $module:literal) => {
        wit_bindgen::generate!({
            path: "wit",
            world: $world,
            pub_export_macro: true,
            export_macro_name: $macro,
            default_bindings_module: $module,
            with: {
                "svc:plugin/types@0.1.0": crate::bindings::svc::plugin::types,
                "svc:plugin/env@0.1.0": crate::bindings::svc::plugin::env,
                "svc:plugin/log@0.1.0": crate::bindings::svc::plugin::log,
                "svc:plugin/http@0.1.0": crate::bindings::svc::plugin::http,
                "svc:plugin/vault@0.1.0": crate::bindings::svc::plugin::vault,
                "svc:plugin/vault-reveal@0.1.0": crate::bindings::svc::plugin::vault_reveal,
                "svc:plugin/tools@0.1.0": crate::bindings::svc::plugin::tools,
                "svc:plugin/storage@0.1.0": crate::bindings::svc::plugin::storage,
                "svc:plugin/text@0.1.0": crate::bindings::svc::plugin::text,
                "svc:plugin/listing@0.1.0": crate::bindings::svc::plugin::listing,
                "svc:plugin/login-ui@0.1.0": crate::bindings::svc::plugin::login_ui,
                "svc:plugin/feed-sink@0.1.0": crate::bindings::svc::plugin::feed_sink,
                "svc:plugin/workspace@0.1.0": crate::bindings::svc::plugin::workspace,
            },
        });
    };
}

/// What a resolver exports.
pub mod resolver {
    exports!("resolver-world", "export_resolver", "svc_plugin::bindings::resolver");
}

/// What a feed handler exports.
pub mod feed_handler {
    exports!(
        "feed-world",
        "export_feed_handler",
        "svc_plugin::bindings::feed_handler"
    );
}

/// What a hook exports.
pub mod hook_handler {
    exports!(
        "hook-world",
        "export_hook_handler",
        "svc_plugin::bindings::hook_handler"
    );
}

/// What a login exports.
pub mod login {
    exports!("login-world", "export_login", "svc_plugin::bindings::login");
}

/// What a post-processor exports.
pub mod post_processor {
    exports!(
        "post-world",
        "export_post_processor",
        "svc_plugin::bindings::post_processor"
    );
}

/// What a previewer exports.
pub mod previewer {
    exports!("preview-world", "export_previewer", "svc_plugin::bindings::previewer");
}
