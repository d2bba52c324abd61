/** One metric of a page, with the samples of all its series. */
export interface MetricFamily {
  readonly name: string;
  readonly help: string;
  readonly type: string;
  readonly samples: PageSample[];
}

export interface PageSample {
  /** With the ending `_bucket`, `_sum` or `_count` for a part of a histogram. */
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** Reads a page in the Prometheus text format that this program has rendered. */
export function readPage(page: string): readonly MetricFamily[] {
  const families: MetricFamily[] = [];
  let help = "";
  for (const line of page.split("\n")) {
    if (line === "") continue;
    if (line.startsWith("# HELP ")) help = line.split(" ").slice(3).join(" ");
    else if (line.startsWith("# TYPE ")) {
      const [, , name = "", type = ""] = line.split(" ");
      families.push({ name, help, type, samples: [] });
    } else families.at(-1)?.samples.push(readSample(line));
  }
  return families;
}

const labelPattern = /(\w+)="((?:[^"\\]|\\.)*)"/g;
const escaped: Readonly<Record<string, string>> = { "\\n": "\n", '\\"': '"', "\\\\": "\\" };

function readSample(line: string): PageSample {
  // A label may contain spaces and braces; a name and a value have none.
  const valueAt = line.lastIndexOf(" ");
  const labelsAt = line.indexOf("{");
  const nameEnd = labelsAt === -1 ? valueAt : labelsAt;
  const labels = Object.fromEntries(
    [...line.slice(nameEnd, valueAt).matchAll(labelPattern)].map(([, name = "", value = ""]) => [
      name,
      value.replaceAll(/\\[n"\\]/g, (text) => escaped[text] ?? text),
    ]),
  );
  return { name: line.slice(0, nameEnd), labels, value: Number(line.slice(valueAt + 1)) };
}
