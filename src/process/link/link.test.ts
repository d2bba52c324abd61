import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { LinkPair } from "../../../test/support/link-pair.ts";
import { RefusedRows, StorageUnavailable } from "../../store/errors.ts";
import { encodeFrame } from "./frame.ts";
import { LinkLost } from "./link-errors.ts";
import { protocol } from "./link.ts";

type Asked = {
  readonly echo: { readonly ask: unknown; readonly answer: unknown };
  readonly fail: { readonly ask: string; readonly answer: never };
  readonly never: { readonly ask: undefined; readonly answer: undefined };
  readonly heard: { readonly ask: number };
  /** The other end has no handler for it. */
  readonly toString: { readonly ask: number; readonly answer: unknown };
};

function pairOf() {
  const notes: number[] = [];
  const pair = new LinkPair<Asked, Record<never, never>>(
    { handlers: {}, hello: "near" },
    {
      hello: "far",
      handlers: {
        echo: (value: unknown) => value,
        fail: (name: string) => {
          if (name === "rows") throw new RefusedRows("the rows are refused");
          if (name === "storage") throw new StorageUnavailable("the database is gone");
          throw new TypeError(name);
        },
        never: () => new Promise<undefined>(() => undefined),
        heard: (note: number) => void notes.push(note),
      },
    },
  );
  return { pair, notes };
}

const rich = {
  bytes: new Uint8Array([0, 1, 255]),
  map: new Map([["a", Infinity]]),
  nothing: undefined,
  text: "ä €",
};

describe("a link", () => {
  test("opens with the hello of both ends", async () => {
    const { pair } = pairOf();
    await pair.settle();
    expect([pair.near.hellos, pair.far.hellos]).toEqual([["far"], ["near"]]);
  });

  test("carries bytes, maps, infinity and what is undefined", async () => {
    const { pair } = pairOf();
    const answer = pair.near.link.ask("echo", rich);
    await pair.settle();
    expect(await answer).toEqual(rich);
    const nothing = pair.near.link.ask("echo", undefined);
    await pair.settle();
    expect(await nothing).toBeUndefined();
  });

  test("answers in any split of its bytes", async () => {
    const values = fc.array(fc.tuple(fc.boolean(), fc.jsonValue()), { maxLength: 8 });
    const sizes = fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 20 });
    await fc.assert(
      fc.asyncProperty(values, sizes, async (asked, pieces) => {
        const { pair, notes } = pairOf();
        let piece = 0;
        const answers = asked.map(([isNote, value], index) => {
          if (!isNote) return pair.near.link.ask("echo", value);
          pair.near.link.tell("heard", index);
          return Promise.resolve(value);
        });
        await pair.settle(() => pieces[(piece += 1) % pieces.length] ?? 1);
        const told = asked.flatMap(([isNote], index) => (isNote ? [index] : []));
        expect(await Promise.all(answers)).toEqual(asked.map(([, value]) => value));
        expect(notes).toEqual(told);
      }),
      { numRuns: 60 },
    );
  });

  test("hands on which error it was", async () => {
    const { pair } = pairOf();
    const failures = ["rows", "storage", "other"].map((name) =>
      pair.near.link.ask("fail", name).catch((error: unknown) => error),
    );
    const unknown = pair.near.link.ask("toString", 1).catch((error: unknown) => error);
    await pair.settle();
    const [rows, storage, other] = await Promise.all(failures);
    expect(rows).toBeInstanceOf(RefusedRows);
    expect(storage).toBeInstanceOf(StorageUnavailable);
    expect(storage).not.toBeInstanceOf(LinkLost);
    expect(String(other)).toBe("Error: other");
    expect(String(await unknown)).toContain("no message of kind toString");
  });

  test("writes once for all messages of one turn", async () => {
    const { pair, notes } = pairOf();
    await pair.settle();
    const before = pair.toFar.writes;
    for (let note = 0; note < 100; note += 1) pair.near.link.tell("heard", note);
    await pair.settle();
    expect([pair.toFar.writes - before, notes.length]).toEqual([1, 100]);
  });

  test("keeps the order of messages of any size", async () => {
    const { pair, notes } = pairOf();
    const sizes: number[] = [];
    for (let note = 0; note < 100; note += 1) {
      pair.near.link.tell("heard", note);
      const echoed = pair.near.link.ask("echo", "ä".repeat(note * 100));
      void echoed.then((text) => sizes.push(String(text).length));
    }
    await pair.settle(() => 40_000);
    expect(notes).toEqual(Array.from({ length: 100 }, (_, note) => note));
    expect(sizes).toEqual(notes.map((note) => note * 100));
  });

  test("keeps the order of messages while the other end reads slowly", async () => {
    const { pair, notes } = pairOf();
    pair.toFar.capacity = 50;
    for (let note = 0; note < 200; note += 1) pair.near.link.tell("heard", note);
    await pair.settle(() => 7);
    expect(notes).toEqual(Array.from({ length: 200 }, (_, note) => note));
  });

  test("ends when too much waits for the other end, so that nothing is lost unnoticed", async () => {
    const { pair } = pairOf();
    pair.toFar.capacity = 0;
    const large = new Uint8Array(60 * 1024 * 1024);
    const first = pair.near.link.ask("echo", large).catch((error: unknown) => error);
    const second = pair.near.link.ask("echo", large).catch((error: unknown) => error);
    const third = await pair.near.link.ask("echo", 1).catch((error: unknown) => error);
    expect(third).toBeInstanceOf(LinkLost);
    expect(pair.near.losses).toHaveLength(1);
    expect([await first, await second].every((error) => error instanceof LinkLost)).toBe(true);
  });

  test("fails an answer that is too large, and goes on", async () => {
    const { pair } = pairOf();
    const tooLarge = new Uint8Array(65 * 1024 * 1024);
    const asked = await pair.near.link.ask("echo", tooLarge).catch((error: unknown) => error);
    expect(String(asked)).toContain("too long");
    const next = pair.near.link.ask("echo", 7);
    await pair.settle();
    expect(await next).toBe(7);
  });

  test("fails every open ask when it ends, and later ones at once", async () => {
    const { pair } = pairOf();
    const open = [1, 2, 3].map(() =>
      pair.near.link.ask("never", undefined).catch((error: unknown) => error),
    );
    await pair.settle();
    pair.near.link.ended();
    pair.near.link.ended();
    for (const error of await Promise.all(open)) expect(error).toBeInstanceOf(LinkLost);
    expect(await pair.near.link.ask("echo", 1).catch((error: unknown) => error)).toBeInstanceOf(
      LinkLost,
    );
    expect(pair.near.losses).toHaveLength(1);
  });

  test("gives up an answer that does not come, and ignores it when it comes late", async () => {
    const { pair } = pairOf();
    await pair.settle();
    const late = await pair.near.link.ask("echo", 1, 1).catch((error: unknown) => error);
    expect(late).toBeInstanceOf(LinkLost);
    await pair.settle();
    const next = pair.near.link.ask("echo", 2);
    await pair.settle();
    expect(await next).toBe(2);
  });
});

describe("a link to something else", () => {
  test.each([
    ["noise", new TextEncoder().encode("GET / HTTP/1.1\r\n\r\n")],
    ["a frame that claims too much", new Uint8Array([255, 255, 255, 255, 0, 0, 0, 0, 0, 0])],
    ["a frame of no bytes", new Uint8Array([0, 0, 0, 0])],
    ["a message that is no list", encodeFrame(["hello"])],
    ["a message of unknown type", encodeFrame([["shout", 0, ""]])],
    ["a message of no kind", encodeFrame([["note", 0]])],
    ["a note before the hello", encodeFrame([["note", 0, "heard", 1]])],
    ["another version", encodeFrame([["hello", 0, "", { protocol: protocol + 1 }]])],
    ["a body that is no clone", new Uint8Array([4, 0, 0, 0, 1, 1, 2, 3])],
  ])("ends: %s", (_, bytes) => {
    const { pair, notes } = pairOf();
    pair.far.link.received(bytes);
    expect([pair.far.losses.length, pair.toNear.isClosed, notes.length]).toEqual([1, true, 0]);
    expect(pair.far.hellos).toEqual([]);
  });
});
