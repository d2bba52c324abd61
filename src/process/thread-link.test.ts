import { portsInThread } from "../../test/support/thread-ports.ts";
import { afterEach, describe, expect, test } from "bun:test";
import type { ThreadAsked } from "../../test/support/link-thread.ts";
import { virtualClock } from "../../test/support/virtual-clock.ts";
import { systemClock } from "../domain/clock.ts";
import { RefusedRows, StorageUnavailable, UnusableDatabase } from "../store/errors.ts";
import { type Message, ThreadLink, ThreadLost, type Handlers } from "./thread-link.ts";

type Asked = {
  readonly sum: { readonly ask: readonly number[]; readonly answer: number };
  readonly later: { readonly ask: undefined; readonly answer: string };
  readonly uses: { readonly ask: ReadonlyMap<string, number> };
};
type Told = { readonly hello: { readonly ask: string; readonly answer: string } };

/** Two ends in one thread, on a clock that only the test moves. */
function linked(handlers: Partial<Handlers<Asked>> = {}) {
  const { clock, advance } = virtualClock();
  const [one, other] = portsInThread();
  const asking = new ThreadLink<Asked, Told>(one, clock);
  const answering = new ThreadLink<Told, Asked>(other, clock);
  asking.handle({ hello: (name) => `hello ${name}` });
  const all: Handlers<Asked> = {
    sum: (numbers) => numbers.reduce((sum, number) => sum + number, 0),
    later: () => new Promise(() => undefined),
    uses: () => undefined,
    ...handlers,
  };
  return { asking, answering, advance, answer: () => answering.handle(all) };
}

function failing(error: unknown) {
  const link = linked({
    sum: () => {
      throw error;
    },
  });
  link.answer();
  return link.asking.ask("sum", []).catch((thrown: unknown) => thrown);
}

describe("an ask", () => {
  test("is answered in either direction, each with its own answer", async () => {
    const { asking, answering, answer } = linked();
    answer();
    const sums = [[1, 2], [], [3]].map((numbers) => asking.ask("sum", numbers));
    expect(await Promise.all(sums)).toEqual([3, 0, 3]);
    expect(await answering.ask("hello", "you")).toBe("hello you");
  });

  test("waits until the other side listens", async () => {
    const { asking, answer } = linked();
    const sum = asking.ask("sum", [1, 1]);
    answer();
    expect(await sum).toBe(2);
  });

  test("is answered when the handler's promise is", async () => {
    const { promise, resolve } = Promise.withResolvers<string>();
    const { asking, answer } = linked({ later: () => promise });
    answer();
    const [later, sum] = [asking.ask("later", undefined), asking.ask("sum", [4])];
    expect(await sum).toBe(4);
    resolve("now");
    expect(await later).toBe("now");
  });

  test.each([
    [new RefusedRows("not a row"), RefusedRows],
    [new StorageUnavailable("locked"), StorageUnavailable],
    [new UnusableDatabase("broken"), StorageUnavailable],
    [new ThreadLost("gone"), StorageUnavailable],
    [new RangeError("too far"), Error],
  ])("fails with the class that callers know: %p", async (error, known) => {
    const thrown = await failing(error);
    expect(thrown).toBeInstanceOf(known);
    expect(thrown).toHaveProperty("message", error.message);
    expect(thrown instanceof StorageUnavailable).toBe(error instanceof StorageUnavailable);
  });

  test("fails also with what is no error", async () => {
    expect(await failing("a word")).toEqual(new Error("a word"));
  });

  test("fails when no answer comes in time, and a late answer changes nothing", async () => {
    const { promise, resolve } = Promise.withResolvers<string>();
    const { asking, advance, answer } = linked({ later: () => promise });
    answer();
    const outcomes: unknown[] = [];
    const ask = (timeoutMs?: number): Promise<unknown> =>
      asking.ask("later", undefined, timeoutMs).catch((error: unknown) => outcomes.push(error));
    void ask();
    void ask(100);
    advance(99);
    expect(outcomes).toEqual([]);
    advance(1);
    expect(outcomes).toEqual([new StorageUnavailable("no answer came in time")]);
    advance(4_900);
    expect(outcomes).toHaveLength(2);
    resolve("too late");
    expect(await asking.ask("sum", [1])).toBe(1);
    expect(outcomes.every((error) => error instanceof StorageUnavailable)).toBe(true);
  });
});

describe("a note", () => {
  test("arrives in the order of the asks beside it, as a copy", async () => {
    const heard: ReadonlyMap<string, number>[] = [];
    const { asking, answer } = linked({ uses: (uses) => void heard.push(uses) });
    const uses = new Map([["a", 1]]);
    asking.tell("uses", uses);
    uses.set("b", 2);
    answer();
    await asking.ask("sum", []);
    expect(heard).toEqual([new Map([["a", 1]])]);
  });

  test("that its handler cannot use is no failure of the thread", async () => {
    const { asking, answer } = linked({
      uses: () => {
        throw new Error("no");
      },
    });
    answer();
    asking.tell("uses", new Map());
    expect(await asking.ask("sum", [2])).toBe(2);
  });
});

describe("a side that is lost", () => {
  test("fails what is open and what is asked from then on, with the first reason", async () => {
    const { asking, answer } = linked();
    answer();
    const open = asking.ask("later", undefined).catch((error: unknown) => error);
    asking.lose("it has ended");
    asking.lose("again");
    expect(await open).toEqual(new ThreadLost("it has ended"));
    expect(await asking.ask("sum", []).catch((error: unknown) => error)).toBe(await open);
  });

  test("gets no notes, and what it still says is not heard", async () => {
    const heard: unknown[] = [];
    const { asking, answering, advance, answer } = linked({ uses: () => void heard.push("note") });
    answer();
    const hello = answering.ask("hello", "you", 100).catch((error: unknown) => error);
    asking.lose("it has ended");
    asking.tell("uses", new Map());
    advance(100);
    expect([heard, await hello]).toEqual([[], new StorageUnavailable("no answer came in time")]);
  });
});

describe("a link between two threads", () => {
  const threads: Worker[] = [];
  afterEach(() => {
    for (const thread of threads.splice(0)) thread.terminate();
  });

  test("carries asks, notes and errors, and a thread that ends fails what is open", async () => {
    const thread = new Worker(new URL("../../test/support/link-thread.ts", import.meta.url).href);
    threads.push(thread);
    const closed = new Promise((resolve) => thread.addEventListener("close", resolve));
    const link = new ThreadLink<ThreadAsked, Told>(
      {
        post: (value) => thread.postMessage(value),
        listen: (hear) => (thread.onmessage = ({ data }: MessageEvent<Message>) => hear(data)),
      },
      systemClock,
    );
    const greeted: string[] = [];
    link.handle({
      hello(name) {
        greeted.push(name);
        return `hello ${name}`;
      },
    });
    link.tell("note", new Map([["a", 1]]));
    expect(await link.ask("notes", undefined)).toEqual([new Map([["a", 1]])]);
    expect(await link.ask("greet", "thread")).toBe("hello thread");
    expect(greeted).toEqual(["thread"]);
    const refused = link.ask("refuse", "not a row").catch((error: unknown) => error);
    expect(await refused).toEqual(new RefusedRows("not a row"));
    const open = link.ask("never", undefined).catch((error: unknown) => error);
    thread.terminate();
    await closed;
    link.lose("the thread has ended");
    expect(await open).toBeInstanceOf(ThreadLost);
  });
});
