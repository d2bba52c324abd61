import type { BenchReport } from "./bench.ts";
import { meetsTarget, type Comparison, type Figure } from "./figure.ts";
import { formatNumber } from "./format-number.ts";
import { peerRows } from "./peer-rows.ts";

/** The report as text, one line a figure; with peers, also one line a gateway. */
export function formatReport(report: BenchReport): string {
  const { machine, plan, figures, peers } = report;
  const { system, cores, processor, runtime, nginx, loadGenerator } = machine;
  const head =
    `${system}, ${cores} cores, ${processor}; ${runtime}, nginx ${nginx}; ` +
    `load: ${loadGenerator}; plan: ${plan}`;
  const columns = ["figure", "unit", "direct", "nginx", "Sluice", "compared", "target", ""];
  const lines = formatTable([columns, ...figures.map(toRow)], [2, 3, 4]);
  if (peers.length === 0) return [head, "", ...lines].join("\n");
  const rows = peerRows(report);
  const numbers = (rows[0] ?? []).map((_, column) => column).slice(1);
  const notes = peers.map((peer) => `${peer.name}: ${peer.notes.trim()}`);
  return [head, "", ...lines, "", ...formatTable(rows, numbers), "", ...notes].join("\n");
}

/** Columns of numbers are aligned at their right. */
function formatTable(
  rows: readonly (readonly string[])[],
  numbers: readonly number[],
): readonly string[] {
  const widths = (rows[0] ?? []).map((_, column) =>
    Math.max(...rows.map((row) => row[column]?.length ?? 0)),
  );
  return rows.map((row) =>
    row
      .map((cell, column) => {
        const width = widths[column] ?? 0;
        return numbers.includes(column) ? cell.padStart(width) : cell.padEnd(width);
      })
      .join("  ")
      .trimEnd(),
  );
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
