/** A metric of a page in the Prometheus text format. */
export interface PageMetric {
  readonly type: string;
  readonly help: string;
  /** Of all its series; without `le` of the buckets. */
  readonly labels: Set<string>;
}

/** The metrics of a page by name; those of a histogram are one. */
export function readMetrics(page: string): ReadonlyMap<string, PageMetric> {
  const metrics = new Map<string, PageMetric>();
  let help = "";
  let current: PageMetric | undefined;
  for (const line of page.split("\n")) {
    const [, kind, name = "", text = ""] = /^# (HELP|TYPE) (\S+) (.*)$/.exec(line) ?? [];
    if (kind === "HELP") help = text;
    else if (kind === "TYPE") {
      current = { type: text, help, labels: new Set() };
      metrics.set(name, current);
    } else for (const label of labelsOf(line)) current?.labels.add(label);
  }
  return metrics;
}

/** Names and labels of the samples of a page, without their values. */
export function seriesOf(page: string): readonly string[] {
  return page
    .split("\n")
    .filter((line) => line !== "" && !line.startsWith("#"))
    .map((line) => line.slice(0, line.lastIndexOf(" ")));
}

function labelsOf(line: string): readonly string[] {
  const names = [...line.matchAll(/[{,](\w+)="(?:[^"\\]|\\.)*"/g)].map(([, name = ""]) => name);
  return names.filter((name) => name !== "le");
}
