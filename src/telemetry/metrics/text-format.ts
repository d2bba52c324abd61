export interface MetricName {
  readonly name: string;
  readonly help: string;
}

/** Renders the Prometheus text format, version 0.0.4; labels are formatted already. */
export function renderMetric(
  type: "counter" | "gauge",
  { name, help }: MetricName,
  values: Iterable<readonly [labels: string, value: number]>,
): string {
  const lines = [`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`];
  for (const [labels, value] of values) {
    lines.push(`${name}${labels === "" ? "" : `{${labels}}`} ${value}`);
  }
  return `${lines.join("\n")}\n`;
}

/** Formats labels for the Prometheus text format: `model="a",streamed="true"`. */
export function formatLabels(names: readonly string[], values: readonly string[]): string {
  return names.map((name, index) => `${name}="${escapeLabel(values[index] ?? "")}"`).join(",");
}

function escapeLabel(value: string): string {
  return value.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n");
}
