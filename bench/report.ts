import type { BenchReport } from "./bench.ts";
import { meetsTarget, type Comparison, type Figure } from "./figure.ts";

/** The report as text, one line a figure. */
export function formatReport({ machine, plan, figures }: BenchReport): string {
  const { system, cores, processor, runtime, nginx, loadGenerator } = machine;
  const head =
    `${system}, ${cores} cores, ${processor}; ${runtime}, nginx ${nginx}; ` +
    `load: ${loadGenerator}; plan: ${plan}`;
  const columns = ["figure", "unit", "direct", "nginx", "Sluice", "compared", "target", ""];
  const rows = [columns, ...figures.map(toRow)];
  const widths = columns.map((_, column) =>
    Math.max(...rows.map((row) => row[column]?.length ?? 0)),
  );
  const lines = rows.map((row) =>
    row
      .map((cell, column) => {
        const width = widths[column] ?? 0;
        return column < 2 || column > 4 ? cell.padEnd(width) : cell.padStart(width);
      })
      .join("  ")
      .trimEnd(),
  );
  return [head, "", ...lines].join("\n");
}

function toRow(figure: Figure): readonly string[] {
  const { title, unit, direct, nginx, sluice, comparison, target } = figure;
  const isMet = meetsTarget(figure);
  return [
    title,
    unit,
    formatNumber(direct),
    formatNumber(nginx),
    formatNumber(sluice),
    comparison === undefined ? "" : formatComparison(comparison),
    target === undefined ? "" : `<= ${target}`,
    isMet === undefined ? "" : isMet ? "met" : "MISSED",
  ];
}

/** The median, with the minimum and maximum of the rounds in brackets. */
function formatComparison({ kind, value, nginx }: Comparison): string {
  const { median, least, most } = value;
  const shape = (text: string): string => (kind === "added" ? withSign(text) : `${text}x`);
  const spread = least === most ? "" : ` [${formatNumber(least)}..${formatNumber(most)}]`;
  const other = nginx === undefined ? "" : `; nginx ${shape(formatNumber(nginx.median))}`;
  return `${shape(formatNumber(median))}${spread}${other}`;
}

function withSign(text: string): string {
  return text.startsWith("-") ? text : `+${text}`;
}

function formatNumber(value: number | undefined): string {
  if (value === undefined) return "";
  return Math.abs(value) >= 100 ? String(Math.round(value)) : value.toFixed(2);
}
