import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import { startProcess, until, type AllottedProcess } from "../support/allotted-world.ts";
import { describeWithValkey, startValkey, type ValkeyServer } from "../support/valkey-server.ts";

const gateways = 3;
const tokensPerMinute = 100_000;
const tokens = 1_000;

describeWithValkey(() => {
  let server: ValkeyServer;
  beforeAll(async () => {
    server = await startValkey();
  });
  afterAll(() => server[Symbol.asyncDispose]());
  beforeEach(() => server.command("FLUSHALL"));

  async function withGateways(
    body: (all: readonly AllottedProcess[]) => Promise<void>,
  ): Promise<void> {
    const all: AllottedProcess[] = [];
    const pool = { tokensPerMinute, maxInFlight: 1_000 };
    while (all.length < gateways) all.push(await startProcess(server, { pool }));
    await until(() => all.every(({ allotments }) => allotments.processes === gateways));
    try {
      await body(all);
    } finally {
      for (const each of all) await each[Symbol.asyncDispose]();
    }
  }

  test.each([
    ["at once", "all"],
    ["one after the other", "all"],
    ["at once", "one"],
    ["one after the other", "one"],
  ])(
    "a flood that calls %s at %s of the gateways leaves tokens to others at each",
    async (how, where) => {
      await withGateways(async (all) => {
        const flooded = where === "all" ? all : all.slice(0, 1);
        const flood = { accountId: "large", tokens };
        let taken = 0;
        const callAt = async (gateway: AllottedProcess): Promise<void> => {
          const place = await gateway.enter(flood);
          if (place === undefined) return;
          taken += tokens;
          place.settle(tokens);
          gateway.leave(place);
        };
        const calls = Array.from({ length: 150 }, () => flooded).flat();
        if (how === "at once") await Promise.all(calls.map(callAt));
        else for (const gateway of calls) await callAt(gateway);
        // It may use most of the minute at once.
        expect(taken).toBeGreaterThan(0.6 * tokensPerMinute);
        for (const [index, gateway] of all.entries()) {
          for (let call = 0; call < 2; call += 1) {
            expect(await gateway.enter({ accountId: `small ${index}`, tokens })).toBeDefined();
          }
        }
      });
    },
  );
});
