import { expect } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { z } from "zod";
import { readDocument } from "../support/documents.ts";
import { freePort } from "../support/free-port.ts";
import { testNeeding } from "../support/requirement.ts";
import { queries } from "./dashboard.ts";
import { pageAfterCalls, startMeasured } from "./exposed-metrics.ts";

const resultSchema = z.object({
  status: z.literal("success"),
  data: z.object({ result: z.array(z.unknown()) }),
});
const rulesSchema = z.object({
  data: z.object({
    groups: z.array(
      z.object({
        rules: z.array(
          z.object({ name: z.string(), health: z.string(), lastError: z.string().optional() }),
        ),
      }),
    ),
  }),
});

/** Queries about what did not happen here. */
const empty = [
  "Alerts",
  "Keys at their limits",
  "Keys with failed requests",
  "Refusals by rule",
  "Restarts",
  "Share of failed calls (5xx) by model",
  "Targets that went out",
];

testNeeding("prometheus")(
  "a Prometheus reads the gateway, evaluates every alert and answers the dashboard's queries",
  async () => {
    await using gateway = await startMeasured();
    await using prometheus = await startPrometheus(new URL(gateway.adminUrl).host);
    // A rate needs two readings that differ in nothing but their time.
    await pageAfterCalls(gateway);
    await until(async () => (await prometheus.query("count_over_time(up[5m]) > 4")).length === 1);

    const unanswered = new Set<string>();
    for (const { title, expression } of queries) {
      if ((await prometheus.query(expression)).length === 0) unanswered.add(title);
    }
    expect([...unanswered].toSorted()).toEqual(empty);

    await until(async () => (await prometheus.rules()).every(({ health }) => health !== "unknown"));
    const rules = await prometheus.rules();
    expect(rules.length).toBeGreaterThan(20);
    expect(rules.filter(({ health }) => health !== "ok")).toEqual([]);
  },
  120_000,
);

async function startPrometheus(target: string) {
  const folder = mkdtempSync(join(tmpdir(), "sluice-prometheus-"));
  const jobs = [{ job_name: "sluice", static_configs: [{ targets: [target] }] }];
  const config = {
    global: { scrape_interval: "1s", evaluation_interval: "1s" },
    rule_files: ["alerts.yaml"],
    scrape_configs: jobs,
  };
  writeFileSync(join(folder, "prometheus.yaml"), JSON.stringify(config));
  writeFileSync(join(folder, "alerts.yaml"), readDocument("deploy/prometheus/alerts.yaml"));
  const address = `127.0.0.1:${freePort()}`;
  const options = ["--config.file=prometheus.yaml", "--storage.tsdb.path=data"];
  const child = Bun.spawn(["prometheus", ...options, `--web.listen-address=${address}`], {
    cwd: folder,
    stdout: "ignore",
    stderr: "ignore",
  });
  const read = async (path: string): Promise<unknown> => {
    const answer = await fetch(`http://${address}${path}`);
    return answer.json();
  };
  await until(async () => {
    if (child.exitCode !== null) throw new Error("prometheus ended");
    return fetch(`http://${address}/-/ready`).then(
      ({ ok }) => ok,
      () => false,
    );
  });
  return {
    async query(expression: string): Promise<readonly unknown[]> {
      const path = `/api/v1/query?query=${encodeURIComponent(expression)}`;
      return resultSchema.parse(await read(path)).data.result;
    },
    async rules() {
      const { groups } = rulesSchema.parse(await read("/api/v1/rules")).data;
      return groups.flatMap(({ rules }) => rules);
    },
    async [Symbol.asyncDispose]() {
      child.kill("SIGKILL");
      await child.exited;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

async function until(isTrue: () => Promise<boolean>): Promise<void> {
  while (!(await isTrue())) await Bun.sleep(200);
}
