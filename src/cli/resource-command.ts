import { suggest } from "../settings/suggest.ts";
import { exitCodes } from "../process/exit-codes.ts";
import { UsageError, type Command } from "./command.ts";
import { formatCommandHelp, formatVerbHelp } from "./help-text.ts";
import type { Verb } from "./verb.ts";

export interface ResourceCommand {
  readonly name: string;
  /** One line for the overview. */
  readonly summary: string;
  readonly about: string;
  readonly verbs: readonly Verb[];
  /** Taken when the first argument is none; undefined: there must be one. */
  readonly defaultVerb?: string;
}

/** A command whose first argument says what to do. */
export function createResourceCommand(resource: ResourceCommand): Command {
  const { name, summary, verbs, defaultVerb } = resource;
  const find = (wanted: string | undefined): Verb | undefined =>
    verbs.find((verb) => verb.name === wanted);
  return {
    name,
    summary,
    help([first]) {
      const verb = find(first);
      if (verb === undefined) return formatCommandHelp(resource, verbs);
      return formatVerbHelp(`${name} ${verb.name}`, verb);
    },
    async run(args, io) {
      const [first, ...rest] = args;
      const named = find(first);
      if (named !== undefined) return named.run(rest, io);
      if (first === "help") {
        io.print(formatCommandHelp(resource, verbs));
        return exitCodes.ok;
      }
      const isOption = first === undefined || first.startsWith("-");
      const verb = isOption ? find(defaultVerb) : undefined;
      if (verb !== undefined) return verb.run(args, io);
      const names = verbs.map((each) => each.name);
      const meant = isOption ? undefined : suggest(first, names);
      if (meant !== undefined) {
        throw new UsageError(`there is no '${first}'; did you mean '${meant}'?`);
      }
      throw new UsageError(
        `say what to do: ${names.join(", ")}${isOption ? "" : `; not '${first}'`}`,
      );
    },
  };
}

/** A command that does one thing. */
export function createSingleCommand(verb: Verb, about: string): Command {
  return {
    name: verb.name,
    summary: verb.summary,
    help: () => formatVerbHelp(verb.name, verb, about),
    run: (args, io) => verb.run(args, io),
  };
}
