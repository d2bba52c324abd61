import type { AdminClient } from "./client/admin-client.ts";
import { Arguments, type OptionSpecs } from "./arguments.ts";
import type { CommandIo } from "./command.ts";
import { connect, connectionOptions, type ConnectionArguments } from "./client/connect.ts";

/** Options of every verb. */
export const sharedOptions = {
  json: { type: "boolean", about: "print the JSON of the admin API, for scripts" },
  ...connectionOptions,
} as const satisfies OptionSpecs;

/** One thing that can be done with a resource: `create` of `sluice keys create`. */
export interface Verb {
  readonly name: string;
  /** Arguments that are no options, as the help shows them, such as `KEY`. */
  readonly takes: string;
  readonly summary: string;
  /** Beside the shared ones. */
  readonly options: OptionSpecs;
  /** What follows the name of the program, one line each; another program may pipe into it. */
  readonly examples: readonly string[];
  run(commandLine: readonly string[], io: CommandIo): Promise<number>;
}

export interface VerbSpec<Name extends string> {
  readonly name: string;
  readonly takes?: string;
  readonly summary: string;
  readonly options?: OptionSpecs<Name>;
  readonly examples: readonly string[];
  run(call: VerbCall<Name>): Promise<number>;
}

export interface VerbCall<Name extends string = never> {
  readonly args: Arguments<Name>;
  /** Connects at the first request, so that mistakes of the command line are told before. */
  readonly client: AdminClient;
  readonly io: CommandIo;
  /** Whether a script reads the answer. */
  readonly isJson: boolean;
}

export function defineVerb<Name extends string = never>(spec: VerbSpec<Name>): Verb {
  const { name, takes = "", summary, examples } = spec;
  const options: OptionSpecs = { ...spec.options };
  return {
    name,
    takes,
    summary,
    options,
    examples,
    async run(commandLine, io) {
      const all = { ...sharedOptions, ...options };
      const args = new Arguments<Name | keyof typeof sharedOptions>(commandLine, all);
      await using client = connectLate(readConnection(args), io);
      return await spec.run({ args, client, io, isJson: args.flag("json") });
    },
  };
}

function readConnection(args: Arguments<keyof typeof sharedOptions>): ConnectionArguments {
  return {
    url: args.text("url"),
    tokenFile: args.text("token-file"),
    isOffline: args.flag("offline"),
    config: args.text("config"),
    "data-dir": args.text("data-dir"),
  };
}

function connectLate(chosen: ConnectionArguments, io: CommandIo): AdminClient {
  let connected: Promise<AdminClient> | undefined;
  const open = (): Promise<AdminClient> => (connected ??= connect(chosen, io));
  return {
    isOffline: chosen.isOffline,
    request: async (method, path, details) => (await open()).request(method, path, details),
    async *stream(path, query) {
      yield* (await open()).stream(path, query);
    },
    async [Symbol.asyncDispose]() {
      // Why it could not connect was told already.
      const client = await connected?.catch(() => undefined);
      await client?.[Symbol.asyncDispose]();
    },
  };
}
