/** Gauges of which both threads have one; all others are summed. */
const largestCounts = new Set(["sluice_event_loop_delay_seconds", "sluice_target_ejected"]);

interface Family {
  readonly head: string[];
  readonly type: string;
  /** Values by name and labels. */
  readonly samples: Map<string, number>;
}

/**
 * Merges pages in the Prometheus text format, the series of a metric together. Those of the two
 * threads of a process are equal: counters, histograms and most gauges are summed. Those of several
 * processes differ by their label. Reads only pages that this program renders.
 */
export function mergePages(pages: readonly string[]): string {
  const families = new Map<string, Family>();
  for (const page of pages) addPage(families, page);
  return render(families.values());
}

/** Gives each series of a page the label `process`. */
export function labelPage(page: string, process: string): string {
  const label = `process="${process}"`;
  const lines = page.split("\n").map((line) => {
    if (line === "" || line.startsWith("#")) return line;
    const [brace, space] = [line.indexOf("{"), line.indexOf(" ")];
    const hasLabels = brace !== -1 && brace < space;
    return hasLabels
      ? `${line.slice(0, brace + 1)}${label},${line.slice(brace + 1)}`
      : `${line.slice(0, space)}{${label}}${line.slice(space)}`;
  });
  return lines.join("\n");
}

function addPage(families: Map<string, Family>, page: string): void {
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
    } else if (line !== "" && family !== undefined) addSample(family, { name, line });
  }
}

interface Sample {
  readonly name: string;
  readonly line: string;
}

function addSample({ samples }: Family, { name, line }: Sample): void {
  // A label may contain spaces; a value has none.
  const end = line.lastIndexOf(" ");
  const key = line.slice(0, end);
  const value = Number(line.slice(end + 1));
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
