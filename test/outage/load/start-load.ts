import { join } from "node:path";
import { loadResultSchema, type Call, type LoadPlan } from "./load-plan.ts";

/**
 * Runs callers in a separate process; resolves to their calls by the name of their load. Rejects if
 * the signal stops them.
 */
export async function runLoad(
  plan: LoadPlan,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, readonly Call[]>> {
  const child = Bun.spawn([process.execPath, join(import.meta.dir, "main.ts")], {
    stdin: new Blob([JSON.stringify(plan)]),
    stdout: "pipe",
    stderr: "inherit",
    signal,
    // Calls that hang must not delay others.
    env: { ...process.env, BUN_CONFIG_MAX_HTTP_REQUESTS: "65336" },
  });
  const text = await child.stdout.text();
  if ((await child.exited) !== 0) throw new Error("the callers ended with a failure");
  const result = loadResultSchema.parse(JSON.parse(text));
  return new Map(
    Object.entries(result).map(([name, rows]) => [
      name,
      rows.map(([startedAt, latencyMs, servedBy, failure]) => {
        return { startedAt, latencyMs, servedBy, failure };
      }),
    ]),
  );
}
