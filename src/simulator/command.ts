import { parseArgs } from "node:util";

import { faultListing } from "./faults/fault-listing.ts";
import { parseFault, type FaultStep } from "./faults/fault-mode.ts";
import { startSimulator, type SimulatorOptions } from "./simulator.ts";

/** The options of `sluice simulator`, as its help shows them. */
export const simulatorOptions = [
  { flag: "--listen HOST:PORT", meaning: "where to listen (default 127.0.0.1:9090)" },
  { flag: "--tokens-per-second N", meaning: "how fast answers are written (default: at once)" },
  { flag: "--first-token-delay MS", meaning: "how long answers take to begin (default 0)" },
  { flag: "--fault MODE[:ARGUMENT][*TIMES]", meaning: "faults of the next calls; repeatable" },
  { flag: "--api-key KEY", meaning: "accept this key only; repeatable (default: any)" },
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
    io.print(`Try: curl ${simulator.url}/chat/completions -H 'content-type: application/json' \\`);
    io.print(`  -d '{"model":"any","messages":[{"role":"user","content":"Hello!"}]}'`);
    await firing(io.signal);
    return 0;
  } catch (error) {
    io.print(error instanceof Error ? error.message : String(error));
    return 1;
  }
}

/** Options, the word `help`, or else a sentence that says what is wrong. */
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
  const keys = values["api-key"];
  const base = { hostname, port, tokensPerSecond, firstTokenDelayMs, faultPlan };
  return keys.length === 0 ? base : { ...base, apiKeys: keys };
}

/** `stall-mid:500*3`: the next three calls stall for half a second. */
function readFaultStep(text: string): FaultStep | undefined {
  const [name = "", times = "1"] = text.split("*");
  const fault = parseFault(name);
  if (fault === undefined || !/^\d+$/.test(times)) return undefined;
  const step = { mode: fault.mode, times: Number(times) };
  return fault.argument === undefined ? step : { ...step, argument: fault.argument };
}

function helpLines(): string[] {
  const width = Math.max(...simulatorOptions.map(({ flag }) => flag.length));
  return [
    "usage: sluice simulator [options]",
    "",
    "A stand-in provider that speaks OpenAI's wire format and makes its answers up.",
    "",
    ...simulatorOptions.map(({ flag, meaning }) => `  ${flag.padEnd(width)}  ${meaning}`),
    "",
    "Faults, also by the header x-simulator-fault or a model named fault-MODE[-ARGUMENT]:",
    "",
    ...faultListing(),
    "",
    'User messages that script the answer: "echo: TEXT", "count: N", "refuse: ANYTHING".',
    "GET /truth tells what really happened to each call; DELETE /truth forgets it.",
  ];
}

function firing(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    signal.addEventListener("abort", () => resolve(), { once: true });
  });
}

/** What `--help` prints. */
export function helpText(): string {
  return helpLines().join("\n");
}
