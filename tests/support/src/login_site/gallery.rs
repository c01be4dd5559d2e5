//! Galleries behind a cookie: pages with pictures, which want the cookie, too.

use super::{
    message::{self, Fields, page},
    page::to_login,
    state::State,
};
use crate::{content::Content, reply::Reply, request::Request};

/// Pictures of one page.
const PER_PAGE: u64 = 3;

/// The length of a picture.
const PICTURE_BYTES: u64 = 20_000;

/// What a JPEG file begins with.
const JPEG: [u8; 4] = [0xff, 0xd8, 0xff, 0xe0];

/// A picture, from 1 on.
pub(super) fn picture(number: u64) -> Content {
    let seeded = Content::seeded(1000 + number, PICTURE_BYTES).to_vec();
    Content::bytes([&JPEG[..], &seeded].concat())
}

pub(super) fn answer(state: &State, request: &Request) -> Reply {
    let is_member = state.user_of_cookie(request).is_some();
    let mut parts = request.path().split('/').skip(2);
    match (parts.next(), parts.next()) {
        (Some(name), None) if is_member => listing(state, request, name),
        (Some(_), None) => to_login(request),
        (Some(_), Some(_)) if !is_member => page(403, "Members only", "<p>Please log in.</p>"),
        (Some(_), Some(file)) => file_of(state, request, file),
        _ => page(404, "Not found", ""),
    }
}

fn listing(state: &State, request: &Request, name: &str) -> Reply {
    let number: u64 = Fields::of_query(request).get("page").parse().unwrap_or(1);
    let first = number.saturating_sub(1).saturating_mul(PER_PAGE) + 1;
    let last = (first + PER_PAGE - 1).min(state.pictures());
    let figure = |picture: u64| {
        format!(
            "<figure><a class=\"picture\" href=\"/gallery/{name}/{picture}.jpg\">\
             <img src=\"/gallery/{name}/{picture}-small.jpg\" alt=\"Picture {picture}\"></a></figure>\n"
        )
    };
    let figures: String = (first..=last).map(figure).collect();
    let next = if last < state.pictures() {
        format!("<a rel=\"next\" href=\"?page={}\">Next</a>", number + 1)
    } else {
        String::new()
    };
    page(200, "Gallery", &format!("<h1>Gallery {name}</h1>\n{figures}{next}"))
}

fn file_of(state: &State, request: &Request, file: &str) -> Reply {
    let number = file.strip_suffix(".jpg").map(|file| file.trim_end_matches("-small"));
    let number = number.and_then(|number| number.parse().ok());
    let Some(number) = number.filter(|number| (1..=state.pictures()).contains(number)) else {
        return page(404, "Not found", "");
    };
    message::file(request, picture(number), "image/jpeg")
}
