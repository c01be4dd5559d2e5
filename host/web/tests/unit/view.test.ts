import { pathOf } from '../../tools/icons.mjs';
import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { failureKinds } from '../../src/rpc/rpc';
import { failures } from '../../src/view/failures';
import { age, parse, print, size, toggle } from '../../src/view/filter';
import { Formats, openable, parseBytes, pieces, plain } from '../../src/view/format';
import { curl, infoHash, paste, words } from '../../src/view/links';
import { Ring } from '../../src/view/ring';
import { spans } from '../../src/view/segments';
import * as select from '../../src/view/selection';
import { readTorrent } from '../../src/view/torrent';
import { grow, matching, ticked, tickOf, visible } from '../../src/view/tree';

describe('filter language', () => {
  it('prints what it reads', () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom('is:failed', '-is:done', 'queue:"my queue"', 'size:>1G', 'ubuntu', '"two words"', 'added:<7d', '-iso', 'error:gone'), { maxLength: 6 }), (parts) => {
        const once = print(parse(parts.join(' ')));
        expect(print(parse(once))).toBe(once);
        expect(parse(once)).toEqual(parse(parts.join(' ')));
      }),
    );
  });
  it('marks what it does not understand', () => {
    expect(parse('is:blue size:big foo:bar https://a.b/c').map((token) => token.isKnown)).toEqual([false, false, false, true]);
  });
  it('reads sizes and ages', () => {
    expect(size('>1.5G')).toEqual({ isMore: true, limit: 1.5 * 1024 ** 3 });
    expect(size('<500k')).toEqual({ isMore: false, limit: 500 * 1024 });
    expect(age('<7d')).toEqual({ isMore: false, limit: 604_800 });
    expect([size('1 apple'), age('7')]).toEqual([null, null]);
  });
  it('adds and removes a facet', () => {
    const once = toggle(parse('iso'), 'site', 'a.test');
    expect(print(once)).toBe('iso site:a.test');
    expect(print(toggle(once, 'site', 'a.test'))).toBe('iso');
  });
});

describe('formats', () => {
  const en = new Formats('en');
  it('has three significant digits', () => {
    const shown = [0, 999, 1023, 1024, 1536, 10_240, 1_048_576 * 99.96, 1023.9 * 1024 ** 3, 5.8 * 1024 ** 3].map((value) => en.bytes(value).replace('\u00a0', ' '));
    expect(shown).toEqual(['0 B', '999 B', '1.00 KiB', '1.00 KiB', '1.50 KiB', '10.0 KiB', '100 MiB', '1.00 TiB', '5.80 GiB']);
    expect(en.bytes(null)).toBe('–');
    expect(new Formats('en', 'decimal').bytes(1500).replace('\u00a0', ' ')).toBe('1.50 kB');
  });
  it('rounds percent down', () => {
    expect([en.percent(0.999), en.percent(1), en.percent(-1)]).toEqual(['99%', '100%', '0%']);
  });
  it('shows two units of a duration', () => {
    expect([en.duration(59), en.duration(180), en.duration(3780), en.duration(7199), en.duration(90_000), en.duration(Infinity)]).toEqual(['59 sec', '3 min', '1 hr 3 min', '2 hr', '1 day 1 hr', '–']);
  });
  it('formats in Chinese and Arabic without failing', () => {
    for (const language of ['zh', 'ar']) {
      const formats = new Formats(language);
      for (const text of [formats.bytes(5e9), formats.rate(1e6), formats.duration(4000), formats.percent(0.5), formats.when(1, Date.now())]) expect(text).not.toBe('');
    }
  });
  it('reads sizes as it writes them', () => {
    expect(['2M', '500 KiB', '1.5 GB', '1048576', '2MiB/s', 'x'].map(parseBytes)).toEqual([2_097_152, 512_000, 1_500_000_000, 1_048_576, 2_097_152, null]);
  });
  it('marks what is invisible or turns the direction', () => {
    expect(plain('invoice\u202Efdp.exe')).toBe('invoice[U+202E]fdp.exe');
    expect(pieces('a\u0000b').map((piece) => piece.isMarked)).toEqual([false, true, false]);
    expect(pieces('مرحبا 你好')).toHaveLength(1);
    expect(plain('x'.repeat(5000))).toHaveLength(1001);
  });
  it('opens http and https only', () => {
    expect(openable('https://a.test/')).toBe('https://a.test/');
    for (const bad of ['javascript:alert(1)', 'data:text/html,x', 'file:///etc/passwd', 'x']) expect(openable(bad)).toBeNull();
  });
});

describe('pasted text', () => {
  it('finds links, magnet links and commands', () => {
    const found = paste("https://a.test/x.iso\nmagnet:?xt=urn:btih:" + 'a'.repeat(40) + "&dn=N+N\ncurl 'https://b.test/y' -H 'Cookie: a=b' \\\n  -H 'X-Y: z' --compressed\n\nhello\nhttps://a.test/x.iso\nsee https://c.test/d, please");
    expect(found.map(({ kind, url }) => [kind, url])).toEqual([
      ['link', 'https://a.test/x.iso'],
      ['magnet', `magnet:?xt=urn:btih:${'a'.repeat(40)}&dn=N+N`],
      ['curl', 'https://b.test/y'],
      ['unknown', ''],
      ['link', 'https://c.test/d'],
    ]);
    expect(found[1]!.name).toBe('N N');
    expect([found[2]!.cookies, found[2]!.headers]).toEqual(['a=b', { 'X-Y': 'z' }]);
  });
  it('reads a command as browsers copy it', () => {
    const one = curl(`curl "https://a.test/f?x=1" -X POST -u me:pw -A agent -e https://ref.test/ --data-raw $'a=\\'b\\'' -kL -o out.bin --proxy socks5://p:1 --cert c.pem`);
    expect(one).toMatchObject({ kind: 'curl', url: 'https://a.test/f?x=1', method: 'POST', user: 'me', password: 'pw', userAgent: 'agent', referrer: 'https://ref.test/', body: "a='b'", isInsecure: true, name: 'out.bin', proxy: 'socks5://p:1', ignored: ['--cert'] });
  });
  it('splits words as a shell does', () => {
    expect(words(`a 'b c' "d \\"e\\"" f\\ g ''`)).toEqual(['a', 'b c', 'd "e"', 'f g', '']);
  });
  it('knows both forms of an info hash', () => {
    expect(infoHash('magnet:?xt=urn:btih:' + 'A'.repeat(32))).toBe('0'.repeat(40));
    expect(infoHash('magnet:?xt=urn:btih:zz')).toBe('');
  });
  it('never fails and never returns more than once', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 300 }), (text) => {
        const found = paste(text);
        expect(new Set(found.map((one) => one.kind + one.url + one.text + one.body)).size).toBe(found.length);
        curl(`curl ${text}`);
      }),
    );
  });
});

describe('torrent files', () => {
  const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
  it('lists the files', () => {
    const found = readTorrent(bytes('d4:infod5:filesld6:lengthi5e4:pathl1:a5:b.txteed6:lengthi7e4:pathl1:ceee4:name3:dir7:privatei1eee'));
    expect(found).toEqual({ name: 'dir', isPrivate: true, size: 12, files: [{ index: 0, path: 'a/b.txt', size: 5 }, { index: 1, path: 'c', size: 7 }] });
  });
  it('refuses what is none, and never hangs', () => {
    for (const bad of ['', 'd', 'i5e', 'l'.repeat(100), '99999999:x', 'd4:infoi1ee']) expect(() => readTorrent(bytes(bad))).toThrow(RangeError);
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (random) => {
        try {
          readTorrent(random);
        } catch (error) {
          expect(error).toBeInstanceOf(RangeError);
        }
      }),
    );
  });
});

describe('trees', () => {
  const leaves = [{ path: 'b/2.mkv', size: 200e6 }, { path: 'b/10.mkv', size: 5 }, { path: 'a.txt', size: 1 }];
  const tree = grow(leaves);
  it('has folders first, by number', () => {
    expect(tree.nodes.map((node) => node.path)).toEqual(['b/', 'b/2.mkv', 'b/10.mkv', 'a.txt']);
    expect(tree.nodes[0]!.size).toBe(200e6 + 5);
  });
  it('ticks a folder in three ways', () => {
    const folder = tree.nodes[0]!;
    expect(tickOf(tree, folder, new Set([0]))).toBe('some');
    const all = ticked(tree, folder, new Set([0]));
    expect([tickOf(tree, folder, all), all.size]).toEqual(['all', 2]);
    expect(ticked(tree, folder, all).size).toBe(0);
  });
  it('hides what is in a closed folder', () => {
    expect(visible(tree, new Set(['b/'])).map((node) => node.name)).toEqual(['b', 'a.txt']);
  });
  it('finds by name and size', () => {
    expect([...matching(leaves, '*.mkv >100M', parseBytes)]).toEqual([0]);
    expect([...matching(leaves, 'txt', parseBytes)]).toEqual([2]);
  });
});

describe('selection', () => {
  const order = ['a', 'b', 'c', 'd', 'e'];
  it('ranges from the anchor both ways', () => {
    const first = select.only('c');
    expect([...select.ranged(first, 'e', order, false).ids]).toEqual(['c', 'd', 'e']);
    expect([...select.ranged(select.ranged(first, 'e', order, false), 'a', order, false).ids]).toEqual(['a', 'b', 'c']);
  });
  it('loses what is gone and hands the active row on', () => {
    const before = { ids: new Set(['a', 'b']), anchor: 'a', active: 'a' };
    expect(select.without(before, (id) => id !== 'a', 'b')).toEqual({ ids: new Set(['b']), anchor: null, active: 'b' });
    expect(select.without(before, () => true, null)).toBe(before);
  });
});

it('shows segments as parts of the file', () => {
  expect(spans(undefined, 50, 100, true)).toEqual([{ from: 0, to: 0.5, isActive: true }]);
  expect(spans(Float64Array.of(0, 49, 50, 0, 50, 99, 10, 1), 60, 100, true)).toEqual([{ from: 0, to: 0.5, isActive: false }, { from: 0.5, to: 0.6, isActive: true }]);
  expect(spans(undefined, 5, 0, true)).toEqual([]);
});

it('keeps the last points of a rate', () => {
  const ring = new Ring(3);
  for (let second = 0; second < 5; second++) ring.push(second * 1000, second);
  ring.push(4500, 9);
  expect(ring.points(0)).toEqual([{ time: 2000, value: 2 }, { time: 3000, value: 3 }, { time: 4000, value: 9 }]);
});

it('has a word and a button for every failure', () => {
  const english = JSON.parse(readFileSync('locales/en.json', 'utf8')) as Record<string, string>;
  for (const kind of failureKinds) {
    expect(english[failures[kind].text], kind).toBeTruthy();
    for (const remedy of failures[kind].remedies) expect(english[`remedy.${remedy}`], remedy).toBeTruthy();
  }
});

describe('an icon', () => {
  it('is one path', () => {
    expect(pathOf('clock')).toMatch(/^M2 12a10 10 0 1 0 20 0a10 10 0 1 0 -20 0z.*M12 6v6l4 2/);
    // An older name of it.
    expect(pathOf('trash-2')).toBe(pathOf('trash'));
  });
});
