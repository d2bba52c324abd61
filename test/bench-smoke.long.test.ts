import { expect } from "bun:test";
import { mkdtempSync, readdirSync, readFileSync, rmdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { z } from "zod";
import { postgresPrograms } from "./support/postgres-server.ts";
import { isComplete, testNeeding, testWhere } from "./support/requirement.ts";

const measured = z.number().positive();
const summarySchema = z.strictObject({
  median: z.number(),
  least: z.number(),
  most: z.number(),
});
const figureSchema = z.strictObject({
  name: z.string(),
  title: z.string().min(1),
  unit: z.string().min(1),
  nginx: measured.optional(),
  direct: measured.optional(),
  sluice: measured,
  // Differences of latencies may come out below nothing in a run this short.
  comparison: z
    .strictObject({
      kind: z.enum(["ratio", "added", "growth", "kinds"]),
      value: summarySchema,
      nginx: summarySchema.optional(),
    })
    .optional(),
  peers: z.tuple([]).optional(),
  target: measured.optional(),
  judges: z.literal("value").optional(),
});
const reportSchema = z.strictObject({
  plan: z.literal("quick"),
  machine: z.record(z.string(), z.union([z.string().min(1), measured])),
  figures: z.array(figureSchema),
  peers: z.tuple([]),
});

const reportNames = [
  "insert_busy",
  "insert_sparse",
  "page_first",
  "page_deep",
  "page_key",
  "page_application",
  "page_rare",
  "page_none",
  "series_day",
  "series_day_key",
  "series_day_status",
  "series_hour",
  "series_hour_key",
  "series_hour_model",
  "series_hour_one_key",
  "totals",
  "percentiles",
  "longest_step",
];

const names = [
  "calls.cpu",
  "calls.per_cpu_second",
  "calls.resident",
  "chunks.cpu",
  "chunks.per_read",
  "crowd.first_p99",
  "crowd.per_read",
  "crowd.cpu",
  "bedrock.call_cpu",
  "bedrock.chunk_cpu",
  "latency.p50_at_1",
  "latency.p99_at_1",
  "latency.p50_at_16",
  "latency.p99_at_16",
  "latency.p50_at_64",
  "latency.p99_at_64",
  "paced.p50_at_sixth",
  "paced.p99_at_sixth",
  "paced.p50_at_half",
  "paced.p99_at_half",
  ...(Bun.which("taskset") === null ? [] : ["throughput.one_core"]),
  "embeddings.time",
  "memory.at_rest",
  "memory.per_stream_at_100",
  "memory.per_stream_at_300",
  "memory.after_few_calls",
  "memory.after_many_calls",
  "garbage.call",
  "holds.p999",
  "holds.longest",
  "holds.p999_busy",
  "holds.p999_wall",
  "start.first_answer",
  "start.memory",
  ...reportNames.map((name) => `reports.sqlite.${name}`),
  ...(postgresPrograms === undefined ? [] : reportNames.map((name) => `reports.postgres.${name}`)),
];

const limitMs = 900_000;

/** It needs the processor for itself, which only a complete run gives it. */
const testAlone = isComplete
  ? testNeeding("nginx")
  : testWhere(false, "the benchmark is tried by `npm run test:all` and `npm run bench -- --quick`");

testAlone(
  "a quick benchmark measures every figure, and leaves no process behind",
  async () => {
    const program = join(import.meta.dir, "../bench/main.ts");
    const folder = mkdtempSync(join(tmpdir(), "sluice-bench-test-"));
    const child = Bun.spawn([process.execPath, program, "--quick", "--json"], {
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
      env: { ...process.env, TMPDIR: folder },
    });
    const [output, progress] = await Promise.all([child.stdout.text(), child.stderr.text()]);
    expect({ exitCode: await child.exited, progress }).toMatchObject({ exitCode: 0 });
    const report = reportSchema.parse(JSON.parse(output));
    expect(report.figures.map(({ name }) => name)).toEqual(names);
    const ratios = report.figures.filter(({ comparison }) => comparison?.kind === "ratio");
    expect(ratios.map(({ name }) => name)).toEqual([
      "calls.cpu",
      "chunks.cpu",
      "crowd.cpu",
      "embeddings.time",
    ]);
    for (const { comparison } of ratios) expect(comparison?.value.median).toBeGreaterThan(0);
    // What it starts is told its folder on the command line.
    expect(commandLines().filter((line) => line.includes(folder))).toEqual([]);
    // Removes the folder only when the run has emptied it.
    rmdirSync(folder);
  },
  limitMs,
);

function commandLines(): readonly string[] {
  const processes = readdirSync("/proc").filter((name) => /^[0-9]+$/.test(name));
  const lines = processes.map(readCommandLine);
  expect(lines.some((line) => line.includes("bun"))).toBe(true);
  return lines;
}

function readCommandLine(processId: string): string {
  try {
    return readFileSync(`/proc/${processId}/cmdline`, "utf8").replaceAll("\0", " ");
  } catch {
    // It ended meanwhile.
    return "";
  }
}
