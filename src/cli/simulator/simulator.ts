import { InvalidArgumentError } from "commander";
import {
  chatServers,
  type FaultStep,
  parseFault,
  type Simulator,
  simulatorHelp,
  type SimulatorOptions,
  startSimulator,
} from "../../../simulator/simulator.ts";
import { listenAddress, type ListenAddress } from "../../settings/values.ts";
import { exitCodes } from "../../process/program.ts";
import { CommandError, reasonOf, untilAsked, type Command, type CommandIo } from "../command.ts";

interface SimulatorTyped {
  readonly listen: ListenAddress;
  readonly tokensPerSecond: number;
  readonly firstTokenDelay: number;
  readonly fault: readonly FaultStep[];
  readonly profile?: chatServers.ProfileName;
  readonly quirk: readonly chatServers.Quirk[];
  readonly apiKey: readonly string[];
  /** Milliseconds since the epoch. */
  readonly modelsAsOf?: number;
}

export const simulatorCommand: Command = (made, { io, action }) => {
  made
    .description(
      "A stand-in provider that speaks the wire formats of OpenAI (at /v1), and of Amazon Bedrock and " +
        "Anthropic's Messages API (at the same address without /v1), and makes up its answers.",
    )
    .option(
      "--listen <host:port>",
      "Where to listen. Default: 127.0.0.1:9090.",
      readListen,
      readListen("127.0.0.1:9090"),
    )
    .option("--tokens-per-second <n>", "How fast answers are written. Default: at once.", amount, 0)
    .option("--first-token-delay <ms>", "Delay before the first token. Default: none.", amount, 0)
    .option(
      "--fault <mode[:argument][*times][@percent]>",
      "Faults of the next calls; repeatable; *ever: for all calls, @10: for every tenth call.",
      repeatable(readFaultStep),
      [],
    )
    .option(
      "--profile <name>",
      "Play this server of the chat wire, such as gemini; the names are below.",
      readProfile,
    )
    .option(
      "--quirk <name>",
      "Do this beside, as some servers do; repeatable; the names are below.",
      repeatable(readQuirk),
      [],
    )
    .option(
      "--api-key <key>",
      "Accept only this key, except on Bedrock's wire; repeatable.",
      repeatable(String),
      [],
    )
    .option(
      "--models-as-of <date>",
      "Bedrock's wire: refuse models retired by this date: YYYY-MM-DD, or now.",
      (text: string) => (text === "now" ? io.clock.now() : readDate(text)),
    )
    .configureHelp({ optionDescription: ({ description }) => description })
    .addHelpText("after", simulatorHelp())
    .action(
      action((typed: SimulatorTyped) => {
        io.outliveReaders();
        return serve(typed, io);
      }),
    );
};

async function serve(typed: SimulatorTyped, io: CommandIo): Promise<number> {
  await using simulator = start({
    ...typed.listen,
    tokensPerSecond: typed.tokensPerSecond,
    firstTokenDelayMs: typed.firstTokenDelay,
    faultPlan: typed.fault,
    quirks: typed.quirk,
    ...(typed.profile !== undefined && { profile: typed.profile }),
    bedrock: { modelsAsOf: typed.modelsAsOf },
    ...(typed.apiKey.length > 0 && { apiKeys: typed.apiKey }),
  });
  io.print(`The simulator listens on ${simulator.url}`);
  for (const line of tryLines(simulator.url, typed.apiKey[0])) io.print(line);
  const others = "Bedrock's wire and Anthropic's Messages API have the base URL";
  io.print(`${others} ${simulator.origin}; see --help for Bedrock's credentials.`);
  await untilAsked(io.signal);
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

function repeatable<Value>(read: (text: string) => Value) {
  return (text: string, before: readonly Value[]): readonly Value[] => [...before, read(text)];
}

function readListen(text: string): ListenAddress {
  const result = listenAddress("", text).safeParse(text);
  if (result.success) return result.data;
  throw new InvalidArgumentError("It takes HOST:PORT.");
}

function amount(text: string): number {
  if (Number(text) >= 0) return Number(text);
  throw new InvalidArgumentError("It takes a number.");
}

function readDate(text: string): number {
  const date = /^\d{4}-\d\d-\d\d$/.test(text) ? Date.parse(text) : Number.NaN;
  if (Number.isNaN(date)) throw new InvalidArgumentError("It takes YYYY-MM-DD, or now.");
  return date;
}

function readProfile(text: string): chatServers.ProfileName {
  if (chatServers.isProfile(text)) return text;
  const names = Object.keys(chatServers.profiles).join(", ");
  throw new InvalidArgumentError(`It takes one of: ${names}.`);
}

function readQuirk(text: string): chatServers.Quirk {
  if (chatServers.isQuirk(text)) return text;
  throw new InvalidArgumentError("There is no such quirk; --help lists them.");
}

/**
 * `stall-mid:500*3`: the next three calls stall for half a second; `error-500*ever@10`: every tenth
 * call fails.
 */
function readFaultStep(text: string): FaultStep {
  const parts = /^([^*@]+)(?:\*(\d+|ever))?(?:@(\d+(?:\.\d+)?))?$/.exec(text);
  const fault = parseFault(parts?.[1] ?? "");
  const times = parts?.[2] === "ever" ? Number.POSITIVE_INFINITY : Number(parts?.[2] ?? 1);
  const share = Number(parts?.[3] ?? 100) / 100;
  if (fault === undefined || !(share > 0 && share <= 1)) {
    throw new InvalidArgumentError("There is no such fault.");
  }
  const step = { mode: fault.mode, times, share };
  return fault.argument === undefined ? step : { ...step, argument: fault.argument };
}
