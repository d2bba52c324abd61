import { exitCodes } from "../process/exit-codes.ts";
import { AdminRefusal } from "./client/admin-client.ts";
import { CommandError, type CommandIo, UsageError } from "./command.ts";
import { commandLine } from "./program.ts";
import type { Command as Parser } from "commander";
import { suggest } from "../domain/suggest.ts";

/** Reports the error of a command; returns its exit code. `words` name the command. */
export function reportError(error: unknown, words: string, io: CommandIo): number {
  if (error instanceof UsageError) {
    const [name = ""] = words.split(" ");
    io.report(`${name === "sluice" ? name : `sluice ${name}`}: ${error.message}`);
    io.report(`See: ${commandLine(name === "sluice" ? "--help" : `${words} --help`)}`);
    return exitCodes.usage;
  }
  if (error instanceof CommandError) {
    io.report(error.message);
    // If the control plane refuses a value, it was mistyped.
    const isMistake = error instanceof AdminRefusal && error.status === 400;
    return isMistake ? exitCodes.usage : exitCodes.failed;
  }
  // A command that was asked to end needs no explanation.
  if (io.signal.aborted) return exitCodes.failed;
  throw error;
}

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
