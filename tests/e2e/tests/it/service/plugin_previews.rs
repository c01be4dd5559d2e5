//! Previews through the service: many of one site at once (it is asked at a polite rate, and waiting for that ends no
//! preview), and lists that leave something out.

use std::thread;

use e2e::{
    Home, Service,
    service::{ask, wait_until},
};
use serde_json::{Value, json};
use support::{Content, Origin, Resource, behaviour};

use super::plugin_sites::{run, with_plugin};

/// More than a site is asked at once, by more than what it is asked in the five seconds of a preview.
const CROWD: usize = 50;

#[test]
fn fifty_previews_of_one_site_at_once_all_succeed() {
    let page = Resource::new("/page", Content::bytes("a page")).with(behaviour::paced(60));
    let origin = Origin::start(vec![page]);
    let home = Home::new();
    let script = "export async function resolve(call, out) {
            const answer = await http.get(call.url).send();
            out.title(answer.text());
            out.add('file', 'file.bin').size(7).link(new URL('/file.bin', call.url));
        }
        export const preview = resolve;";
    let service = with_plugin(&home, &json!({"inputHost": true}), script);
    let request = json!({"url": origin.url("/page")});
    let address = service.address().to_owned();
    let preview = || {
        let answer = ask(&address, "POST", "/api/v1/resolve/preview", Some(&request));
        answer.expect("the service answers").body
    };
    let previews: Vec<Value> = thread::scope(|scope| {
        let asked: Vec<_> = (0..CROWD).map(|_| scope.spawn(preview)).collect();
        asked.into_iter().map(|one| one.join().expect("it answers")).collect()
    });
    for preview in &previews {
        assert_eq!(
            (&preview["error"], &preview["name"]),
            (&json!(""), &json!("a page")),
            "{preview}"
        );
    }
    assert_eq!(origin.requests().len(), CROWD);
    assert_eq!(service.terminate().code, Some(0));
}

#[test]
fn what_a_list_leaves_out_is_shown_with_the_list_and_with_the_group_made_of_it() {
    let resource = |path| Resource::new(path, Content::bytes("bytes"));
    // Nor does the server tell the size.
    let silent = behaviour::when(|exchange| exchange.request.method == "HEAD", behaviour::status(404));
    let origin = Origin::start(vec![
        resource("/page"),
        resource("/a.bin"),
        resource("/b.bin").with(silent),
    ]);
    let home = Home::new();
    let script = "export async function resolve(call, out) {
            await http.get(call.url).send();
            out.title('List').leftOut('unreadable', 'secret').leftOut('tooManyFiles', '', 7);
            out.add('a', 'a.bin').size(5).link(new URL('/a.bin', call.url));
            out.add('b', 'b.bin').link(new URL('/b.bin', call.url));
            out.add('c', 'c.bin').size(100).notSelected().link(new URL('/c.bin', call.url));
        }
        export const preview = resolve;";
    let service = with_plugin(&home, &json!({"inputHost": true}), script);
    let url = origin.url("/page");
    let shown = service.call("POST", "/api/v1/resolve/preview", Some(&json!({"url": url})));
    let left_out = json!([
        {"kind": "unreadable", "name": "secret", "count": 1}, {"kind": "tooManyFiles", "name": "", "count": 7},
    ]);
    assert_eq!(shown["leftOut"], left_out, "{shown}");
    assert_eq!(
        (&shown["totalBytes"], &shown["unknownSizes"]),
        (&json!(5), &json!(1)),
        "{shown}"
    );
    let items = shown["items"].as_array().expect("items");
    let chosen: Vec<_> = items.iter().map(|item| (&item["kind"], &item["selected"])).collect();
    let file = json!("file");
    assert_eq!(
        chosen,
        [(&file, &json!(true)), (&file, &json!(true)), (&file, &json!(false))]
    );
    let listed = run(&service, &["plugin", "preview", &url]).stdout.join("\n");
    assert!(listed.contains("left out: secret, which cannot be read"), "{listed}");
    assert!(
        listed.contains("left out: 7 more files, beyond what is listed"),
        "{listed}"
    );
    assert!(listed.contains("(1 file of unknown size)"), "{listed}");

    service.create(&json!({"url": url}));
    let groups = |service: &Service| service.call("GET", "/api/v1/groups", None);
    wait_until("the list is a group", || groups(&service)[0]["leftOut"] == left_out);
    assert_eq!(service.terminate().code, Some(0));
    let service = home.serve();
    service.wait_until_ready();
    assert_eq!(groups(&service)[0]["leftOut"], left_out);
    let group = run(&service, &["group", "show", "List"]).stdout.join("\n");
    assert!(group.contains("left out: secret"), "{group}");
    assert_eq!(service.terminate().code, Some(0));
}
