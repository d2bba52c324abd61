import { readFileSync, statSync } from "node:fs";
import { oddKind } from "../domain/system-files.ts";
import { CommandError, unreadable, type CommandIo } from "./command.ts";

type AskingIo = Pick<CommandIo, "input" | "report">;

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
  const text = file === undefined ? await askPassword(io) : readTextFile(file);
  const password = text.replace(/\r?\n$/, "");
  if (/^[^\r\n]{1,256}$/.test(password)) return password;
  throw new CommandError("the password must be a single line of 1 to 256 characters");
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
  if (!input.isTerminal) return Buffer.concat(await Array.fromAsync(input.chunks())).toString();
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
    }
  }
  return typed.join("");
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
