/** A metric with all its series. */
export interface MetricFamily {
  readonly name: string;
  readonly help: string;
  readonly type: "counter" | "gauge" | "histogram";
  /** Upper bounds of a histogram's buckets, ascending, without infinity. */
  readonly bounds?: readonly number[] | undefined;
  readonly series: readonly MetricSeries[];
}

export interface MetricSeries {
  readonly labels: Readonly<Record<string, string>>;
  /** The sum of the observations of a histogram. */
  readonly value: number;
  /** Observations of a histogram by bucket; the last bucket has those above every bound. */
  readonly counts?: readonly number[] | undefined;
}

/** Each metric once. Equal series, as the two threads of a process have, are summed. */
export function mergeFamilies(all: readonly MetricFamily[]): readonly MetricFamily[] {
  const byName = Map.groupBy(all, ({ name }) => name);
  return [...byName.values()].flatMap(([first, ...others]) => {
    if (first === undefined) return [];
    const merged = new Map<string, MetricSeries>();
    for (const series of [first, ...others].flatMap((family) => family.series)) {
      const key = JSON.stringify(series.labels);
      const before = merged.get(key);
      merged.set(key, before === undefined ? series : sumOf(before, series));
    }
    return [{ ...first, series: [...merged.values()] }];
  });
}

function sumOf(one: MetricSeries, other: MetricSeries): MetricSeries {
  return {
    labels: one.labels,
    value: one.value + other.value,
    counts: one.counts?.map((count, index) => count + (other.counts?.[index] ?? 0)),
  };
}

/** Gives each series the label `process`. */
export function labelFamilies(
  families: readonly MetricFamily[],
  process: string,
): readonly MetricFamily[] {
  return families.map((family) => ({
    ...family,
    series: family.series.map((each) => ({ ...each, labels: { process, ...each.labels } })),
  }));
}

/** Renders the Prometheus text format, version 0.0.4. */
export function renderPage(families: readonly MetricFamily[]): string {
  return families.map(renderFamily).join("\n");
}

function renderFamily({ name, help, type, bounds = [], series }: MetricFamily): string {
  const lines = [`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`];
  for (const { labels, value, counts } of series) {
    const own = formatLabels(labels);
    if (counts === undefined) {
      lines.push(`${name}${own} ${value}`);
      continue;
    }
    let count = 0;
    for (const [index, inBucket] of counts.entries()) {
      count += inBucket;
      const le = String(bounds[index] ?? "+Inf");
      lines.push(`${name}_bucket${formatLabels({ le, ...labels })} ${count}`);
    }
    lines.push(`${name}_sum${own} ${value}`, `${name}_count${own} ${count}`);
  }
  return `${lines.join("\n")}\n`;
}

/** `{model="a",streamed="true"}`; nothing without labels. */
function formatLabels(labels: MetricSeries["labels"]): string {
  const all = Object.entries(labels).map(([name, value]) => `${name}="${escapeLabel(value)}"`);
  return all.length === 0 ? "" : `{${all.join(",")}}`;
}

function escapeLabel(value: string): string {
  return value.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n");
}
