//! Searching and decoding for plugins, so that they stay small and cannot hang themselves.

use svc_plugin_text as search;
use transfer::FileName;

use crate::capability::{
    bindings::svc::plugin::{
        text::{self, UrlParts},
        types::Node,
    },
    state::CallState,
};

impl text::Host for CallState {
    fn parse_url(&mut self, url: String) -> wasmtime::Result<Result<UrlParts, String>> {
        let parts = search::parse_url(&url).map(|parts| UrlParts {
            scheme: parts.scheme,
            host: parts.host,
            port: parts.port,
            path: parts.path,
            query: parts.query,
            fragment: parts.fragment,
        });
        Ok(parts.map_err(|error| error.to_string()))
    }

    fn join_url(&mut self, base: String, reference: String) -> wasmtime::Result<Result<String, String>> {
        Ok(search::join_url(&base, &reference).map_err(|error| error.to_string()))
    }

    async fn regex_find(
        &mut self,
        pattern: String,
        input: String,
    ) -> wasmtime::Result<Result<Vec<Vec<Option<String>>>, String>> {
        self.search_text(input.len(), move |work| search::captures(&pattern, &input, work))
            .await
    }

    async fn html_select(&mut self, html: String, css: String) -> wasmtime::Result<Result<Vec<Node>, String>> {
        self.search_text(html.len(), move |work| search::select(&html, &css, work).map(nodes))
            .await
    }

    async fn base64_decode(&mut self, s: String) -> wasmtime::Result<Result<Vec<u8>, String>> {
        self.search_text(s.len(), move |_| search::base64_decode(&s)).await
    }

    async fn aes_decrypt_cbc(
        &mut self,
        key: Vec<u8>,
        iv: Vec<u8>,
        data: Vec<u8>,
    ) -> wasmtime::Result<Result<Vec<u8>, String>> {
        self.search_text(data.len(), move |_| search::aes_decrypt_cbc(&key, &iv, &data))
            .await
    }

    async fn digest(&mut self, alg: String, data: Vec<u8>) -> wasmtime::Result<Result<Vec<u8>, String>> {
        self.search_text(data.len(), move |_| search::digest(&alg, &data)).await
    }

    async fn sanitize_filename(&mut self, s: String) -> wasmtime::Result<String> {
        let cut = s.floor_char_boundary(search::MAX_INPUT_BYTES);
        let cleaned = self.search(cut, move |_| Ok(FileName::sanitise(&s[..cut]))).await??;
        Ok(cleaned.as_str().to_owned())
    }
}

impl CallState {
    /// [`CallState::search`] for functions whose error is a text.
    pub(super) async fn search_text<T: Send + 'static>(
        &mut self,
        len: usize,
        search: impl Fn(&mut search::Work<'_>) -> Result<T, search::TextError> + Send + 'static,
    ) -> wasmtime::Result<Result<T, String>> {
        Ok(self.search(len, search).await?.map_err(|error| error.to_string()))
    }
}

pub(super) fn nodes(found: Vec<search::Node>) -> Vec<Node> {
    let node = |node: search::Node| Node {
        tag: node.tag,
        text: node.text,
        html: node.html,
        attrs: node.attrs,
    };
    found.into_iter().map(node).collect()
}
