import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { benchModels } from "../models.ts";
import { startChild } from "./child.ts";
import { processesOf } from "./process-usage.ts";
import { freePort, untilReachable } from "./reachable.ts";
import type { Gateway } from "./stand.ts";

/** How a gateway differs from that of most figures. */
export interface SluiceKind {
  /** Default: 1. */
  readonly processes?: number;
  /** The section `limits` of its configuration. */
  readonly limits?: string;
  /** Added to the environment of its processes. */
  readonly environment?: Readonly<Record<string, string>>;
  /** A program that each of its processes loads first. */
  readonly preload?: string;
  /** Where that program writes. */
  readonly watchFolder?: string;
  /** Called with the path of its database before it starts. */
  readonly fill?: (databasePath: string) => Promise<void>;
}

export interface SluiceOptions extends SluiceKind {
  readonly folder: string;
  readonly upstreamPort: number;
  /** The folder for the runtime's CPU profiles; undefined: no profiler. */
  readonly profileFolder: string | undefined;
}

export interface SluiceGateway extends Gateway {
  readonly folder: string;
  readonly adminPort: number;
  /** The value of the header for the admin listener. */
  readonly adminAuthorization: string;
}

const program = join(import.meta.dir, "../../src/main.ts");
const startLimitMs = 15_000;
const pauseMs = 20;

/** The gateway as operators run it, with everything on: key, limits, ledger on a file, metrics. */
export async function startSluice(options: SluiceOptions): Promise<SluiceGateway> {
  const { profileFolder, preload, fill } = options;
  const folder = join(options.folder, `sluice-${freePort()}`);
  // The gateway looks at all that is written into the folder of its configuration.
  const configFolder = join(folder, "config");
  mkdirSync(configFolder, { recursive: true });
  const configPath = join(configFolder, "sluice.yaml");
  const [port, adminPort] = [freePort(), freePort()];
  const { upstreamPort, processes = 1, limits = "{}" } = options;
  writeFileSync(
    configPath,
    configText({ folder, port, adminPort, upstreamPort, processes, limits }),
  );
  const key = await createKey(configPath);
  const token = await createToken(configPath);
  await fill?.(join(folder, "data/sluice.db"));
  const runtimeOptions = [
    ...(preload === undefined ? [] : ["--preload", preload]),
    ...(profileFolder === undefined
      ? []
      : ["--cpu-prof", "--cpu-prof-md", "--cpu-prof-dir", profileFolder]),
  ];
  const child = startChild({
    command: [process.execPath, program, "serve", "--config", configPath],
    logPath: join(folder, "output.log"),
    // For all its processes.
    env: {
      ...process.env,
      ...options.environment,
      BUN_OPTIONS: runtimeOptions.join(" "),
      SLUICE_BENCH_FOLDER: options.watchFolder,
    },
  });
  const end = (): PromiseLike<void> => child[Symbol.asyncDispose]();
  const pids = (): readonly number[] => processesOf(child.pid);
  try {
    await untilReachable(port, child);
    await untilComplete(pids, processes);
  } catch (error) {
    await end();
    throw error;
  }
  return {
    name: "sluice",
    folder,
    port,
    adminPort,
    pids,
    headers: { authorization: `Bearer ${key}` },
    adminAuthorization: `Bearer ${token}`,
    [Symbol.asyncDispose]: end,
  };
}

/** Resolves when all processes run. */
async function untilComplete(pids: () => readonly number[], processes: number): Promise<void> {
  const wanted = 1 + processes;
  const deadline = performance.now() + startLimitMs;
  while (pids().length < wanted) {
    if (performance.now() > deadline) throw new Error("a process of the gateway did not start");
    await Bun.sleep(pauseMs);
  }
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

/** A token that may read reports. */
async function createToken(configPath: string): Promise<string> {
  const email = "bench@example.com";
  await runCommand(configPath, ["users", "create", email, "--role", "operator"]);
  return (await runCommand(configPath, ["tokens", "create", "bench", "--user", email])).trim();
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
  readonly adminPort: number;
  readonly upstreamPort: number;
  readonly processes: number;
  readonly limits: string;
}

function configText(values: ConfigValues): string {
  const { folder, port, adminPort, upstreamPort, processes, limits } = values;
  return `listen: { data: "127.0.0.1:${port}", admin: "127.0.0.1:${adminPort}" }
processes: ${processes}
limits: ${limits}
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
  static-too:
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
  ${benchModels.twoTargets}:
    kind: chat
    context_window: 200000
    max_output_tokens: 64000
    targets:
      - { upstream: static, model: ${benchModels.chat} }
      - { upstream: static-too, model: ${benchModels.chat} }
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
