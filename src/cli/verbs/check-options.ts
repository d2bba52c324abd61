import type { Command as Parser } from "commander";
import { noOption, UsageError } from "../command.ts";

/**
 * Reports unknown options before missing ones, because both may be the same mistake. Reports an
 * option in the place of a value, whose value was forgotten.
 */
export function checkOptions({ options }: Parser, args: readonly string[]): void {
  const known = options.flatMap(({ long }) => long ?? []);
  let value = "";
  for (const word of args) {
    if (word === "--") return;
    const [name = ""] = word.split("=", 1);
    if (value !== "" && /^-./.test(word)) {
      throw new UsageError(`${value} needs a value; write a value with a dash as ${value}=-...`);
    }
    const option = options.find(({ long, short }) => long === name || short === name);
    const isValue = value !== "";
    value = option?.required === true && name === word ? word : "";
    if (isValue || option !== undefined || !name.startsWith("--")) continue;
    throw new UsageError(noOption(name, known));
  }
}
