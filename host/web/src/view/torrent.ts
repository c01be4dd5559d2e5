// Reads what a torrent file holds (BEP 3), to show its files before it is added. The service reads it again itself.

export interface TorrentFile {
  index: number;
  path: string;
  size: number;
}

export interface Torrent {
  name: string;
  isPrivate: boolean;
  files: TorrentFile[];
  size: number;
}

type Value = number | Uint8Array | Value[] | Map<string, Value>;

const MAX_DEPTH = 32;

class Reader {
  #at = 0;
  readonly #text = new TextDecoder();

  constructor(private readonly bytes: Uint8Array) {}

  #peek(): number {
    const byte = this.bytes[this.#at];
    if (byte === undefined) throw new RangeError('it ends too early');
    return byte;
  }

  #until(end: number): string {
    const from = this.#at;
    while (this.#peek() !== end) this.#at++;
    return this.#text.decode(this.bytes.subarray(from, this.#at++));
  }

  #string(): Uint8Array {
    const length = this.#until(0x3a);
    if (!/^\d{1,9}$/.test(length)) throw new RangeError('a length is no number');
    const from = this.#at;
    this.#at += Number(length);
    if (this.#at > this.bytes.length) throw new RangeError('it ends too early');
    return this.bytes.subarray(from, this.#at);
  }

  value(depth = 0): Value {
    if (depth > MAX_DEPTH) throw new RangeError('it is nested too deeply');
    const byte = this.#peek();
    if (byte === 0x69) {
      this.#at++;
      return Number(this.#until(0x65));
    }
    if (byte === 0x6c) {
      this.#at++;
      const list: Value[] = [];
      while (this.#peek() !== 0x65) list.push(this.value(depth + 1));
      this.#at++;
      return list;
    }
    if (byte === 0x64) {
      this.#at++;
      const map = new Map<string, Value>();
      while (this.#peek() !== 0x65) {
        const key = this.#text.decode(this.#string());
        map.set(key, this.value(depth + 1));
      }
      this.#at++;
      return map;
    }
    return this.#string();
  }
}

export function readTorrent(bytes: Uint8Array): Torrent {
  const top = new Reader(bytes).value();
  const info = top instanceof Map ? top.get('info') : undefined;
  if (!(info instanceof Map)) throw new RangeError('it has no files');
  const text = (value: Value | undefined): string => (value instanceof Uint8Array ? new TextDecoder().decode(value) : '');
  const number = (value: Value | undefined): number => (typeof value === 'number' && value >= 0 ? value : 0);
  const name = text(info.get('name.utf-8')) || text(info.get('name'));
  const list = info.get('files');
  const files: TorrentFile[] = [];
  if (Array.isArray(list)) {
    list.forEach((file, index) => {
      if (!(file instanceof Map)) return;
      const parts = file.get('path.utf-8') ?? file.get('path');
      if (text(file.get('attr')).includes('p')) return;
      files.push({ index, path: Array.isArray(parts) ? parts.map((part) => text(part)).join('/') : '', size: number(file.get('length')) });
    });
  } else if (info.has('length')) {
    files.push({ index: 0, path: name, size: number(info.get('length')) });
  }
  if (files.length === 0) throw new RangeError('it has no files that this page can list');
  return { name, isPrivate: number(info.get('private')) === 1, files, size: files.reduce((sum, file) => sum + file.size, 0) };
}
