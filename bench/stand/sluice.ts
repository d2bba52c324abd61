import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { benchModels } from "../models.ts";
import { startChild } from "./child.ts";
import { freePort, untilReachable } from "./reachable.ts";
import type { Gateway } from "./stand.ts";

export interface SluiceOptions {
  readonly folder: string;
  readonly upstreamPort: number;
  /** The folder for the runtime's CPU profiles; undefined: no profiler. */
  readonly profileFolder: string | undefined;
}

const program = join(import.meta.dir, "../../src/main.ts");

/**
 * The gateway as operators run it, with everything on: key, limits, ledger on a file, metrics. Only
 * the supervisor is omitted, so that the serving process is measured.
 */
export async function startSluice(options: SluiceOptions): Promise<Gateway> {
  const folder = join(options.folder, `sluice-${freePort()}`);
  mkdirSync(folder);
  const configPath = join(folder, "sluice.yaml");
  const port = freePort();
  writeFileSync(configPath, configText({ folder, port, upstreamPort: options.upstreamPort }));
  const key = await createKey(configPath);
  const profile =
    options.profileFolder === undefined
      ? []
      : ["--cpu-prof", "--cpu-prof-md", "--cpu-prof-dir", options.profileFolder];
  const child = startChild({
    command: [
      process.execPath,
      ...profile,
      program,
      "serve",
      "--unsupervised",
      "--config",
      configPath,
    ],
    logPath: join(folder, "output.log"),
    // Otherwise the gateway restarts itself to set this limit, and a profiler would be lost.
    env: {
      ...process.env,
      BUN_CONFIG_MAX_HTTP_REQUESTS: options.profileFolder === undefined ? undefined : "8192",
    },
  });
  const end = (): PromiseLike<void> => child[Symbol.asyncDispose]();
  try {
    await untilReachable(port, child);
  } catch (error) {
    await end();
    throw error;
  }
  const authorization = `Bearer ${key}`;
  return { name: "sluice", port, pid: child.pid, authorization, [Symbol.asyncDispose]: end };
}

/** One key of a custom plan whose limits no load of this suite reaches. */
async function createKey(configPath: string): Promise<string> {
  const limits = ["--requests-per-minute", "999999999999", "--tokens-per-minute", "999999999999"];
  const place = ["--account", "bench", "--environment", "bench"];
  await runCommand(configPath, ["accounts", "create", "bench"]);
  await runCommand(configPath, ["applications", "create", "bench", ...place]);
  const wanted = ["--application", "bench", "--plan", "enterprise", ...limits];
  return (await runCommand(configPath, ["keys", "create", ...wanted])).trim();
}

async function runCommand(configPath: string, args: readonly string[]): Promise<string> {
  const child = Bun.spawn(
    [process.execPath, program, ...args, "--offline", "--config", configPath],
    { stdin: "ignore", stdout: "pipe", stderr: "pipe" },
  );
  const [output, complaints] = await Promise.all([child.stdout.text(), child.stderr.text()]);
  if ((await child.exited) !== 0) throw new Error(`no key could be created:\n${complaints}`);
  return output;
}

interface ConfigValues {
  readonly folder: string;
  readonly port: number;
  readonly upstreamPort: number;
}

function configText({ folder, port, upstreamPort }: ConfigValues): string {
  return `listen: { data: "127.0.0.1:${port}", admin: "127.0.0.1:0" }
storage: { url: ${JSON.stringify(`sqlite:${folder}/data/sluice.db`)} }
data_dir: ${JSON.stringify(folder)}
shutdown: { pre_stop: 0s, drain_timeout: 0s }
# What is measured is the cost of calls, not what a machine that is shared lets through.
overload: { loop_delay: 10s }
telemetry: { log_level: info }
environments:
  - { name: bench, hosts: ["*"], models: ["*"] }
upstreams:
  static:
    kind: openai
    base_url: http://127.0.0.1:${upstreamPort}/v1
    api_key: a-credential-of-the-upstream
    max_in_flight: 8192
  static-bedrock:
    kind: bedrock
    region: us-east-1
    endpoint: http://127.0.0.1:${upstreamPort}
    access_key_id: AKIDOFTHEUPSTREAM
    secret_access_key: a-credential-of-the-upstream
    max_in_flight: 8192
models:
  ${benchModels.chat}:
    kind: chat
    context_window: 200000
    max_output_tokens: 64000
    targets: [{ upstream: static, model: ${benchModels.chat} }]
  ${benchModels.bedrock}:
    kind: chat
    context_window: 200000
    max_output_tokens: 64000
    targets: [{ upstream: static-bedrock, model: us.anthropic.claude-3-5-haiku-20241022-v1:0 }]
  ${benchModels.embedding}:
    kind: embedding
    context_window: 8192
    targets: [{ upstream: static, model: ${benchModels.embedding} }]
`;
}
