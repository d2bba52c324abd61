import { afterAll, beforeAll, expect, test } from "bun:test";
import fc from "fast-check";
import { RefusalLog } from "../../../../admission/refusals/refusal-log.ts";
import { type Refusal, refusalBounds } from "../../../../domain/errors/refusal.ts";
import { runsOf } from "../../../../../test/support/requirement.ts";
import {
  connectTo,
  describeWithValkey,
  startValkey,
  type ValkeyServer,
} from "../../../../../test/support/valkey-server.ts";
import { ValkeyRefusals } from "./valkey-refusals.ts";

const subject = fc.oneof(
  fc.constantFrom("a", "b").map((name) => ({ keyId: `key_${name}`, accountId: "acct_1" })),
  fc.constantFrom("c", "d").map((name) => ({ keyId: `key_${name}`, accountId: "acct_2" })),
  fc.constantFrom("x", "y").map((publicId) => ({ publicId })),
  fc.constant({}),
);

describeWithValkey(() => {
  let server: ValkeyServer;
  beforeAll(async () => {
    server = await startValkey();
  });
  afterAll(() => server[Symbol.asyncDispose]());

  test("several gateways keep together what one keeps in memory", async () => {
    const connection = await connectTo(server);
    const refusals = new ValkeyRefusals(connection);
    await fc.assert(
      fc.asyncProperty(fc.array(subject, { minLength: 1, maxLength: 150 }), async (subjects) => {
        await server.command("FLUSHALL");
        const log = new RefusalLog();
        const all = subjects.map((values, index) => refusalOf(index, values));
        for (const refusal of all) log.record(refusal);
        await Promise.all(all.map((refusal) => refusals.keep(refusal)));
        for (const filter of [{}, { keyId: "key_a" }, { accountId: "acct_2" }, { keyId: "none" }]) {
          expect(await refusals.list(filter, 30)).toEqual([...log.list(filter, 30)]);
        }
        const found = await Promise.all(all.map(({ id }) => refusals.find(id)));
        expect(found).toEqual(all.map(({ id }) => log.find(id)));
      }),
      { numRuns: runsOf(100), endOnFailure: true },
    );
    refusals.close();
  });

  test("guessed keys do not grow beyond their bounds", async () => {
    await server.command("FLUSHALL");
    const connection = await connectTo(server);
    const refusals = new ValkeyRefusals(connection);
    const { limit } = refusalBounds.strangers;
    const kept = refusals.keep(refusalOf(0, { keyId: "key_a" }));
    const guesses = Array.from({ length: limit + 500 }, (_, index) =>
      refusals.keep(refusalOf(index + 1, { publicId: `guess ${index}` })),
    );
    await Promise.all([kept, ...guesses]);
    expect(await refusals.list({}, 100_000)).toHaveLength(limit + 1);
    expect(await refusals.find("req_0")).toBeDefined();
    // Two groups of three keys, and one for each subject.
    expect(await server.command("DBSIZE")).toBe(6 + limit + 1);
    refusals.close();
  });

  test("what another version has written is left out", async () => {
    await server.command("FLUSHALL");
    const connection = await connectTo(server);
    const refusals = new ValkeyRefusals(connection);
    await refusals.keep(refusalOf(1, { keyId: "key_a" }));
    const key = "sluice:{refusals:1}:keys:texts";
    await server.command("HSET", key, "req_1", '{"id":"req_1"}', "req_2", "null", "req_3", "[1");
    expect(await refusals.list({}, 10)).toEqual([]);
    expect(await refusals.find("req_3")).toBeUndefined();
    refusals.close();
  });
});

function refusalOf(index: number, about: Partial<Refusal["explanation"]>): Refusal {
  const explanation = { rule: "pool_busy", summary: "The pool is busy.", ...about } as const;
  return { id: `req_${index}`, at: 1_000 + index, status: 429, code: null, explanation };
}
