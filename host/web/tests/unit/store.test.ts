import fc from 'fast-check';
import { expect, it } from 'vitest';
import { Columns } from '../../src/rpc/columns';
import { Merge } from '../../src/rpc/merge';
import { noSlices } from '../../src/rpc/messages';
import { Flag, rowOf, type Row } from '../../src/rpc/row';
import type { TaskDto } from '../../src/rpc/rpc';
import { Store } from '../../src/store/store';
import { count } from '../../src/view/facets';
import { compile, parse, stateOf } from '../../src/view/filter';
import { List } from '../../src/view/list';
import { comparison, parseSorts } from '../../src/view/sort';

type Wire = Partial<TaskDto> & { taskId: string };

const task: fc.Arbitrary<Wire> = fc.record({
  taskId: fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'),
  fileName: fc.constantFrom('one.iso', 'Two.mp4', 'drei 10.zip', 'drei 9.zip', ''),
  url: fc.constantFrom('http://a.test/x', 'https://www.b.test/y?z=1', 'magnet:?xt=urn:btih:aa'),
  status: fc.constantFrom(0, 1, 2, 3, 4, 5) as fc.Arbitrary<TaskDto['status']>,
  totalBytes: fc.constantFrom(0, 10, 5_000_000),
  downloadedBytes: fc.constantFrom(0, 5),
  queueId: fc.constantFrom('q1', 'q2'),
  groupId: fc.constantFrom('', 'g1'),
  createdAt: fc.constantFrom('100', '200', '300'),
  tags: fc.constantFrom([], ['x'], ['x', 'Y']),
  errorKind: fc.constantFrom('', 'gone', 'a-new-kind'),
});

type Event = { type: 'taskChanged'; data: Wire } | { type: 'taskDeleted'; data: { taskId: string } } | { type: 'tasksSnapshot'; data: { tasks: Wire[]; deletedTaskIds: string[] } };
const event: fc.Arbitrary<Event> = fc.oneof(
  task.map((data) => ({ type: 'taskChanged' as const, data })),
  task.map(({ taskId }) => ({ type: 'taskDeleted' as const, data: { taskId } })),
  fc.tuple(fc.array(task, { maxLength: 3 }), fc.array(task, { maxLength: 2 })).map(([tasks, gone]) => ({ type: 'tasksSnapshot' as const, data: { tasks, deletedTaskIds: gone.map((one) => one.taskId) } })),
);

function packed(tasks: readonly Wire[]) {
  const columns = new Columns();
  tasks.forEach((one, slot) => columns.put(slot, rowOf(one)));
  return columns.pack().packed;
}

function fill(tasks: readonly Wire[]): Store {
  const store = new Store();
  store.snapshot(packed(tasks), { ...noSlices, queues: [{ queueId: 'q2', name: 'Later' }] as typeof noSlices.queues }, []);
  store.changed();
  return store;
}

function rows(store: Store): Record<string, Partial<Row>> {
  const found: Record<string, Partial<Row>> = {};
  const c = store.columns;
  for (const slot of store.slots()) {
    found[c.ids[slot]!] = {
      name: c.names[slot]!, status: c.status[slot]!, total: c.total[slot]!, done: c.done[slot]!, queue: c.queues.texts[c.queue[slot]!]!,
      group: c.groups.texts[c.group[slot]!]!, site: c.sites.texts[c.site[slot]!]!, created: c.created[slot]!, error: c.error[slot]!, flags: c.flags[slot]!, tags: c.tagSets.texts[c.tags[slot]!]!,
    };
  }
  return found;
}

function model(tasks: ReadonlyMap<string, Wire>): Record<string, Partial<Row>> {
  return Object.fromEntries([...tasks].map(([id, one]) => {
    const { name, status, total, done, queue, group, site, created, error, flags, tags } = rowOf(one);
    return [id, { name, status, total, done, queue, group, site, created, error, flags, tags }];
  }));
}

function applyTo(tasks: Map<string, Wire>, one: Event): void {
  if (one.type === 'taskChanged') tasks.set(one.data.taskId, one.data);
  else if (one.type === 'taskDeleted') tasks.delete(one.data.taskId);
  else {
    for (const changed of one.data.tasks) tasks.set(changed.taskId, changed);
    for (const id of one.data.deletedTaskIds) tasks.delete(id);
  }
}

it('is after events what a snapshot would be, however they are cut into batches', () => {
  fc.assert(
    fc.property(fc.uniqueArray(task, { selector: (one) => one.taskId }), fc.array(fc.tuple(event, fc.boolean())), (first, events) => {
      const tasks = new Map(first.map((one) => [one.taskId, one]));
      const store = fill(first);
      const merge = new Merge({ pendingSelections: [], rssItemRevisions: {} });
      for (const [one, isFlushed] of events) {
        applyTo(tasks, one);
        expect(merge.add(one.type, one.data)).toBe(true);
        if (isFlushed) store.apply(merge.take());
      }
      store.apply(merge.take());
      expect(rows(store)).toEqual(model(tasks));
      expect(store.size).toBe(tasks.size);
    }),
  );
});

it('keeps the list and the counts as a naive filter and sort would', () => {
  const filters = fc.constantFrom('', 'is:active', 'is:failed is:done', '-is:paused', 'drei', 'size:>1M', 'kind:video', 'site:b.test', 'error:any', 'is:waiting drei', 'kind:torrent', 'queue:later', 'group:none', 'tag:y', '-tag:x');
  const sorts = fc.constantFrom('-added', 'name', '-size,name', 'state,-added', 'order', 'progress', 'site,-name', 'speed');
  fc.assert(
    fc.property(fc.uniqueArray(task, { selector: (one) => one.taskId }), fc.array(fc.array(event, { maxLength: 4 }), { maxLength: 8 }), filters, sorts, (first, batches, filter, order) => {
      const store = fill(first);
      const list = new List(store);
      const make = () => [compile(parse(filter), store, 1000), comparison(parseSorts(order), store, 'en')] as const;
      list.rebuild(...make());
      const merge = new Merge({ pendingSelections: [], rssItemRevisions: {} });
      for (const batch of batches) {
        for (const one of batch) merge.add(one.type, one.data);
        store.apply(merge.take());
        list.update(store.changed(), true, false);
        const [test, compare] = make();
        const naive = [...store.slots()].filter(test).sort(compare);
        expect(Array.from(list.slots.subarray(0, list.length))).toEqual(naive);
      }
      const facets = count(store);
      expect(facets.all).toBe(store.size);
      const states: Record<string, number> = {};
      for (const slot of store.slots()) {
        const state = stateOf(store.columns.status[slot]!);
        states[state] = (states[state] ?? 0) + 1;
      }
      for (const [state, number] of Object.entries(states)) expect(facets.states[state as 'active']).toBe(number);
    }),
  );
});

it('does not move rows while they are held, but for those that are deleted, and says that the order is another one', () => {
  const first: Wire[] = ['a', 'b', 'c'].map((taskId, at) => ({ taskId, fileName: taskId, totalBytes: at + 1, createdAt: '1' }));
  const store = fill(first);
  const list = new List(store);
  list.rebuild(() => true, comparison(parseSorts('size'), store, 'en'));
  const merge = new Merge({ pendingSelections: [], rssItemRevisions: {} });
  const ids = (): string[] => Array.from(list.slots.subarray(0, list.length), (slot) => store.columns.ids[slot]!);
  merge.add('taskChanged', { ...first[0]!, totalBytes: 99 });
  store.apply(merge.take());
  expect(list.update(store.changed(), false, true)).toBe(false);
  expect([ids(), list.isStale]).toEqual([['a', 'b', 'c'], true]);
  merge.add('taskDeleted', { taskId: 'b' });
  store.apply(merge.take());
  list.update(store.changed(), false, true);
  expect(ids()).toEqual(['a', 'c']);
  list.update({ rows: new Set(), samples: new Set() }, false, false);
  expect([ids(), list.isStale]).toEqual([['c', 'a'], false]);
});

it('reads what a sparse snapshot leaves out as its default', () => {
  expect(rowOf({ taskId: 't', url: 'http://x.test/f' })).toMatchObject({ name: 'http://x.test/f', status: 0, total: 0, error: 0, queue: '', site: 'x.test', flags: 0 });
  expect(rowOf({ taskId: 't', url: 'magnet:?xt=urn:btih:aa' }).flags).toBe(Flag.torrent);
});

it('keeps at most 1,024 segments and none of their bytes is lost', () => {
  const merge = new Merge({ pendingSelections: [], rssItemRevisions: {} });
  const segments = Array.from({ length: 5000 }, (_, index) => ({ index, startByte: index * 10, endByte: index * 10 + 9, downloadedBytes: 3, active: index === 4999 }));
  merge.add('taskRuntimeChanged', { taskId: 't', segments });
  const [sample] = merge.take().samples;
  expect(sample!.segments.length / 4).toBeLessThanOrEqual(1024);
  let sum = 0;
  for (let at = 2; at < sample!.segments.length; at += 4) sum += sample!.segments[at]!;
  expect(sum).toBe(15_000);
  expect(sample!.segments.at(-1)).toBe(1);
});
