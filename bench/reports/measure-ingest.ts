import { systemClock } from "../../src/domain/clock.ts";
import { openStores } from "../../src/store/postgres/open-stores.ts";
import { postgresPrograms, startPostgres } from "../../test/support/postgres-server.ts";
import type { Figure } from "../figure.ts";
import type { OwnContext } from "../figures/context.ts";
import { summarize } from "../statistics.ts";
import { callOf, type CallSpan } from "./usage-calls.ts";
import { testPeppers } from "../../test/support/test-peppers.ts";

/** As many as the leader takes from a spool at once. */
const batchRows = 2_000;
const callsPerSecond = 500;
/** 5,000 rows a second. */
const targetMicroseconds = 200;

/**
 * The time of a ledger row in PostgreSQL, whose writes reach the disk: of one gateway, and of two
 * that insert at once. Empty where PostgreSQL is not installed.
 */
export async function measureIngest(context: OwnContext): Promise<readonly Figure[]> {
  const { plan, progress } = context;
  if (postgresPrograms === undefined) {
    progress("ingest: PostgreSQL is not installed");
    return [];
  }
  await using server = await startPostgres({ isDurable: true });
  const figures: Figure[] = [];
  for (const gateways of [1, 2]) {
    progress(`ingest: ${gateways} gateways`);
    const url = await server.createDatabase();
    const count = plan.reportedCalls / 2;
    const times: number[] = [];
    // The first round compiles the code.
    for (let round = 0; round <= plan.rounds; round += 1) {
      times.push(await insertAll({ url, gateways, count, first: round * count }, context));
    }
    figures.push({
      name: `ingest.row_of_${gateways}`,
      title: `A ledger row in PostgreSQL, gateways: ${gateways}`,
      unit: "us",
      sluice: summarize(times.slice(1)).median,
      target: targetMicroseconds,
    });
  }
  return figures;
}

interface Load {
  readonly url: string;
  readonly gateways: number;
  readonly count: number;
  readonly first: number;
}

/** The time of one row, in microseconds, while all gateways insert. */
async function insertAll({ url, gateways, count, first }: Load, { signal }: OwnContext) {
  const since = Date.UTC(2026, 0, 30);
  const span = { since, until: since + (count * 1_000) / callsPerSecond, count, first };
  const stores = Array.from({ length: gateways }, () =>
    openStores(url, systemClock, { owner: undefined, peppers: testPeppers() }),
  );
  try {
    // Connects, and in the first round creates the tables.
    for (const { usage } of stores) await usage.insert([]);
    const startedAt = performance.now();
    await Promise.all(
      stores.map(async ({ usage }, turn) => {
        for (const batch of batches(span, { turn, of: gateways })) {
          signal.throwIfAborted();
          await usage.insert(batch);
        }
      }),
    );
    return ((performance.now() - startedAt) * 1_000) / count;
  } finally {
    await Promise.all(stores.map(({ connection }) => connection.close()));
  }
}

/** Every n-th batch of the calls, beginning with one's turn. */
function* batches(span: CallSpan, { turn, of }: { readonly turn: number; readonly of: number }) {
  for (let first = turn * batchRows; first < span.count; first += of * batchRows) {
    const rows = Math.min(batchRows, span.count - first);
    yield Array.from({ length: rows }, (_, index) => callOf(first + index, span));
  }
}
