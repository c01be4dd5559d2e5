/// <reference path="./schema/svc-plugin.d.ts" />
// Files that a site lists in an `index.json`, as a feed. Something to begin with: put your site in its place.

// Lists what there is now; the host knows which items it has seen. `{"title": "Photos", "files": ["a.jpg"]}` is one.
export async function feed(call, out) {
  const index = await http.get(call.url).send();
  out.title(index.json('/title'));
  for (const path of index.json('/files')) {
    const file = new URL(path.split('/').map(encodeURIComponent).join('/'), call.url);
    out.add(path, path).enclosure(file);
  }
}
