import { parseArgs } from "node:util";

import { systemClock } from "../domain/clock.ts";
import type { BedrockOptions } from "./bedrock/bedrock-service.ts";
import {
  demoApiKey,
  demoCredentials,
  type SimulatedCredential,
} from "./bedrock/account/credential-book.ts";
import { faultListing } from "./faults/fault-listing.ts";
import { parseFault, type FaultStep } from "./faults/fault-mode.ts";
import { startSimulator, type SimulatorOptions } from "./simulator.ts";

/** The options of `sluice simulator`, as its help shows them. */
export const simulatorOptions = [
  { flag: "--listen HOST:PORT", meaning: "where to listen (default 127.0.0.1:9090)" },
  { flag: "--tokens-per-second N", meaning: "how fast answers are written (default: at once)" },
  { flag: "--first-token-delay MS", meaning: "delay before the first token (default 0)" },
  {
    flag: "--fault MODE[:ARGUMENT][*TIMES][@PERCENT]",
    meaning:
      "faults of the next calls; repeatable; *ever: for all calls, @10: for every tenth call",
  },
  { flag: "--api-key KEY", meaning: "OpenAI's wire: accept only this key; repeatable" },
  {
    flag: "--bedrock-credential ID:SECRET",
    meaning: "Bedrock's wire: accept only this pair; repeatable",
  },
  {
    flag: "--bedrock-api-key KEY",
    meaning: "Bedrock's wire: accept only this bearer key; repeatable",
  },
  {
    flag: "--models-as-of DATE",
    meaning: "Bedrock's wire: refuse models retired by this date: YYYY-MM-DD, or now",
  },
  { flag: "--help", meaning: "show this text" },
] as const;

/** Runs the simulator until the signal fires. Resolves to the exit code of the process. */
export async function runSimulator(
  commandLine: readonly string[],
  io: { print(line: string): void; readonly signal: AbortSignal },
): Promise<number> {
  const options = readCommandLine(commandLine);
  if (options === "help") {
    for (const line of helpLines()) io.print(line);
    return 0;
  }
  if (typeof options === "string") {
    io.print(options);
    return 2;
  }
  try {
    await using simulator = startSimulator(options);
    io.print(`The simulator listens on ${simulator.url}`);
    for (const line of tryLines(simulator.url, options.apiKeys?.[0])) io.print(line);
    io.print(`Bedrock's wire is at ${simulator.origin}; see --help for its credentials.`);
    await aborted(io.signal);
    return 0;
  } catch (error) {
    io.print(error instanceof Error ? error.message : String(error));
    return 1;
  }
}

/** A command line that can be pasted as it is. */
function tryLines(url: string, apiKey: string | undefined): readonly string[] {
  const authorization = `authorization: Bearer ${apiKey ?? ""}`.replaceAll("'", `'\\''`);
  return [
    `Try: curl ${url}/chat/completions -H 'content-type: application/json' \\`,
    ...(apiKey === undefined ? [] : [`  -H '${authorization}' \\`]),
    `  -d '{"model":"any","messages":[{"role":"user","content":"Hello!"}]}'`,
  ];
}

/** Returns the options, `help`, or a sentence that names the mistake. */
function readCommandLine(commandLine: readonly string[]): SimulatorOptions | string {
  let values;
  try {
    ({ values } = parseArgs({
      args: [...commandLine],
      options: {
        listen: { type: "string", default: "127.0.0.1:9090" },
        "tokens-per-second": { type: "string", default: "0" },
        "first-token-delay": { type: "string", default: "0" },
        fault: { type: "string", multiple: true, default: [] },
        "api-key": { type: "string", multiple: true, default: [] },
        "bedrock-credential": { type: "string", multiple: true, default: [] },
        "bedrock-api-key": { type: "string", multiple: true, default: [] },
        "models-as-of": { type: "string" },
        help: { type: "boolean", default: false },
      },
    }));
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
  if (values.help) return "help";
  const listen = /^(?:\[(.+)\]|([^:]+)):(\d{1,5})$/.exec(values.listen);
  const hostname = listen?.[1] ?? listen?.[2];
  const port = Number(listen?.[3]);
  if (hostname === undefined || port > 65_535) return "--listen takes HOST:PORT";
  const tokensPerSecond = Number(values["tokens-per-second"]);
  if (!(tokensPerSecond >= 0)) return "--tokens-per-second takes a number";
  const firstTokenDelayMs = Number(values["first-token-delay"]);
  if (!(firstTokenDelayMs >= 0)) return "--first-token-delay takes milliseconds";
  const faultPlan: FaultStep[] = [];
  for (const text of values.fault) {
    const step = readFaultStep(text);
    if (step === undefined) return `no such fault: ${text}; see --help`;
    faultPlan.push(step);
  }
  const bedrock = readCredentials(values["bedrock-credential"], values["bedrock-api-key"]);
  if (typeof bedrock === "string") return bedrock;
  const modelsAsOf = readDate(values["models-as-of"]);
  if (Number.isNaN(modelsAsOf)) return "--models-as-of takes YYYY-MM-DD, or now";
  const keys = values["api-key"];
  const pace = { tokensPerSecond, firstTokenDelayMs };
  const base = { hostname, port, ...pace, faultPlan, bedrock: { ...bedrock, modelsAsOf } };
  return keys.length === 0 ? base : { ...base, apiKeys: keys };
}

/** Milliseconds since the epoch; `NaN` if the text is not a date. */
function readDate(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (text === "now") return systemClock.now();
  return /^\d{4}-\d\d-\d\d$/.test(text) ? Date.parse(text) : Number.NaN;
}

/** The credentials of Bedrock's wire; by default the published ones of the demo. */
function readCredentials(
  pairs: readonly string[],
  apiKeys: readonly string[],
): BedrockOptions | string {
  if (pairs.length === 0 && apiKeys.length === 0) return {};
  const credentials: SimulatedCredential[] = [];
  for (const pair of pairs) {
    const [, accessKeyId, secretAccessKey] = /^([^:]+):(.+)$/.exec(pair) ?? [];
    if (accessKeyId === undefined || secretAccessKey === undefined) {
      return "--bedrock-credential takes ID:SECRET";
    }
    credentials.push({ accessKeyId, secretAccessKey });
  }
  return { credentials, apiKeys };
}

/**
 * `stall-mid:500*3`: the next three calls stall for half a second; `error-500*ever@10`: every tenth
 * call fails.
 */
function readFaultStep(text: string): FaultStep | undefined {
  const parts = /^([^*@]+)(?:\*(\d+|ever))?(?:@(\d+(?:\.\d+)?))?$/.exec(text);
  const fault = parseFault(parts?.[1] ?? "");
  const times = parts?.[2] === "ever" ? Number.POSITIVE_INFINITY : Number(parts?.[2] ?? 1);
  const share = Number(parts?.[3] ?? 100) / 100;
  if (fault === undefined || !(share > 0 && share <= 1)) return undefined;
  const step = { mode: fault.mode, times, share };
  return fault.argument === undefined ? step : { ...step, argument: fault.argument };
}

function helpLines(): string[] {
  const width = Math.max(...simulatorOptions.map(({ flag }) => flag.length));
  return [
    "usage: sluice simulator [options]",
    "",
    "A stand-in provider that speaks the wire formats of OpenAI (at /v1) and of Amazon Bedrock",
    "(at the same address without /v1), and makes up its answers.",
    "",
    ...simulatorOptions.map(({ flag, meaning }) => `  ${flag.padEnd(width)}  ${meaning}`),
    "",
    "Faults, also by the header x-simulator-fault or a model named fault-MODE[-ARGUMENT]:",
    "",
    ...faultListing(),
    "",
    "Bedrock's wire: Converse, ConverseStream, InvokeModel for embeddings and imported models,",
    "and CountTokens, under /model/ID. Signatures are verified. Default credentials:",
    "",
    `  access key id      ${demoCredentials.accessKeyId}`,
    `  secret access key  ${demoCredentials.secretAccessKey}`,
    `  or bearer key      ${demoApiKey}`,
    "",
    "Models are those of the provider, with their limits; ids that begin with simulated- or fault-,",
    "and ARNs that do not name a foundation model, can do everything.",
    "",
    'User messages that script the answer: "echo: TEXT", "count: N", "refuse: ANYTHING", and',
    '"bulk: N", which is N pieces of 16 KiB.',
    'With a guardrail on Bedrock\'s wire, "guard: ANYTHING" is blocked.',
    "GET /truth lists what really happened to each call; DELETE /truth clears the list.",
  ];
}

function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    signal.addEventListener("abort", () => resolve(), { once: true });
  });
}

/** What `--help` prints. */
export function helpText(): string {
  return helpLines().join("\n");
}
