/// <reference path="./schema/svc-plugin.d.ts" />
// Files that a site lists in an `index.json`. Something to begin with: put your site in its place.

// Lists what is behind the URL. `{"title": "Photos", "files": ["a.jpg", "more/b.jpg"]}` is two files.
export async function resolve(call, out) {
  const index = await http.get(call.url).send();
  out.title(index.json('/title'));
  for (const path of index.json('/files')) {
    const parts = path.split('/');
    const name = parts.pop();
    out.add(path, name).folder(parts.join('/'));
  }
}

// Says where one of the files is. It is asked when its download begins, and again when the link has ended.
export function linkFor(call, entry) {
  return new Link(new URL(entry.split('/').map(encodeURIComponent).join('/'), call.url));
}
// preview

// What users see before they download. Here a list is quick enough.
export const preview = resolve;
// end of preview
