import { writeFileSync } from "node:fs";
import { basename } from "node:path";
import { Argument, type Command as Parser } from "commander";
import { convertPrices } from "../config/litellm/convert-prices.ts";
import { formatProblems, parseConfig } from "../config/load.ts";
import type { Config } from "../config/config.ts";
import { findListed, listedAs, targetsOf } from "../config/prices/effective-prices.ts";
import { type ListedPrice, pricesSchema } from "../config/sections/prices.ts";
import { writeYaml } from "../config/text/yaml-syntax.ts";
import { exitCodes } from "../process/program.ts";
import { CommandError, type CommandIo, type CommandRun } from "./command.ts";
import { readConfigFile, readTextFile } from "./read-input.ts";
import { endOfHelp } from "./verbs/verb-command.ts";

interface ImportTyped {
  readonly output?: string;
  readonly config?: string;
  readonly all?: true;
}

/** `prices import`, which needs no gateway. */
export function addPriceImport(made: Parser, { io, action }: CommandRun): void {
  made
    .command("import")
    .summary("Convert a list of prices to the section `prices` of the configuration")
    .description(
      "Converts LiteLLM's list of prices, `model_prices_and_context_window.json`, to a section " +
        "`prices` and prints it. Nothing is changed: put the section into the configuration, and " +
        "`prices diff` shows what it has changed. What was left out is on standard error. The " +
        "list has no dates and mistakes of its own; compare it with your provider's.",
    )
    .addArgument(new Argument("<format>", "The list's format.").choices(["litellm"]))
    .argument("<file>", "The list.")
    .option("-o, --output <file>", "Write the section to this file.")
    .option("-c, --config <file>", "Convert only prices of this configuration's targets.")
    .option("--all", "Convert all prices, as without a configuration.")
    .addHelpText(
      "after",
      endOfHelp([
        "prices import litellm model_prices_and_context_window.json --output prices.yaml",
      ]),
    )
    .action(action((_: string, path: string, typed: ImportTyped) => importPrices(path, typed, io)));
}

function importPrices(path: string, typed: ImportTyped, io: CommandIo): number {
  const text = readTextFile(path);
  const { entries, unmapped } = converted(path, text);
  if (entries.length === 0) throw new CommandError(`${path} has no prices in LiteLLM's format`);
  const parsed = pricesSchema.parse(entries);
  const config = typed.all === true ? undefined : readConfig(typed, io);
  const chosen = config === undefined ? parsed : chosenFor(config, parsed, io);
  const written = entries.filter((_, index) => chosen.some((price) => price === parsed[index]));
  for (const [reason, names] of unmapped) {
    io.report(`left out: ${names.length} ${reason}: ${firstOf(names)}`);
  }
  io.report(`${written.length} prices of ${entries.length} in the list`);
  const digest = new Bun.CryptoHasher("sha256").update(text).digest("hex");
  const day = new Date(io.clock.now()).toISOString().slice(0, 10);
  const source = `${basename(path)}, read ${day}`;
  const section = writeYaml({ prices: written.map((entry) => ({ ...entry, source })) }, [
    `Converted from ${basename(path)} on ${day}, SHA-256 ${digest}.`,
  ]);
  if (typed.output === undefined) io.print(section.trimEnd());
  else writeFileSync(typed.output, section);
  return exitCodes.ok;
}

const shownNames = 5;

function firstOf(names: readonly string[]): string {
  const more = names.length - shownNames;
  const shown = names.slice(0, shownNames).join(", ");
  return more > 0 ? `${shown} and ${more} more` : shown;
}

function converted(path: string, text: string) {
  try {
    return convertPrices(text);
  } catch (error) {
    if (error instanceof SyntaxError) throw new CommandError(`${path} is no JSON`);
    throw error;
  }
}

function readConfig({ config }: ImportTyped, io: CommandIo): Config | undefined {
  const path = config ?? io.environment.configPath;
  if (path === undefined) return undefined;
  const env = io.environment.variables;
  const result = parseConfig(readConfigFile(path), { name: path, env });
  if (!result.ok) throw new CommandError(formatProblems(path, result.problems));
  return result.config;
}

/** The prices of the targets of a configuration. Names targets that the list lacks. */
function chosenFor(
  config: Config,
  list: readonly ListedPrice[],
  io: CommandIo,
): readonly ListedPrice[] {
  return targetsOf(config).flatMap((target) => {
    const listed = listedAs(config, target);
    const found = listed && findListed(list, listed);
    if (found === undefined) io.report(`${target.id}: not in the list`);
    return found ?? [];
  });
}
