//! What the WIT says: generated.

wit_bindgen::generate!({
    path: ["../../plugin-sdk/wit", "wit"],
    world: "svc:script/js-runtime",
    generate_all,
});

export!(Plugin);

use crate::Plugin;
