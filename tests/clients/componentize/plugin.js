// A resolver for a made-up sort of listing: JSON that names the files beside it and their sizes.
import { Request, send } from 'svc:plugin/http@0.1.0';
import { Link } from 'svc:plugin/listing@0.1.0';

export const resolver = {
  resolve(url, _password, listing) {
    const response = send(new Request('GET', url));
    if (response.status() !== 200) throw { tag: 'upstream', val: response.status() };
    const { title, files } = JSON.parse(response.text());
    listing.title(title);
    for (const { name, size } of files) {
      const entry = listing.add(name, name);
      entry.size(BigInt(size));
      entry.link(new Link(new URL(encodeURIComponent(name), url).href));
    }
  },
  more() {
    throw { tag: 'unsupported', val: 'a listing has one page' };
  },
  linkFor() {
    throw { tag: 'unsupported', val: 'every entry has its link' };
  },
};
