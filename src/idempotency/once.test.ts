import { beforeEach, expect, test } from "bun:test";
import { testPeppers } from "../../test/support/test-peppers.ts";
import { GatewayError } from "../domain/errors/gateway-error.ts";
import { Once } from "./once.ts";
import { nameRequest } from "./request-names.ts";
import { SharedWork } from "./shared/shared-work.ts";

/** Work that ends when the test decides; its answers are kept unchanged. */
class Bench {
  readonly kept = new Map<string, string>();
  readonly gates: PromiseWithResolvers<string>[] = [];
  readonly signals: AbortSignal[] = [];
  finds = 0;
  readonly #once = new Once<string, SharedWork<string>>({
    find: async ({ id }) => {
      this.finds += 1;
      return this.kept.get(id);
    },
    keyReused: () => new GatewayError("idempotency_key_conflict", { message: "Another." }),
  });

  ask(key: string, content = "same", signal = new AbortController().signal): Promise<string> {
    const names = nameRequest({ key, identity: [key], content: [content] }, testPeppers());
    return this.#once.answer<string>({
      names,
      signal,
      begin: (onEnd) =>
        new SharedWork({
          run: async (all) => {
            const gate = Promise.withResolvers<string>();
            this.gates.push(gate);
            this.signals.push(all);
            const answer = await gate.promise;
            this.kept.set(names.id, answer);
            return answer;
          },
          onEnd,
        }),
      wait: (work) => work.wait({}, signal),
      open: (kept) => kept,
      asReplayed: (answer) => `${answer} again`,
    });
  }
}

const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

let bench: Bench;
beforeEach(() => {
  bench = new Bench();
});

test("equal requests share one look-up, one run and one answer; later ones get the kept answer", async () => {
  const asked = [1, 2, 3].map(() => bench.ask("a"));
  await settle();
  expect([bench.finds, bench.gates.length]).toEqual([1, 1]);
  bench.gates[0]?.resolve("done");
  expect(await Promise.all(asked)).toEqual(["done", "done again", "done again"]);
  expect(await bench.ask("a")).toBe("done again");
  expect([bench.finds, bench.gates.length]).toEqual([2, 1]);
});

test("a different request with the key of a running one is refused", async () => {
  const first = bench.ask("a");
  await settle();
  expect(bench.ask("a", "other")).rejects.toMatchObject({ code: "idempotency_key_reused" });
  bench.gates[0]?.resolve("done");
  expect(await first).toBe("done");
});

test("failed work is begun anew", async () => {
  const first = bench.ask("a");
  await settle();
  bench.gates[0]?.reject(new Error("broke"));
  expect(first).rejects.toThrow("broke");
  await settle();
  const second = bench.ask("a");
  await settle();
  bench.gates[1]?.resolve("done");
  expect(await second).toBe("done");
});

test("work is abandoned when the last caller leaves, and never runs twice at once", async () => {
  const [one, other] = [new AbortController(), new AbortController()];
  const left = Promise.allSettled([
    bench.ask("a", "same", one.signal),
    bench.ask("a", "same", other.signal),
  ]);
  await settle();
  one.abort(new Error("one left"));
  expect(bench.signals[0]?.aborted).toBe(false);
  other.abort(new Error("the other left"));
  expect(bench.signals[0]?.reason).toEqual(new Error("the other left"));
  const late = bench.ask("a");
  await settle();
  expect(bench.gates).toHaveLength(1);
  bench.gates[0]?.reject(new Error("given up"));
  await left;
  await settle();
  bench.gates[1]?.resolve("done");
  expect(await late).toBe("done");
});

test("work that was abandoned too late completes, and is not repeated", async () => {
  const caller = new AbortController();
  const first = bench.ask("a", "same", caller.signal);
  await settle();
  caller.abort(new Error("left"));
  const late = bench.ask("a");
  bench.gates[0]?.resolve("done");
  expect([await first, await late]).toEqual(["done", "done again"]);
  expect(bench.gates).toHaveLength(1);
});

test("a request that leaves during the look-up begins nothing", async () => {
  const caller = new AbortController();
  const asked = bench.ask("a", "same", caller.signal);
  caller.abort(new Error("left"));
  expect(asked).rejects.toThrow("left");
  await settle();
  expect(bench.gates).toHaveLength(0);
});
