import { expect, test } from "bun:test";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { sql } from "kysely";
import { ManualClock } from "../../../test/support/manual-clock.ts";
import { until } from "../../../test/support/until.ts";
import type { Config } from "../../config/config.ts";
import { formatProblems, parseConfig } from "../../config/load.ts";
import { PublishedPrices } from "../../domain/money/price.ts";
import { pricesIn } from "../../store/repositories/price-store.ts";
import { openStores } from "../../store/sqlite/open-stores.ts";
import type { Logger } from "../../telemetry/log/logger.ts";
import { storageEvents } from "../../telemetry/events/storage-events.ts";
import { PriceFeed } from "./price-feed.ts";
import { testPeppers } from "../../../test/support/test-peppers.ts";

const target = "up/us.anthropic.claude-sonnet-4-6";
const entry = { provider: "bedrock", model: "anthropic.claude-sonnet-4-6", output: 1 };

function configOf(prices: readonly object[]) {
  const file = {
    environments: [{ name: "test", hosts: ["*"], models: ["*"] }],
    upstreams: { up: { kind: "bedrock", region: "us-east-1", api_key: "a-key" } },
    models: {
      chat: {
        kind: "chat",
        context_window: 200_000,
        targets: [{ upstream: "up", model: "us.anthropic.claude-sonnet-4-6" }],
      },
    },
    prices,
  };
  const result = parseConfig(JSON.stringify(file), { name: "sluice.yaml", env: {} });
  if (!result.ok) throw new Error(formatProblems("sluice.yaml", result.problems));
  return result.config;
}

function feedOf(clock: ManualClock, config: Config) {
  const path = join(mkdtempSync(join(tmpdir(), "sluice-price-feed-")), "sluice.db");
  const { connection } = openStores(path, clock, { peppers: testPeppers() });
  const book = new PublishedPrices();
  const log: string[] = [];
  const logger: Logger = {
    log: (_, message) => void log.push(message),
    writes: () => true,
  };
  const feed = new PriceFeed({
    store: pricesIn(connection, () => sql<number>`cast(${clock.now()} as bigint)`),
    clock,
    config: () => config,
    publishes: () => true,
    tell: (tables) => book.publish(tables, clock.now()),
    events: storageEvents({ logger, clock }),
  });
  return { feed, book, log, connection };
}

test("a price begins with its day, for calls that arrive from then on", async () => {
  const clock = new ManualClock({ wallMs: Date.parse("2026-11-30T23:59:59.500Z") });
  const config = configOf([
    { ...entry, input: 1 },
    { ...entry, input: 5, valid_from: "2026-12-01" },
  ]);
  const { feed, book, log } = feedOf(clock, config);
  await feed.start();
  const before = clock.now();
  expect(book.find(target, before)?.price.input).toBe(1_000_000);
  await feed.follow();
  clock.advance(500);
  await until(() => book.find(target, clock.now() + 1)?.version === 2);
  expect(book.find(target, clock.now() + 1)?.price.input).toBe(5_000_000);
  expect(book.find(target, before)?.price.input).toBe(1_000_000);
  await feed.stop();
  expect(log).toEqual(["prices were published", "prices were published"]);
});

test("after a restore of an older database, the prices are published anew", async () => {
  const clock = new ManualClock({ wallMs: Date.parse("2026-11-30T12:00:00Z") });
  const { feed, book, connection } = feedOf(clock, configOf([{ ...entry, input: 5 }]));
  await connection.change((queries) =>
    queries.insertInto("priceTables").values({ version: 1, validFrom: 0, targets: "{}" }).execute(),
  );
  await feed.start();
  expect(book.find(target, clock.now())?.version).toBe(2);
  await connection.change((queries) =>
    queries.deleteFrom("priceTables").where("version", "=", 2).execute(),
  );
  clock.advance(1_000);
  await until(() => book.find(target, clock.now()) === undefined);
  await until(() => book.find(target, clock.now() + 1)?.price.input === 5_000_000);
  await feed.stop();
});
