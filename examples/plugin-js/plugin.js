// Downloads everything that a `SHA256SUMS` file lists, and verifies it: release directories of distributions have one
// beside the images. A line is a digest, a space, a space or an asterisk (text or binary), and a path.

// Lists the files with their digests; the host verifies each file before it gets its name.
export async function resolve(call, out) {
  const list = (await http.get(call.url).send()).text();
  for (const line of list.split('\n')) {
    const [, digest, path] = /^(\S+) [ *]?(?:\.\/)?(.+)$/.exec(line) ?? [];
    if (!path) continue;
    const folders = path.split('/');
    const name = folders.pop();
    out.add(path, name).folder(folders.join('/')).checksum('sha256', digest);
  }
}

// The host asks when the download of a file starts, and again whenever the link stops working.
export function linkFor(call, entry) {
  return new Link(new URL(entry.split('/').map(encodeURIComponent).join('/'), call.url));
}
