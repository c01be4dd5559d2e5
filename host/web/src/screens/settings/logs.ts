// Lines of the service's logs.

export const levels = ['error', 'warn', 'info', 'debug', 'trace'] as const;
export type Level = (typeof levels)[number];

export interface LogLine {
  at: string;
  level: Level;
  text: string;
  file: string;
}

const MOST = 2000;

/** The newest lines of all files, oldest first. A line without a time belongs to the one before it. */
export function parseLogs(files: readonly { name: string; text: string }[]): LogLine[] {
  const found: LogLine[] = [];
  for (const { name, text } of files) {
    let last: LogLine | undefined;
    for (const raw of text.split('\n')) {
      if (raw.trim() === '') continue;
      const head = /^(\d{4}-\d\d-\d\dT[\d:.]+Z?)\s+(ERROR|WARN|INFO|DEBUG|TRACE)\s+(.*)$/.exec(raw);
      if (head) {
        last = { at: head[1]!, level: head[2]!.toLowerCase() as Level, text: head[3]!, file: name };
        found.push(last);
      } else if (last) {
        last.text += `\n${raw}`;
      } else {
        found.push({ at: '', level: 'info', text: raw, file: name });
      }
    }
  }
  return found.sort((a, b) => (a.at < b.at ? -1 : a.at > b.at ? 1 : 0)).slice(-MOST);
}

/** Whether a line is at least as severe. */
export function isAtLeast(line: LogLine, level: Level): boolean {
  return levels.indexOf(line.level) <= levels.indexOf(level);
}
