import { expect, test } from "bun:test";
import { CommandError, type CommandIo } from "./command.ts";
import { readPassword } from "./read-input.ts";

interface Typed {
  readonly io: Pick<CommandIo, "input" | "report">;
  /** Switches of the echo and messages, in order. */
  readonly events: string[];
}

function typing(pieces: readonly string[], isTerminal: boolean): Typed {
  const events: string[] = [];
  async function* chunks(): AsyncGenerator<Uint8Array> {
    for (const piece of pieces) {
      await Promise.resolve();
      yield Buffer.from(piece, "latin1");
    }
  }
  const setEcho = (isOn: boolean): void => void events.push(isOn ? "echo on" : "echo off");
  return { io: { input: { isTerminal, chunks, setEcho }, report: () => undefined }, events };
}

test("a piped password loses its line end and nothing else", async () => {
  for (const [text, expected] of [
    [" pass word \n", " pass word "],
    ["pass\r\n", "pass"],
    ["pass", "pass"],
  ] as const) {
    const { io, events } = typing([text.slice(0, 2), text.slice(2)], false);
    expect(await readPassword(undefined, io)).toBe(expected);
    expect(events).toEqual([]);
  }
});

test("a typed password is not shown, may be corrected and ends with the line", async () => {
  const utf8 = Buffer.from("p\u00e4ss").toString("latin1");
  const { io, events } = typing(["x", "\u007f", ...utf8.split(""), "yz\b", "w\rmore"], true);
  expect(await readPassword(undefined, io)).toBe("p\u00e4ssyw");
  expect(events).toEqual(["echo off", "echo on"]);
});

test("cancelled typing turns the echo on again", async () => {
  const { io, events } = typing(["abc\u0003"], true);
  const failure = await readPassword(undefined, io).catch((error: unknown) => error);
  expect(failure).toBeInstanceOf(CommandError);
  expect(events).toEqual(["echo off", "echo on"]);
});

test.each([
  ["nothing", [""]],
  ["an empty line", ["\n"]],
  ["two lines", ["first\nsecond\n"]],
  ["more than a password can be", ["a".repeat(3000), "a".repeat(3000)]],
])("%s is no password", async (_, pieces) => {
  const failure = await readPassword(undefined, typing(pieces, false).io).catch(
    (error: unknown) => error,
  );
  expect(failure).toBeInstanceOf(CommandError);
  expect(String(failure)).not.toContain("first");
});
