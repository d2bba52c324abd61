/**
 * Runs the tests of Sluice's promises and prints every figure with its limit, as a table for the
 * documents. Exits with 1 when a promise is broken or a test fails.
 *
 * `npm run scorecard` runs them small, `npm run scorecard -- --all` at full size. Further arguments
 * are parts of file names: only those files run.
 */
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ScorecardLine } from "../test/support/scorecard.ts";

const isComplete = process.argv.includes("--all");
const filters = process.argv.slice(2).filter((argument) => argument !== "--all");
/** The module that tests import to report figures. */
const reporter = "support/scorecard.ts";
const heading = ["check", "what", "figure", "limit", ""];

process.exitCode = await main();

async function main(): Promise<number> {
  const files = proofFiles();
  if (files.length === 0) {
    console.log("no test that reports a figure has such a name");
    return 1;
  }
  const lines: ScorecardLine[] = [];
  const failed: string[] = [];
  // One after the other, because parallel tests would distort times and memory.
  for (const file of files) {
    const startedAt = performance.now();
    const run = await runFile(file);
    const seconds = ((performance.now() - startedAt) / 1000).toFixed(0);
    const isGood = run.exitCode === 0 && run.lines.length > 0;
    console.log(`${isGood ? "ok    " : "FAILED"} ${file} (${seconds} s)`);
    lines.push(...run.lines);
    if (isGood) continue;
    failed.push(file);
    console.log(run.lines.length === 0 ? `${run.output}\nIt reported nothing.` : run.output);
  }
  console.log(`\n${table(lines.toSorted(byCheck))}\n`);
  const unmet = lines.filter(({ isMet }) => !isMet).length;
  console.log(
    `${lines.length} figures, ${unmet} not met, ${failed.length} of ${files.length} files failed`,
  );
  return unmet === 0 && failed.length === 0 ? 0 : 1;
}

/** All tests that report figures. */
function proofFiles(): readonly string[] {
  return [...new Bun.Glob("test/**/*.test.ts").scanSync(".")]
    .filter((file) => readFileSync(file, "utf8").includes(reporter))
    .filter((file) => filters.length === 0 || filters.some((filter) => file.includes(filter)))
    .toSorted();
}

interface FinishedFile {
  readonly exitCode: number;
  readonly output: string;
  readonly lines: readonly ScorecardLine[];
}

async function runFile(file: string): Promise<FinishedFile> {
  const folder = mkdtempSync(join(tmpdir(), "sluice-scorecard-"));
  const figures = join(folder, "figures.jsonl");
  try {
    const child = Bun.spawn([process.execPath, "test", "--timeout=60000", `./${file}`], {
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
      env: {
        ...process.env,
        SLUICE_SCORECARD: figures,
        SLUICE_TEST_ALL: isComplete ? "measured" : "0",
        BUN_CONFIG_MAX_HTTP_REQUESTS: "8192",
      },
    });
    const [output, errors, exitCode] = await Promise.all([
      new Response(child.stdout).text(),
      new Response(child.stderr).text(),
      child.exited,
    ]);
    return { exitCode, output: `${output}${errors}`.trim(), lines: readFigures(figures) };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function readFigures(path: string): readonly ScorecardLine[] {
  if (!existsSync(path)) return [];
  return readFileSync(path, "utf8").trim().split("\n").map(readFigure);
}

function readFigure(text: string): ScorecardLine {
  const line: unknown = JSON.parse(text);
  if (isFigure(line)) return line;
  throw new Error(`this is no figure: ${text}`);
}

function isFigure(line: unknown): line is ScorecardLine {
  const names = ["check", "name", "value", "limit", "isMet"];
  return typeof line === "object" && line !== null && names.every((name) => name in line);
}

/** Numbered checks first, by their numbers. */
function byCheck({ check: one }: ScorecardLine, { check: other }: ScorecardLine): number {
  if (typeof one === "number" && typeof other === "number") return one - other;
  if (typeof one === typeof other) return String(one).localeCompare(String(other));
  return typeof one === "number" ? -1 : 1;
}

function table(lines: readonly ScorecardLine[]): string {
  const rows = lines.map(({ check, name, value, limit, isMet }) =>
    [check, name, value, limit, isMet ? "PASS" : "FAIL"].map(String),
  );
  const widths = heading.map((title, column) =>
    Math.max(3, ...[title, ...rows.map((row) => row[column] ?? "")].map((text) => text.length)),
  );
  const format = (row: readonly string[]): string =>
    `| ${row.map((text, column) => text.padEnd(widths[column] ?? 0)).join(" | ")} |`;
  const rule = widths.map((width) => "-".repeat(width));
  return [heading, rule, ...rows].map(format).join("\n");
}
