import { describe, expect, test } from "bun:test";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { sql } from "kysely";
import { ManualClock } from "../../../test/support/manual-clock.ts";
import { describeWithPostgres } from "../../../test/support/postgres-databases.ts";
import type { TargetPrice } from "../../domain/money/price.ts";
import { openStores } from "../sqlite/open-stores.ts";
import { pricesIn, type PriceStore } from "./price-store.ts";
import type { SqlConnection } from "./tables.ts";
import { testPeppers } from "../../../test/support/test-peppers.ts";

const dollars = (input: number): TargetPrice => ({
  price: { input },
  source: "test",
  confidence: "configured",
});

function publish(store: PriceStore, prices: Readonly<Record<string, number>>) {
  return store.publish(
    new Map(Object.entries(prices).map(([id, input]) => [id, dollars(input)] as const)),
  );
}

interface Database {
  readonly clock: ManualClock;
  readonly store: PriceStore;
  /** Another process on the database. */
  readonly other: PriceStore;
}

function priceStoreContract(name: string, open: () => Database | Promise<Database>): void {
  describe(`the tables of prices in ${name}`, () => {
    test("are numbered, keep what they say, and are not published twice", async () => {
      const { store, clock } = await open();
      const first = clock.now();
      await publish(store, { a: 1 });
      clock.advance(1_000);
      expect(await publish(store, { a: 1 })).toBeUndefined();
      const second = clock.now();
      await publish(store, { a: 2 });
      expect(await store.versions(10)).toEqual([
        { version: 2, validFrom: second },
        { version: 1, validFrom: first },
      ]);
      expect((await store.find(1))?.targets).toEqual({ a: dollars(1) });
      expect((await store.find(2))?.targets).toEqual({ a: dollars(2) });
      expect(await store.find(3)).toBeUndefined();
      expect((await store.find())?.version).toBe(2);
    });

    test("are loaded from the one that applied then, and only when there are others", async () => {
      const { store, other, clock } = await open();
      await publish(store, { a: 1 });
      clock.advance(1_000);
      await publish(store, { a: 2 });
      clock.advance(1_000);
      const seen = await other.load(clock.now() - 500, undefined);
      expect(seen?.map(({ version }) => version)).toEqual([2]);
      expect(await other.load(clock.now() - 1_500, undefined)).toHaveLength(2);
      expect(await other.load(clock.now(), 2)).toBeUndefined();
      await publish(store, { a: 3 });
      expect((await other.load(clock.now(), 2))?.[0]?.targets).toEqual({ a: dollars(3) });
    });

    test("are none before the first one", async () => {
      const { store, clock } = await open();
      expect(await store.load(clock.now(), undefined)).toEqual([]);
      expect(await store.find()).toBeUndefined();
      const first = await publish(store, {});
      expect(first).toEqual({ version: 1, validFrom: clock.now(), targets: {} });
    });

    test("of several publishers at once are published one after the other", async () => {
      const { store, other } = await open();
      const same = await Promise.all(
        [store, other, store, other].map((by) => publish(by, { a: 1 })),
      );
      expect(same.filter((table) => table !== undefined)).toHaveLength(1);
      const prices = Array.from({ length: 20 }, (_, index) => index + 2);
      const differing = await Promise.all(
        prices.map((price, index) => publish(index % 2 === 0 ? store : other, { a: price })),
      );
      const versions = differing.map((table) => table?.version ?? 0);
      expect(versions.toSorted((one, next) => one - next)).toEqual(prices);
    });
  });
}

const atClock = (connection: SqlConnection, clock: ManualClock) =>
  pricesIn(connection, () => sql<number>`cast(${clock.now()} as bigint)`);

priceStoreContract("SQLite", () => {
  const clock = new ManualClock();
  const path = join(mkdtempSync(join(tmpdir(), "sluice-prices-")), "sluice.db");
  const open = () => atClock(openStores(path, clock, { peppers: testPeppers() }).connection, clock);
  return { clock, store: open(), other: open() };
});

describeWithPostgres((databases) => {
  priceStoreContract("PostgreSQL", async () => {
    const clock = new ManualClock();
    const url = await databases.server.createDatabase();
    const [one, other] = [await databases.connect({ url }), await databases.connect({ url })];
    return {
      clock,
      store: atClock(one.inLane("entities"), clock),
      other: atClock(other.inLane("entities"), clock),
    };
  });
});
