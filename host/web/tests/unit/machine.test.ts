import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { FIRST_DELAY, initial, LAST_DELAY, MAX_BUFFERED, MAX_RESYNCS, step, type Input, type Machine } from '../../src/rpc/machine';

const live: Machine = { ...initial, phase: 'live', epoch: 'e', sequence: 7 };
const at = (phase: Machine['phase'], more: Partial<Machine> = {}): Machine => ({ ...initial, phase, ...more });
const doing = (state: Machine, input: Input): [string, string[]] => {
  const [next, effects] = step(state, input);
  return [next.phase, effects.map((effect) => effect.do)];
};

describe('the connection, row by row', () => {
  const rows: [string, Machine, Input, string, string[]][] = [
    ['starts', initial, { kind: 'start' }, 'connecting', ['open']],
    ['says hello', at('connecting'), { kind: 'opened' }, 'hello', ['hello']],
    ['asks for the snapshot', at('hello'), { kind: 'helloAnswered' }, 'snapshot', ['snapshot']],
    ['is live with the snapshot', at('snapshot'), { kind: 'snapshotAnswered', epoch: 'e', sequence: 3 }, 'live', ['replace']],
    ['applies the next event', live, { kind: 'event', epoch: 'e', sequence: 8 }, 'live', ['apply']],
    ['skips what it has', live, { kind: 'event', epoch: 'e', sequence: 7 }, 'live', ['skip']],
    ['snapshots after a gap', live, { kind: 'event', epoch: 'e', sequence: 9 }, 'snapshot', ['snapshot']],
    ['snapshots in a new epoch', live, { kind: 'event', epoch: 'f', sequence: 8 }, 'snapshot', ['snapshot']],
    ['buffers during a snapshot', at('snapshot'), { kind: 'event', epoch: 'e', sequence: 1 }, 'snapshot', ['buffer']],
    ['starts over when the buffer is full', at('snapshot', { buffered: MAX_BUFFERED }), { kind: 'event', epoch: 'e', sequence: 1 }, 'snapshot', ['snapshot']],
    ['connects anew after too many snapshots', { ...live, resyncs: MAX_RESYNCS }, { kind: 'event', epoch: 'f', sequence: 1 }, 'waiting', ['close', 'fail', 'wait']],
    ['returns at once after 4009', live, { kind: 'closed', code: 4009, reason: 'event-gap' }, 'connecting', ['fail', 'open']],
    ['returns at once after a restart', live, { kind: 'closed', code: 1001, reason: 'service-restart' }, 'connecting', ['fail', 'open']],
    ['waits if 4009 comes again before a snapshot', at('hello', { attempt: 1 }), { kind: 'closed', code: 4009, reason: '' }, 'waiting', ['fail', 'wait']],
    ['stops after a quit', live, { kind: 'closed', code: 1001, reason: 'service-quit' }, 'stopped', ['fail']],
    ['asks for the key after 1008', live, { kind: 'closed', code: 1008, reason: 'unauthorized' }, 'login', ['fail']],
    ['asks why if it never opened', at('connecting'), { kind: 'closed', code: 1006, reason: '' }, 'probing', ['fail', 'probe']],
    ['waits after any other end', live, { kind: 'closed', code: 1006, reason: '' }, 'waiting', ['fail', 'wait']],
    ['asks for the key if the probe says so', at('probing'), { kind: 'probed', answer: 'unauthorized' }, 'login', []],
    ['is set up if the probe says so', at('probing'), { kind: 'probed', answer: 'setup' }, 'login', []],
    ['waits if nothing answers', at('probing'), { kind: 'probed', answer: 'unreachable' }, 'waiting', ['wait']],
    ['tries after the wait', at('waiting'), { kind: 'timer' }, 'connecting', ['open']],
    ['tries at once when woken', at('waiting', { attempt: 5 }), { kind: 'wake' }, 'connecting', ['open']],
    ['connects again after a quit if asked', at('stopped'), { kind: 'wake' }, 'connecting', ['open']],
    ['is not woken while live', live, { kind: 'wake' }, 'live', []],
    ['does not try without a key', at('login'), { kind: 'timer' }, 'login', []],
    ['signs out', live, { kind: 'signOut' }, 'login', ['close', 'fail']],
  ];
  it.each(rows)('%s', (_, state, input, phase, effects) => {
    expect(doing(state, input)).toEqual([phase, effects]);
  });

  it('waits twice as long each time, up to a limit, and not after it was live', () => {
    let state: Machine = at('probing');
    const waits = [];
    for (let round = 0; round < 8; round++) {
      const [next, effects] = step({ ...state, phase: 'probing' }, { kind: 'probed', answer: 'unreachable' });
      waits.push((effects[0] as { ms: number }).ms);
      state = next;
    }
    expect(waits.slice(0, 3)).toEqual([FIRST_DELAY, 1000, 2000]);
    expect(waits.at(-1)).toBe(LAST_DELAY);
    const [again] = step({ ...state, phase: 'snapshot' }, { kind: 'snapshotAnswered', epoch: 'e', sequence: 1 });
    expect(again.attempt).toBe(0);
  });
});

it('never applies an event out of order, whatever comes', () => {
  const input: fc.Arbitrary<Input> = fc.oneof(
    fc.constantFrom<Input>({ kind: 'start' }, { kind: 'opened' }, { kind: 'helloAnswered' }, { kind: 'timer' }, { kind: 'wake' }, { kind: 'snapshotRefused' }),
    fc.record({ kind: fc.constant('event' as const), epoch: fc.constantFrom('a', 'b'), sequence: fc.nat(6) }),
    fc.record({ kind: fc.constant('snapshotAnswered' as const), epoch: fc.constantFrom('a', 'b'), sequence: fc.nat(6) }),
    fc.record({ kind: fc.constant('closed' as const), code: fc.constantFrom(1001, 1006, 1008, 4009), reason: fc.constantFrom('', 'service-quit', 'service-restart') }),
  );
  fc.assert(
    fc.property(fc.array(input, { maxLength: 60 }), (inputs) => {
      let state = initial;
      for (const one of inputs) {
        const [next, effects] = step(state, one);
        if (effects.some((effect) => effect.do === 'apply')) {
          expect(one.kind).toBe('event');
          expect(next.epoch).toBe(state.epoch);
          expect(next.sequence).toBe(state.sequence + 1);
        }
        expect(next.buffered).toBeLessThanOrEqual(MAX_BUFFERED);
        state = next;
      }
    }),
  );
});
