import { writeFileSync } from "node:fs";
import { basename } from "node:path";
import { Argument, type Command as Parser } from "commander";
import { convertPrices } from "../config/litellm/convert-prices.ts";
import { formatProblems, parseConfig } from "../config/load.ts";
import type { Config } from "../config/config.ts";
import {
  effectivePrices,
  findListed,
  listedAs,
  targetsOf,
} from "../config/prices/effective-prices.ts";
import { type ListedPrice, pricesSchema } from "../config/sections/prices.ts";
import { writeYaml } from "../config/text/yaml-syntax.ts";
import type { Price } from "../domain/money/price.ts";
import { usdOfMicro } from "../domain/money/usd.ts";
import { exitCodes } from "../process/program.ts";
import { CommandError, type CommandIo, type CommandRun } from "./command.ts";
import { readConfigFile, readTextFile } from "./read-input.ts";
import { percentOf } from "./resources/prices.ts";

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
        "`prices` and prints it. Nothing is changed: put the section into the configuration. What " +
        "differs from the prices in use, and what was left out, is on standard error. The list " +
        "has no dates and mistakes of its own; compare it with your provider's.",
    )
    .addArgument(new Argument("<format>", "The list's format.").choices(["litellm"]))
    .argument("<file>", "The list.")
    .option("-o, --output <file>", "Write the section to this file.")
    .option("-c, --config <file>", "Convert only prices of this configuration's targets.")
    .option("--all", "Convert all prices, as without a configuration.")
    .action(action((_: string, path: string, typed: ImportTyped) => importPrices(path, typed, io)));
}

function importPrices(path: string, typed: ImportTyped, io: CommandIo): number {
  const text = readTextFile(path);
  const { entries, unmapped } = converted(path, text);
  if (entries.length === 0) throw new CommandError(`${path} has no prices in LiteLLM's format`);
  const parsed = pricesSchema.parse(entries);
  const config = typed.all === true ? undefined : readConfig(typed, io);
  const chosen = config === undefined ? parsed : compare(config, parsed, io);
  const written = entries.filter((_, index) => chosen.some((price) => price === parsed[index]));
  for (const [reason, count] of unmapped) io.report(`left out: ${count} ${reason}`);
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

/** The prices of the targets of a configuration. Reports what they would change. */
function compare(
  config: Config,
  list: readonly ListedPrice[],
  io: CommandIo,
): readonly ListedPrice[] {
  const before = effectivePrices(config, io.clock.now());
  return targetsOf(config).flatMap((target) => {
    const listed = listedAs(config, target);
    const found = listed && findListed(list, listed);
    const earlier = before.get(target.id)?.price;
    if (found === undefined) {
      io.report(`${target.id}: not in the list${earlier === undefined ? ", and not priced" : ""}`);
      return [];
    }
    const change = target.price === undefined ? changeOf(earlier, found.price) : ownPrice;
    if (change !== undefined) io.report(`${target.id}: ${change}`);
    return [found];
  });
}

const ownPrice = "has a price of its own, which stays";

function changeOf(before: Price | undefined, price: Price): string | undefined {
  if (before === undefined) return "added";
  const changes = rateNames.flatMap((name) => {
    const [from, to] = [usdOf(before[name]), usdOf(price[name])];
    if (from === to) return [];
    const percent = percentOf(from, to);
    return [`${name} ${from ?? "-"} -> ${to ?? "-"}${percent === "" ? "" : ` (${percent})`}`];
  });
  return changes.length === 0 ? undefined : changes.join(", ");
}

const rateNames = ["input", "cacheRead", "cacheWrite", "cacheWrite1h", "output", "image"] as const;

function usdOf(micro: number | undefined): string | null {
  return micro === undefined ? null : usdOfMicro(micro);
}
