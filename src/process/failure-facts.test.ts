import { describe, expect, test } from "bun:test";
import { failureFacts } from "./failure-facts.ts";

const root = new URL("../../", import.meta.url).pathname;
const canary = "a prompt about zebras";

class OddFailure extends Error {
  override readonly name = "a name of its own";
}

function thrownBy(run: () => unknown): unknown {
  try {
    return run();
  } catch (error) {
    return error;
  }
}

describe("what is reported of an exception", () => {
  test("is its class and the functions and positions in this program", () => {
    const facts = failureFacts(thrownBy(failDeepInside), root);
    expect(facts.error).toBe("OddFailure");
    expect(facts.positions[0]).toMatch(
      /^failDeepInside \(src\/process\/failure-facts\.test\.ts:\d+:\d+\)$/,
    );
  });

  test.each([
    canary,
    `${canary}\n    at ${canary} (${root}zebra.ts:1:1)`,
    `\n    at zebra (${root}src/zebra.ts:1:1)\n    at prompt (${root}src/zebra.ts:2:2)`,
    `    at zebra (node:zebra:1:1)`,
    "",
  ])("is no part of its message: %j", (message) => {
    const facts = failureFacts(
      thrownBy(() => failWith(message)),
      root,
    );
    expect(JSON.stringify(facts)).not.toMatch(/zebra|prompt/);
    expect(facts.positions[0]).toStartWith("failWith (");
  });

  test.each(["another message", "", "zebra", "a prompt", "src"])(
    "has no positions when its message was changed to %j",
    (message) => {
      const error = new Error(`${canary}\n    at zebra (${root}src/zebra.ts:1:1)`);
      void error.stack;
      error.message = message;
      expect(failureFacts(error, root)).toEqual({ error: "Error", positions: [] });
    },
  );

  test("has no position before a line that is not a frame", () => {
    const error = thrownBy(() => failWith(`short\n    at zebra (${root}src/zebra.ts:1:1)\n.`));
    if (!(error instanceof Error)) throw new Error("nothing was thrown");
    void error.stack;
    error.message = "short";
    const facts = failureFacts(error, root);
    expect(JSON.stringify(facts)).not.toContain("zebra");
    expect(facts.positions[0]).toStartWith("failWith (");
  });

  test("has no class that is not a plain name, and no position outside this program", () => {
    const Named = { [canary]: class extends Error {} }[canary] ?? Error;
    expect(failureFacts(new Named("x"), root).error).toBe("Error");
    expect(failureFacts(new Error("x"), "/some/other/folder/").positions.join()).not.toContain(
      "failure-facts",
    );
  });

  test("has the positions of an executable, which are relative to its sources", () => {
    const error = new TypeError(canary);
    error.stack = `TypeError: ${canary}\n    at fail (src/call/run-call.ts:1:2)`;
    const positions = ["fail (src/call/run-call.ts:1:2)"];
    expect(failureFacts(error, "")).toEqual({ error: "TypeError", positions });
  });

  test("is its type when it is not an error", () => {
    expect(failureFacts(canary, root)).toEqual({ error: "string", positions: [] });
    expect(failureFacts(undefined, root)).toEqual({ error: "undefined", positions: [] });
  });
});

function failDeepInside(): never {
  throw new OddFailure(canary);
}

function failWith(message: string): never {
  throw new TypeError(message);
}
