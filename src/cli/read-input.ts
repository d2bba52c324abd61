import { readFileSync, statSync } from "node:fs";
import { oddKind } from "../domain/system-files.ts";
import { CommandError, unreadable, type CommandIo } from "./command.ts";

type AskingIo = Pick<CommandIo, "input" | "report">;

/** A password is at most 256 characters. */
const passwordLimitBytes = 4096;

/** Reads a file, or standard input without one. */
export async function* readChunks(
  file: string | undefined,
  io: CommandIo,
): AsyncGenerator<Uint8Array> {
  if (file === undefined) {
    yield* io.input.chunks();
    return;
  }
  try {
    yield* Bun.file(file).stream();
  } catch (error) {
    throw unreadable(file, error);
  }
}

/**
 * Reads a password, without its line end, from a file or standard input. On the command line, other
 * users of the machine and the shell's history could see it.
 */
export async function readPassword(file: string | undefined, io: AskingIo): Promise<string> {
  const text = file === undefined ? await askPassword(io) : readFile(file, passwordLimitBytes);
  const password = text.replace(/\r?\n$/, "");
  if (password !== "" && !/[\r\n]/.test(password)) return password;
  throw new CommandError("the password must be a single, non-empty line");
}

/** Asks a person at a terminal; any answer but yes counts as no. */
export async function askYes(question: string, { input, report }: AskingIo): Promise<boolean> {
  report(`${question} [y/N]`);
  const decoder = new TextDecoder();
  let typed = "";
  for await (const chunk of input.chunks()) {
    typed += decoder.decode(chunk, { stream: true });
    if (/[\r\n]/.test(typed)) break;
  }
  return /^\s*y(es)?\s*$/i.test(typed);
}

async function askPassword({ input, report }: AskingIo): Promise<string> {
  if (!input.isTerminal) return readBounded(input.chunks(), passwordLimitBytes);
  report("Password (it is not shown):");
  input.setEcho(false);
  try {
    return await readTyped(input.chunks());
  } finally {
    input.setEcho(true);
  }
}

/** Without echo, the terminal sends each key as it is pressed, special keys included. */
async function readTyped(chunks: AsyncIterable<Uint8Array>): Promise<string> {
  const decoder = new TextDecoder();
  const typed: string[] = [];
  for await (const chunk of chunks) {
    for (const character of decoder.decode(chunk, { stream: true })) {
      if (character === "\r" || character === "\n" || character === "\u0004") return typed.join("");
      if (character === "\u0003") throw new CommandError("given up");
      if (character === "\u007f" || character === "\b") typed.pop();
      else typed.push(character);
      if (typed.length > passwordLimitBytes) throw new CommandError("the password is too long");
    }
  }
  return typed.join("");
}

async function readBounded(chunks: AsyncIterable<Uint8Array>, limitBytes: number): Promise<string> {
  const parts: Uint8Array[] = [];
  let sizeBytes = 0;
  for await (const chunk of chunks) {
    sizeBytes += chunk.byteLength;
    if (sizeBytes > limitBytes) throw tooLarge("standard input", limitBytes);
    parts.push(chunk);
  }
  return Buffer.concat(parts).toString("utf8");
}

function readFile(path: string, limitBytes: number): string {
  try {
    if (statSync(path).size > limitBytes) throw tooLarge(path, limitBytes);
    return readFileSync(path, "utf8");
  } catch (error) {
    throw error instanceof CommandError ? error : unreadable(path, error);
  }
}

function tooLarge(what: string, limitBytes: number): CommandError {
  return new CommandError(`${what} is larger than ${limitBytes} bytes`);
}

/** Reads a file that may be readable only once, such as `<(command)` of a shell. */
export function readTextFile(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    throw unreadable(path, error);
  }
}

/**
 * Refuses a FIFO, which can be read once, because processes and reloads read the file again.
 * `advice` is what else to do, for an error.
 */
export function readConfigFile(path: string, advice = ""): string {
  try {
    const odd = oddKind(statSync(path));
    if (odd !== undefined) throw new CommandError(`${path}: is ${odd}; it must be a file`);
    return readFileSync(path, "utf8");
  } catch (error) {
    throw error instanceof CommandError ? error : unreadable(path, error, advice);
  }
}
