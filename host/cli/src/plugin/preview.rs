//! `svc plugin preview`: the files that a plugin lists for a source URL.

use command::{Exit, environment::Environment};
use protocol::{Method, PreviewItemDto, ResolvePreviewRequest, ResolvePreviewResponse};
use transfer::ByteCount;

use crate::{service::ServiceArgs, table};

#[derive(Debug, clap::Args)]
pub struct PreviewArgs {
    /// The URL
    #[arg(value_name = "URL", value_hint = clap::ValueHint::Url)]
    link: String,
    #[command(flatten)]
    service: ServiceArgs,
}

/// An empty or missing list is a result, not a failure.
pub(crate) async fn run(args: &PreviewArgs, environment: &Environment) -> anyhow::Result<Exit> {
    let mut client = args.service.connect(environment).await?;
    let request = ResolvePreviewRequest {
        url: args.link.clone(),
        ..ResolvePreviewRequest::default()
    };
    let found: ResolvePreviewResponse = client.call(Method::GroupResolvePreview, &request).await?;
    args.service.print(&found, || lines(&found))
}

fn lines(found: &ResolvePreviewResponse) -> Vec<String> {
    let ResolvePreviewResponse { plugin, error, .. } = found;
    if !error.is_empty() {
        let allow = |host: &String| format!("allow it with: svc plugin allow {plugin} {host}");
        let hosts = found.grantable_hosts.iter().map(allow);
        return std::iter::once(error.clone()).chain(hosts).collect();
    }
    if found.items.is_empty() {
        return vec![found.message.clone()];
    }
    let row = |item: &PreviewItemDto| {
        let PreviewItemDto { name, path, size, .. } = item;
        let size = if *size == 0 {
            "?".to_owned()
        } else {
            format!("{:.1}", ByteCount(*size))
        };
        let folder = if path.is_empty() {
            String::new()
        } else {
            format!("{path}/")
        };
        [size, format!("{folder}{name}")]
    };
    let first = format!("{plugin} lists {} files: {}", found.items.len(), found.name);
    let table = table::lines([">SIZE", "FILE"], found.items.iter().map(row));
    std::iter::once(first).chain(table).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_a_message_and_an_error_are_distinguished() {
        let item = |name: &str, path: &str, size| PreviewItemDto {
            name: name.into(),
            path: path.into(),
            size,
            ..PreviewItemDto::default()
        };
        let list = ResolvePreviewResponse {
            plugin: "site@author".into(),
            name: "Share".into(),
            items: vec![item("a.zip", "", 1536), item("b.zip", "more", 0)],
            ..ResolvePreviewResponse::default()
        };
        assert_eq!(
            lines(&list),
            [
                "site@author lists 2 files: Share",
                "   SIZE  FILE",
                "1.5 KiB  a.zip",
                "      ?  more/b.zip"
            ]
        );
        let plain = ResolvePreviewResponse {
            message: "no plugin claims this URL".into(),
            ..ResolvePreviewResponse::default()
        };
        assert_eq!(lines(&plain), ["no plugin claims this URL"]);
        let refused = ResolvePreviewResponse {
            plugin: "site@author".into(),
            error: "not granted".into(),
            grantable_hosts: vec!["https://cdn.test".into()],
            ..ResolvePreviewResponse::default()
        };
        assert_eq!(
            lines(&refused),
            [
                "not granted",
                "allow it with: svc plugin allow site@author https://cdn.test"
            ]
        );
    }
}
