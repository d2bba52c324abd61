import { metricsOf } from "../support/metrics-of.ts";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { cpus, tmpdir } from "node:os";
import { join } from "node:path";
import { benchModels } from "../../bench/models.ts";
import { startUpstream, type StaticUpstream } from "../../bench/stand/upstream.ts";
import { unlimited } from "../support/gateway.ts";
import { createKeysOf } from "../support/process-key.ts";
import { childrenOf, startServing, type ServingProcess } from "../support/sluice-process.ts";
import { type Load, loadResultsSchema, type LoadResult } from "./overload-load-result.ts";

/** A gateway, its upstream and the callers, each in its own process. */
export class OverloadBench implements AsyncDisposable {
  readonly gateway: ServingProcess;
  readonly onDemand: string;
  readonly provisioned: string;
  readonly #upstream: StaticUpstream;
  readonly #folder: string;

  private constructor(parts: {
    readonly gateway: ServingProcess;
    readonly upstream: StaticUpstream;
    readonly keys: readonly { readonly text: string }[];
    readonly folder: string;
  }) {
    this.gateway = parts.gateway;
    this.#upstream = parts.upstream;
    this.#folder = parts.folder;
    const [onDemand = "", provisioned = ""] = parts.keys.map(({ text }) => `Bearer ${text}`);
    this.onDemand = onDemand;
    this.provisioned = provisioned;
  }

  static async create(): Promise<OverloadBench> {
    const folder = mkdtempSync(join(tmpdir(), "sluice-overload-"));
    const upstream = await startUpstream();
    const configPath = await writeConfig(folder, upstream.port);
    const plan = { plan: "enterprise", limits: unlimited };
    const units = { provisionedUnits: 10_000, provisionedPool: "main" };
    const keys = [
      ...(await createKeysOf(configPath, 1, plan)),
      ...(await createKeysOf(configPath, 1, { ...plan, ...units })),
    ];
    const gateway = await startServing(["--config", configPath]);
    // The gateway has its own processor, so that callers cannot starve it.
    for (const pid of [gateway.pid, ...childrenOf(gateway.pid)]) pin(pid, 0);
    pin(upstream.pid, 1);
    return new OverloadBench({ gateway, upstream, keys, folder });
  }

  /** Runs loads concurrently and returns their results. */
  async load(...loads: readonly Omit<Load, "port" | "model">[]): Promise<readonly LoadResult[]> {
    const port = Number(new URL(this.gateway.dataUrl).port);
    const whole = loads.map((load) => ({ ...load, port, model: benchModels.chat }));
    const program = join(import.meta.dir, "overload-load.ts");
    const child = Bun.spawn([process.execPath, program, JSON.stringify(whole)], {
      stdin: "ignore",
      stdout: "pipe",
      stderr: "inherit",
    });
    pin(child.pid, 1);
    const output = await child.stdout.text();
    if ((await child.exited) !== 0) throw new Error(`the callers failed: ${output}`);
    return loadResultsSchema.parse(JSON.parse(output));
  }

  /** The value of a metric; without labels, of any labels. */
  async metric(name: string): Promise<number> {
    const page = await metricsOf(this.gateway.adminUrl);
    const line = page.split("\n").find((each) => each.startsWith(`${name} `));
    return Number(line?.slice(name.length + 1));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.gateway[Symbol.asyncDispose]();
    await this.#upstream[Symbol.asyncDispose]();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

/** Does nothing if there is only one processor or no `taskset`. */
function pin(pid: number, processor: number): void {
  if (cpus().length < 2 || Bun.which("taskset") === null) return;
  Bun.spawnSync(["taskset", "-acp", String(processor), String(pid)]);
}

async function writeConfig(folder: string, upstreamPort: number): Promise<string> {
  const path = join(folder, "sluice.yaml");
  mkdirSync(join(folder, "data"));
  await Bun.write(
    path,
    `listen: { data: "127.0.0.1:0", admin: "127.0.0.1:0" }
storage: { url: ${JSON.stringify(`sqlite:${folder}/data/sluice.db`)} }
data_dir: ${JSON.stringify(join(folder, "data"))}
shutdown: { pre_stop: 0s, drain_timeout: 0s }
environments: [{ name: bench, hosts: ["*"], models: ["*"] }]
upstreams:
  static:
    kind: openai
    base_url: http://127.0.0.1:${upstreamPort}/v1
    api_key: a-credential-of-the-upstream
    max_in_flight: 8192
pools:
  main: { tokens_per_minute: 10000000000 }
models:
  ${benchModels.chat}:
    kind: chat
    context_window: 200000
    max_output_tokens: 64000
    targets: [{ upstream: static, model: ${benchModels.chat}, pool: main }]
`,
  );
  return path;
}
