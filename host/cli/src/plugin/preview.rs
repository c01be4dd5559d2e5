//! `svc plugin preview`: the files that a plugin lists for a source URL.

use command::{Exit, amount::counted, environment::Environment};
use protocol::{Method, PreviewItemDto, ResolvePreviewRequest, ResolvePreviewResponse};
use transfer::ByteCount;

use crate::{left_out, service::ServiceArgs, table};

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
    let left_out = found.left_out.iter().map(left_out::line);
    if found.items.is_empty() {
        return std::iter::once(found.message.clone()).chain(left_out).collect();
    }
    let known = ByteCount(found.total_bytes);
    let total = match found.unknown_sizes {
        0 => format!("{known:.1}"),
        unknown => format!(
            "at least {known:.1} ({} of unknown size)",
            counted(usize::try_from(unknown).unwrap_or(usize::MAX), "file")
        ),
    };
    let files = counted(found.items.len(), "file");
    let first = format!("{plugin} lists {files}, {total}: {}", found.name);
    let table = table::lines([">#", ">SIZE", "FILE"], rows(&found.items));
    std::iter::once(first).chain(table).chain(left_out).collect()
}

/// The files with the numbers by which `svc add --pick` knows them, below their folders, and their variants.
fn rows(items: &[PreviewItemDto]) -> Vec<[String; 3]> {
    let mut rows = Vec::new();
    let mut folder: Vec<&str> = Vec::new();
    for (place, item) in items.iter().enumerate() {
        let path: Vec<_> = item.path.split('/').filter(|part| !part.is_empty()).collect();
        let shared = folder.iter().zip(&path).take_while(|(one, other)| one == other).count();
        for (depth, name) in path.iter().enumerate().skip(shared) {
            rows.push([String::new(), String::new(), indented(depth, &format!("{name}/"))]);
        }
        let note = if item.selected { "" } else { " (not selected)" };
        rows.push([
            (place + 1).to_string(),
            size(item.size),
            indented(path.len(), &format!("{}{note}", item.name)),
        ]);
        rows.extend(item.variants.iter().map(|variant| {
            let name = indented(path.len() + 1, &format!("variant {}", variant.label));
            [String::new(), size(variant.size), name]
        }));
        folder = path;
    }
    rows
}

fn indented(depth: usize, name: &str) -> String {
    format!("{}{name}", "  ".repeat(depth))
}

fn size(bytes: u64) -> String {
    match bytes {
        0 => "?".to_owned(),
        bytes => format!("{:.1}", ByteCount(bytes)),
    }
}

#[cfg(test)]
mod tests {
    use protocol::{LeftOutDto, PreviewVariantDto};

    use super::*;

    #[test]
    fn a_list_a_message_and_an_error_are_distinguished() {
        let item = |name: &str, path: &str, size| PreviewItemDto {
            name: name.into(),
            path: path.into(),
            size,
            selected: true,
            ..PreviewItemDto::default()
        };
        let mut film = item("d.mkv", "other", 1536);
        film.variants = vec![PreviewVariantDto {
            id: "2".into(),
            label: "720p".into(),
            size: 2048,
            ..PreviewVariantDto::default()
        }];
        let list = ResolvePreviewResponse {
            plugin: "site@author".into(),
            name: "Share".into(),
            items: vec![
                item("a.zip", "", 1536),
                item("b.zip", "more", 0),
                item("c.zip", "more/deep", 1536),
                film,
            ],
            total_bytes: 4608,
            unknown_sizes: 1,
            left_out: vec![LeftOutDto {
                kind: "unreadable".into(),
                name: "secret".into(),
                count: 1,
            }],
            ..ResolvePreviewResponse::default()
        };
        assert_eq!(
            lines(&list),
            [
                "site@author lists 4 files, at least 4.5 KiB (1 file of unknown size): Share",
                "#     SIZE  FILE",
                "1  1.5 KiB  a.zip",
                "            more/",
                "2        ?    b.zip",
                "              deep/",
                "3  1.5 KiB      c.zip",
                "            other/",
                "4  1.5 KiB    d.mkv",
                "   2.0 KiB      variant 720p",
                "left out: secret, which cannot be read"
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
