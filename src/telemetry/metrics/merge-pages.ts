/** Gauges whose largest value is used; all others are summed. */
const largestCounts = new Set([
  "sluice_keys_age_seconds",
  "sluice_event_loop_delay_seconds",
  "sluice_target_ejected",
  "sluice_build_info",
  // Two workers have one number while one replaces the other.
  "process_max_fds",
  "process_start_time_seconds",
]);

interface Family {
  readonly head: string[];
  readonly type: string;
  /** Values by name and labels. */
  readonly samples: Map<string, number>;
}

/**
 * Merges the pages of several processes, in the Prometheus text format: counters, histograms and
 * most gauges are summed, minus the counts in `before`. Reads only pages that this program renders.
 */
export function mergePages(pages: readonly string[], before: readonly string[] = []): string {
  const families = new Map<string, Family>();
  for (const page of pages) addPage(families, page);
  for (const page of before) addPage(families, page, -1);
  return render(families.values());
}

/**
 * The same without gauges: the part that remains of an ended process, so that no counter decreases.
 */
export function mergeEnded(pages: readonly string[]): string {
  const families = new Map<string, Family>();
  for (const page of pages) addPage(families, page);
  return render([...families.values()].filter(({ type }) => type !== "gauge"));
}

function addPage(families: Map<string, Family>, page: string, factor = 1): void {
  let family: Family | undefined;
  let name = "";
  let help = "";
  for (const line of page.split("\n")) {
    if (line.startsWith("# HELP ")) help = line;
    else if (line.startsWith("# TYPE ")) {
      const [, , named = "", type = ""] = line.split(" ");
      name = named;
      family = families.get(name) ?? { head: [help, line], type, samples: new Map() };
      families.set(name, family);
    } else if (line !== "" && family !== undefined) addSample(family, { name, line, factor });
  }
}

interface Sample {
  readonly name: string;
  readonly line: string;
  readonly factor: number;
}

function addSample({ samples }: Family, { name, line, factor }: Sample): void {
  // A label may contain spaces; a value has none.
  const end = line.lastIndexOf(" ");
  const key = line.slice(0, end);
  const value = factor * Number(line.slice(end + 1));
  const before = samples.get(key);
  if (before === undefined) samples.set(key, value);
  else samples.set(key, largestCounts.has(name) ? Math.max(before, value) : before + value);
}

function render(families: Iterable<Family>): string {
  const parts: string[] = [];
  for (const { head, samples } of families) {
    const lines = [...samples].map(([key, value]) => `${key} ${value}`);
    parts.push(`${[...head, ...lines].join("\n")}\n`);
  }
  return parts.join("\n");
}
