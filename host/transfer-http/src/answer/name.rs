//! The name of a file without a chosen one: from its server, its URL or its type.

use percent_encoding::percent_decode_str;
use transfer::{FileName, SafeUrl, text::decode_guessing};

use crate::{answer::disposition::Disposition, client::head::ResponseHead};

/// The name for the body of `head`: from its disposition, from the final URL or the requested one, from its media type,
/// or `download`.
pub(crate) fn of_response(head: &ResponseHead, requested: &SafeUrl, final_url: &SafeUrl) -> FileName {
    let disposed = head
        .get("content-disposition")
        .and_then(|value| Disposition::parse(value).name);
    if let Some(name) = disposed
        .as_deref()
        .and_then(|name| FileName::sanitise_or_none(last_component(name)))
    {
        return name;
    }
    let requested = (requested != final_url).then(|| of_url(requested)).flatten();
    let final_url = of_url(final_url);
    // After a redirect the URL often has a storage service's own name; the one with an extension is more likely the
    // real one.
    let has_extension =
        |name: &Option<FileName>| name.as_ref().is_some_and(|name| !name.split_extension().1.is_empty());
    let of_url = if has_extension(&final_url) || !has_extension(&requested) {
        final_url.or(requested)
    } else {
        requested
    };
    of_url.unwrap_or_else(|| {
        let media_type = head.media_type().unwrap_or_default();
        let extension = mime_guess::get_mime_extensions_str(&media_type).and_then(|known| known.first());
        match preferred_extension(&media_type).or(extension.copied()) {
            Some(extension) => FileName::sanitise(&format!("download.{extension}")),
            None => FileName::sanitise(""),
        }
    })
}

/// The name that a URL's path ends in.
pub(crate) fn of_url(url: &SafeUrl) -> Option<FileName> {
    let last = url.as_url().path_segments()?.rfind(|segment| !segment.is_empty())?;
    let bytes: Vec<u8> = percent_decode_str(last).collect();
    FileName::sanitise_or_none(&decode_guessing(&bytes))
}

/// The last component of a name that a server sent as a path.
fn last_component(name: &str) -> &str {
    name.rsplit(['/', '\\'])
        .find(|part| !part.trim().is_empty())
        .unwrap_or(name)
}

/// The usual extension of types that have several.
fn preferred_extension(media_type: &str) -> Option<&'static str> {
    Some(match media_type {
        "application/octet-stream" => "bin",
        "text/html" => "html",
        "text/plain" => "txt",
        "image/jpeg" => "jpg",
        "image/tiff" => "tiff",
        "audio/mpeg" => "mp3",
        "video/mp4" => "mp4",
        "video/mpeg" => "mpg",
        "video/quicktime" => "mov",
        "application/zip" => "zip",
        "application/gzip" | "application/x-gzip" => "gz",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(headers: &[(&str, &str)], requested: &str, final_url: &str, expected: &str) {
        let (requested, final_url) = (SafeUrl::parse(requested).unwrap(), SafeUrl::parse(final_url).unwrap());
        assert_eq!(
            of_response(&ResponseHead::of(200, headers), &requested, &final_url).as_str(),
            expected
        );
    }

    #[test]
    fn the_server_names_the_file_first() {
        let url = "http://a.test/get.php?id=1";
        check(
            &[("content-disposition", "attachment; filename=real.iso")],
            url,
            url,
            "real.iso",
        );
        check(
            &[("content-disposition", "attachment; filename=\"../../etc/passwd\"")],
            url,
            url,
            "passwd",
        );
        check(
            &[("content-disposition", "attachment; filename=\"..\"")],
            url,
            url,
            "get.php",
        );
    }

    #[test]
    fn urls_name_it_next() {
        let cdn = "http://cdn.test/0a1b2c";
        check(
            &[],
            "http://a.test/dir/file%20one.zip?sig=x",
            "http://a.test/dir/file%20one.zip?sig=x",
            "file one.zip",
        );
        check(&[], "http://a.test/file.zip", cdn, "file.zip");
        check(&[], "http://a.test/latest", "http://a.test/v1.2.zip", "v1.2.zip");
        check(
            &[],
            "http://a.test/%D6%D0%CE%C4%CE%C4%BC%FE%C3%FB%B3%C6.zip",
            cdn,
            "中文文件名称.zip",
        );
    }

    #[test]
    fn types_name_it_last() {
        let url = "http://a.test/";
        check(&[("content-type", "image/jpeg; q=1")], url, url, "download.jpg");
        check(&[("content-type", "application/pdf")], url, url, "download.pdf");
        check(&[], url, url, "download");
    }
}
