// Prometheus' text format, as the service writes it.

export interface Series {
  labels: string;
  value: number;
}

export interface Metric {
  name: string;
  help: string;
  type: string;
  series: Series[];
}

export function parseMetrics(text: string): Metric[] {
  const found = new Map<string, Metric>();
  const of = (name: string): Metric => {
    const known = found.get(name) ?? { name, help: '', type: '', series: [] };
    found.set(name, known);
    return known;
  };
  for (const line of text.split('\n')) {
    const head = /^# (HELP|TYPE) (\S+) ?(.*)$/.exec(line);
    if (head) {
      const metric = of(head[2]!);
      if (head[1] === 'HELP') metric.help = head[3]!;
      else metric.type = head[3]!;
      continue;
    }
    const sample = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)/.exec(line);
    if (!sample) continue;
    // The parts of a histogram belong to the name that its head has.
    const base = sample[1]!.replace(/_(bucket|sum|count)$/, '');
    const metric = found.get(sample[1]!) ?? (found.get(base)?.type === 'histogram' ? found.get(base)! : of(sample[1]!));
    const part = sample[1] === metric.name ? '' : sample[1]!.slice(metric.name.length + 1);
    const labels = [part, sample[2] ?? ''].filter((one) => one !== '').join(' ');
    metric.series.push({ labels, value: Number(sample[3]!.replace('+Inf', 'Infinity')) });
  }
  return [...found.values()].filter((metric) => metric.series.length > 0);
}
