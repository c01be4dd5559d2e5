// The route is the fragment: `#/tasks?f=is:failed&o=task-id`. It never reaches a server or a log.

function read(): { path: string[]; query: URLSearchParams } {
  // The ticket of `svc open` stands before the route until the session has taken it.
  const hash = location.hash.replace(/^#open=[^/]+/, '#');
  const text = hash.startsWith('#/') ? hash.slice(2) : '';
  const [path = '', query = ''] = text.split('?', 2) as [string, string?];
  return { path: path.split('/').filter(Boolean).map(decodeURIComponent), query: new URLSearchParams(query) };
}

class Route {
  #current = $state.raw(read());

  constructor() {
    addEventListener('hashchange', () => (this.#current = read()));
  }

  /** The screen. */
  get name(): string {
    return this.#current.path[0] ?? 'tasks';
  }

  /** What follows the screen's name. */
  get rest(): readonly string[] {
    return this.#current.path.slice(1);
  }

  get query(): URLSearchParams {
    return this.#current.query;
  }

  /** Opens a screen. */
  go(path: string, query: Record<string, string> = {}): void {
    location.hash = fragment(path, query);
  }

  /** Changes parts of the query; null removes one. With `replace`, without a step in the history. */
  change(parts: Record<string, string | null>, replace = true): void {
    const query = new URLSearchParams(this.#current.query);
    for (const [name, value] of Object.entries(parts)) {
      if (value === null || value === '') query.delete(name);
      else query.set(name, value);
    }
    const path = [this.name, ...this.rest].map(encodeURIComponent).join('/');
    const text = query.toString();
    const target = `#/${path}${text === '' ? '' : `?${text}`}`;
    if (target === location.hash) return;
    if (!replace) {
      location.hash = target;
      return;
    }
    history.replaceState(history.state, '', target);
    this.#current = read();
  }
}

export function fragment(path: string, query: Record<string, string> = {}): string {
  const text = new URLSearchParams(query).toString();
  return `#/${path}${text === '' ? '' : `?${text}`}`;
}

export const route = new Route();
