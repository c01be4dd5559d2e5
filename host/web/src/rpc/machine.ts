// The connection as a table: `step(state, input)` gives the next state and what to do. No socket, no clock.

export type Phase = 'idle' | 'connecting' | 'hello' | 'snapshot' | 'live' | 'probing' | 'waiting' | 'stopped' | 'login';

/** Why a person must log in: no key yet, wrong key, the service is not set up, or too many wrong keys. */
export type LoginReason = 'missing' | 'refused' | 'setup' | 'throttled';

export interface Machine {
  phase: Phase;
  /** Failed attempts in a row, for the back-off. */
  attempt: number;
  epoch: string;
  sequence: number;
  /** Events that came while a snapshot was on its way. */
  buffered: number;
  /** Snapshots in a row without an event between them. */
  resyncs: number;
  /** Milliseconds until the next attempt. */
  delay: number;
  loginReason: LoginReason | null;
}

export type Input =
  | { kind: 'start' }
  | { kind: 'opened' }
  | { kind: 'closed'; code: number; reason: string }
  | { kind: 'helloAnswered' }
  | { kind: 'helloRefused'; code: string }
  | { kind: 'snapshotAnswered'; epoch: string; sequence: number }
  | { kind: 'snapshotRefused' }
  | { kind: 'event'; epoch: string; sequence: number }
  | { kind: 'probed'; answer: 'ok' | 'unauthorized' | 'setup' | 'throttled' | 'unreachable' }
  | { kind: 'timer' }
  /** The network is back, the page is shown again, or the user asks. */
  | { kind: 'wake' }
  | { kind: 'signOut' };

export type Effect =
  | { do: 'open' }
  | { do: 'close' }
  | { do: 'hello' }
  | { do: 'snapshot' }
  /** The socket did not open, and a browser does not say why. */
  | { do: 'probe' }
  | { do: 'wait'; ms: number }
  | { do: 'buffer' }
  | { do: 'apply' }
  | { do: 'skip' }
  /** The snapshot, then the buffered events after it. */
  | { do: 'replace' }
  /** Pending calls will not be answered. */
  | { do: 'fail' };

export const FIRST_DELAY = 500;
export const LAST_DELAY = 15_000;
export const MAX_BUFFERED = 20_000;
export const MAX_RESYNCS = 5;

export const initial: Machine = {
  phase: 'idle', attempt: 0, epoch: '', sequence: 0, buffered: 0, resyncs: 0, delay: 0, loginReason: null,
};

type Step = [Machine, Effect[]];

function connect(state: Machine): Step {
  return [{ ...state, phase: 'connecting', buffered: 0, delay: 0, loginReason: null }, [{ do: 'open' }]];
}

function resync(state: Machine): Step {
  if (state.resyncs >= MAX_RESYNCS) {
    const [next, effects] = wait({ ...state, resyncs: 0 });
    return [next, [{ do: 'close' }, { do: 'fail' }, ...effects]];
  }
  return [{ ...state, phase: 'snapshot', buffered: 0, resyncs: state.resyncs + 1 }, [{ do: 'snapshot' }]];
}

/** Twice as long after every failure; the driver spreads it by ± 20 %. */
function wait(state: Machine): Step {
  const ms = Math.min(FIRST_DELAY * 2 ** state.attempt, LAST_DELAY);
  return [{ ...state, phase: 'waiting', attempt: Math.min(state.attempt + 1, 16), delay: ms, buffered: 0 }, [{ do: 'wait', ms }]];
}

function login(state: Machine, reason: LoginReason): Step {
  return [{ ...state, phase: 'login', loginReason: reason, buffered: 0 }, []];
}

function closed(state: Machine, code: number, reason: string): Step {
  const failed: Effect = { do: 'fail' };
  if (code === 1008) {
    const [next] = login(state, 'refused');
    return [next, [failed]];
  }
  if (code === 1001 && reason === 'service-quit') return [{ ...state, phase: 'stopped', buffered: 0 }, [failed]];
  const isAtOnce = code === 4009 || (code === 1001 && reason === 'service-restart');
  if (isAtOnce && state.attempt === 0) {
    const [next, effects] = connect({ ...state, attempt: 1 });
    return [next, [failed, ...effects]];
  }
  if (state.phase === 'connecting') return [{ ...state, phase: 'probing' }, [failed, { do: 'probe' }]];
  const [next, effects] = wait(state);
  return [next, [failed, ...effects]];
}

export function step(state: Machine, input: Input): Step {
  const { phase } = state;
  const isUp = phase === 'connecting' || phase === 'hello' || phase === 'snapshot' || phase === 'live';
  switch (input.kind) {
    case 'start':
      return isUp ? [state, []] : connect({ ...state, attempt: 0 });
    case 'signOut': {
      const [next] = login({ ...state, attempt: 0, epoch: '', sequence: 0 }, 'missing');
      return [next, isUp ? [{ do: 'close' }, { do: 'fail' }] : []];
    }
    case 'opened':
      return phase === 'connecting' ? [{ ...state, phase: 'hello' }, [{ do: 'hello' }]] : [state, []];
    case 'helloAnswered':
      return phase === 'hello' ? [{ ...state, phase: 'snapshot', resyncs: 0 }, [{ do: 'snapshot' }]] : [state, []];
    case 'helloRefused': {
      if (phase !== 'hello') return [state, []];
      const [next, effects] = input.code === 'unauthorized' ? login(state, 'refused') : wait(state);
      return [next, [{ do: 'close' }, { do: 'fail' }, ...effects]];
    }
    case 'snapshotAnswered':
      if (phase !== 'snapshot') return [state, []];
      return [
        { ...state, phase: 'live', attempt: 0, epoch: input.epoch, sequence: input.sequence, buffered: 0 },
        [{ do: 'replace' }],
      ];
    case 'snapshotRefused': {
      if (phase !== 'snapshot') return [state, []];
      const [next, effects] = wait(state);
      return [next, [{ do: 'close' }, { do: 'fail' }, ...effects]];
    }
    case 'event':
      if (phase === 'snapshot') {
        if (state.buffered >= MAX_BUFFERED) return resync(state);
        return [{ ...state, buffered: state.buffered + 1 }, [{ do: 'buffer' }]];
      }
      if (phase !== 'live') return [state, [{ do: 'skip' }]];
      if (input.epoch !== state.epoch) return resync(state);
      if (input.sequence <= state.sequence) return [state, [{ do: 'skip' }]];
      if (input.sequence !== state.sequence + 1) return resync(state);
      return [{ ...state, sequence: input.sequence, resyncs: 0 }, [{ do: 'apply' }]];
    case 'closed':
      return isUp ? closed(state, input.code, input.reason) : [state, []];
    case 'probed':
      if (phase !== 'probing') return [state, []];
      if (input.answer === 'unauthorized') return login(state, 'refused');
      if (input.answer === 'setup') return login(state, 'setup');
      if (input.answer === 'throttled') return login(state, 'throttled');
      return wait(state);
    case 'timer':
      return phase === 'waiting' ? connect(state) : [state, []];
    case 'wake':
      return phase === 'waiting' || phase === 'stopped' ? connect({ ...state, attempt: 0 }) : [state, []];
  }
}
