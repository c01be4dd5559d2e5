import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { clock, DAY, has, minutes, runs, snap, toggle } from '../../src/screens/queues/week';
import { parseMetrics } from '../../src/screens/settings/metrics';
import { isAtLeast, parseLogs } from '../../src/screens/settings/logs';
import { licences } from '../../src/screens/settings/licences';

const at = (text: string): number => minutes(text)!;

describe('a week', () => {
  it('runs within each day', () => {
    expect(runs(at('08:00'), at('18:00'), 0b0011111)).toEqual([...Array.from({ length: 5 }, () => [[480, 1080]]), [], []]);
  });

  it('runs over midnight as two edges on their own days', () => {
    expect(runs(at('23:00'), at('06:00'), 127)).toEqual(Array.from({ length: 7 }, (_, day) => (day === 0 ? expect.arrayContaining([[1380, DAY], [0, 360]]) : expect.arrayContaining([[0, 360], [1380, DAY]]))));
    // On Saturday alone it starts at 23:00 and is stopped by the next Saturday's edge.
    const saturday = runs(at('23:00'), at('06:00'), 1 << 5);
    expect(saturday[6]).toEqual([[0, DAY]]);
    expect(saturday[0]).toEqual([[0, DAY]]);
    expect(saturday[5]).toEqual(expect.arrayContaining([[1380, DAY], [0, 360]]));
  });

  it('never runs if it is stopped at the same minute, and for ever if nothing stops it', () => {
    expect(runs(60, 60, 127).flat()).toEqual([]);
    expect(runs(null, 60, 127).flat()).toEqual([]);
    expect(runs(60, null, 1).every((day) => day.length > 0)).toBe(true);
  });

  it('is what a simulation minute by minute gives', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: DAY - 1 }), fc.integer({ min: 0, max: DAY - 1 }), fc.integer({ min: 1, max: 127 }), (start, stop, days) => {
        const week = runs(start, stop, days);
        let isOn = false;
        // The second round begins in the state in which the first ended.
        for (let minute = 0; minute < 14 * DAY; minute++) {
          const [day, inDay] = [Math.floor(minute / DAY) % 7, minute % DAY];
          if (has(days, day) && inDay === start) isOn = true;
          if (has(days, day) && inDay === stop) isOn = false;
          if (minute < 7 * DAY) continue;
          const isDrawn = week[day]!.some(([from, to]) => inDay >= from && inDay < to);
          if (isDrawn !== isOn) return false;
        }
        return true;
      }),
      { numRuns: 60 },
    );
  });

  it('keeps at least one day and times of five minutes', () => {
    expect(toggle(1, 0)).toBe(1);
    expect(toggle(0, 6)).toBe(0b0111111);
    expect(snap(1439)).toBe(1435);
    expect(clock(snap(62))).toBe('01:00');
    expect(minutes('24:00')).toBeNull();
  });
});

describe('metrics', () => {
  it('are read with labels and help', () => {
    const text = '# HELP svc_tasks Tasks, by status.\n# TYPE svc_tasks gauge\nsvc_tasks{status="paused"} 3\nsvc_tasks{status="error"} 0\n# HELP svc_empty Nothing.\n# TYPE svc_empty counter\n';
    expect(parseMetrics(text)).toEqual([{ name: 'svc_tasks', help: 'Tasks, by status.', type: 'gauge', series: [{ labels: 'status="paused"', value: 3 }, { labels: 'status="error"', value: 0 }] }]);
  });

  it('keep the parts of a histogram together', () => {
    const [one] = parseMetrics('# HELP a A.\n# TYPE a histogram\na_bucket{le="+Inf"} 2\na_sum 1.5\na_count 2\n');
    expect(one!.series.map((series) => series.labels)).toEqual(['bucket le="+Inf"', 'sum', 'count']);
  });
});

describe('logs', () => {
  it('are merged by time, and lines without one belong to the line before', () => {
    const lines = parseLogs([
      { name: 'a', text: '2026-11-28T04:57:47.8Z  WARN a: one\n  more\n2026-11-28T04:57:49.0Z ERROR a: three\n' },
      { name: 'b', text: '2026-11-28T04:57:48.1Z  INFO b: two\n' },
    ]);
    expect(lines.map((line) => line.text)).toEqual(['a: one\n  more', 'b: two', 'a: three']);
    expect(lines.filter((line) => isAtLeast(line, 'warn')).length).toBe(2);
  });

  it('are bounded', () => {
    const text = Array.from({ length: 3000 }, (_, at) => `2026-11-28T04:57:47.${String(at).padStart(4, '0')}Z INFO x: ${at}`).join('\n');
    expect(parseLogs([{ name: 'a', text }]).length).toBe(2000);
  });
});

describe('licences', () => {
  it('are those of the dependencies', () => {
    const { dependencies } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as { dependencies: Record<string, string> };
    const theirs = Object.keys(dependencies)
      .sort()
      .map((name) => ({ name, licence: (JSON.parse(readFileSync(new URL(`../../node_modules/${name}/package.json`, import.meta.url), 'utf8')) as { license: string }).license }));
    expect([...licences]).toEqual(theirs);
  });
});
