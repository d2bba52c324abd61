import { expect, test } from "bun:test";
import {
  connectTo,
  describeWithValkey,
  startValkey,
} from "../../../../../test/support/valkey-server.ts";
import type { HealthHint } from "../../../../routing/health/target-health.ts";
import { HealthChannel, parseHint } from "./health-channel.ts";

const ejected: HealthHint = {
  target: "up/model",
  key: undefined,
  ejected: { forMs: 1_000, times: 1, because: "five failures in a row" },
};

test("a hint is read as it was sent, and only if it is well formed", () => {
  const messageOf = (hint: object): string => JSON.stringify({ ...hint, process: "other" });
  expect(parseHint(messageOf(ejected), "own")).toEqual(ejected);
  const returned = { target: "up/model", key: "key_1", ejected: undefined };
  expect(parseHint(messageOf(returned), "own")).toEqual(returned);
  expect(parseHint(messageOf(ejected), "other")).toBeUndefined();
  const wrong: unknown[] = [
    { ...ejected, target: 1 },
    { ...ejected, key: {} },
    { ...ejected, ejected: null },
    { ...ejected, ejected: { ...ejected.ejected, forMs: -1 } },
    { ...ejected, ejected: { ...ejected.ejected, forMs: 1e12 } },
    { ...ejected, ejected: { forMs: 1, times: 1 } },
    { ...ejected, ejected: { ...ejected.ejected, because: "x".repeat(1_001) } },
  ];
  for (const hint of wrong) expect(parseHint(JSON.stringify(hint), "own")).toBeUndefined();
  for (const text of ["", "{", "null", "7", "[]"]) expect(parseHint(text, "own")).toBeUndefined();
});

describeWithValkey(() => {
  test("what one process tells, the others hear", async () => {
    await using server = await startValkey();
    const [from, to] = [await connectTo(server), await connectTo(server)];
    const teller = new HealthChannel({ connection: from, process: "one" });
    const listener = new HealthChannel({ connection: to, process: "other" });
    const { promise, resolve } = Promise.withResolvers<HealthHint>();
    teller.hear(() => {
      throw new Error("heard itself");
    });
    listener.hear(resolve);
    let heard: HealthHint | undefined;
    // The subscription may still be under way.
    while (heard === undefined) {
      teller.tell(ejected);
      heard = await Promise.race([promise, Bun.sleep(20).then(() => undefined)]);
    }
    expect(heard).toEqual(ejected);
    for (const channel of [teller, listener]) channel.close();
    for (const connection of [from, to]) connection.close();
  });
});
