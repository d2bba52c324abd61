import type { Command as Parser } from "commander";
import { suggest } from "../domain/suggest.ts";
import { UsageError } from "./command.ts";

/**
 * Reports unknown options before missing ones, because both may be the same mistake. Reports an
 * option in the place of a value, whose value was forgotten.
 */
export function checkOptions({ options }: Parser, args: readonly string[]): void {
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
    if (isValue || option !== undefined || !name.startsWith("--") || name === "--help") continue;
    throw new UsageError(
      noOption(
        name,
        options.flatMap(({ long }) => long ?? []),
      ),
    );
  }
}

/** The message about an unknown option, with the likely one. */
export function noOption(typed: string, known: readonly string[]): string {
  const meant = suggest(typed, known);
  return `unknown option ${typed}${meant === undefined ? "" : `; did you mean ${meant}?`}`;
}
