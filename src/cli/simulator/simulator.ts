import {
  demoApiKey,
  demoCredentials,
  faultListing,
  type Simulator,
  type SimulatorOptions,
  startSimulator,
} from "../../../simulator/simulator.ts";
import { exitCodes } from "../../process/exit-codes.ts";
import { CommandError, reasonOf, untilAsked, type Command, type CommandIo } from "../command.ts";
import { readSimulatorOptions } from "./simulator-options.ts";

export const simulatorCommand: Command = {
  name: "simulator",
  isService: true,
  help: helpText,
  run: runSimulator,
};

/** As the help shows them. */
const simulatorOptions = [
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

/** Serves until the signal fires. */
export async function runSimulator(
  args: readonly string[],
  { print, signal }: Pick<CommandIo, "print" | "signal">,
): Promise<number> {
  const options = readSimulatorOptions(args);
  await using simulator = start(options);
  print(`The simulator listens on ${simulator.url}`);
  for (const line of tryLines(simulator.url, options.apiKeys?.[0])) print(line);
  print(`Bedrock's wire is at ${simulator.origin}; see --help for its credentials.`);
  await untilAsked(signal);
  return exitCodes.ok;
}

function start(options: SimulatorOptions): Simulator {
  try {
    return startSimulator(options);
  } catch (error) {
    throw new CommandError(`the simulator cannot start: ${reasonOf(error)}`);
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

function helpText(): string {
  const width = Math.max(...simulatorOptions.map(({ flag }) => flag.length));
  const lines = [
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
  return lines.join("\n");
}
