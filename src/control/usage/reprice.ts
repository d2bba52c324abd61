import { randomBase62 } from "../../domain/keys/base62.ts";
import type { PriceTable } from "../../domain/money/price.ts";
import { usdOfNano } from "../../domain/money/usd.ts";
import type { CostStore, RepriceEnd, RepriceRequest } from "../../store/costs.ts";
import { repricedSchema, repriceSchema } from "../contract/money.ts";
import { change } from "../operation/change.ts";
import { defineOperation, type Operation, permissions } from "../operation/operation.ts";
import { invalidField, wrongState } from "../operation/refusals.ts";
import type { AdminServices } from "../services.ts";
import { timeText } from "../values/api-form.ts";
import { readRange } from "../values/time-range.ts";

/** Calls per transaction, few enough that storing new ones does not wait long. */
const batchCalls = 500;

/** Prices stored calls again, in steps. */
export function repriceOperation(services: AdminServices): Operation {
  const { clock, random, costs } = services;
  return defineOperation({
    id: "repriceUsage",
    method: "POST",
    path: "/admin/v1/usage/reprice",
    resource: "Usage",
    summary: "Price stored calls again",
    description:
      "Rows keep their first cost; the change is noted beside it, and sums and open periods of " +
      "budgets move. If it fails in between, repeat it: what has the new cost already stays.",
    ...permissions.operate,
    body: repriceSchema,
    answer: repricedSchema,
    async run({ call, body }) {
      const at = clock.now();
      const { since, until } = readRange(body, at);
      const table = await findTable(services, body.price_version);
      const isDryRun = body.dry_run === true;
      const closedPeriods = body.closed_periods === true;
      const run = `rpr_${randomBase62(16, random)}`;
      const about = {
        price_version: table.version,
        since: timeText(since),
        until: timeText(until),
        closed_periods: closedPeriods,
      };
      const entry = { subject: { type: "usage", id: run }, accountId: undefined };
      // Noted first: an interrupted run has changed costs, too.
      if (!isDryRun) {
        await change(services, { ...call, replies: undefined }, ({ audit }) =>
          audit({ ...entry, action: "usage.reprice_begin", after: about }),
        );
      }
      const request = { run, at, since, until, table, closedPeriods, isDryRun };
      const sum = await repriceAll(costs, request, call.signal);
      const answer = { run, dry_run: isDryRun, ...about, ...sum };
      if (isDryRun) return answer;
      await costs.noteRun({ run, at, summary: JSON.stringify({ run, ...about, ...sum }) });
      return change(services, call, async ({ audit }) => {
        await audit({ ...entry, action: "usage.reprice", after: { ...about, ...sum } });
        return answer;
      });
    },
  });
}

type WholeRun = Omit<RepriceRequest, "tables" | "after" | "limit">;

async function repriceAll(costs: CostStore, whole: WholeRun, signal: AbortSignal) {
  const { table } = whole;
  const request = { ...whole, tables: new Map([[table.version, table]]), limit: batchCalls };
  const sum = { calls: 0, repriced: 0, not_priced: 0, not_explained: 0 };
  let [oldNano, newNano] = [0n, 0n];
  let after: RepriceEnd | undefined;
  do {
    signal.throwIfAborted();
    const batch = await costs.reprice({ ...request, after });
    sum.calls += batch.calls;
    sum.repriced += batch.repriced;
    sum.not_priced += batch.notPriced;
    sum.not_explained += batch.notExplained;
    oldNano += batch.oldNano;
    newNano += batch.newNano;
    after = batch.end;
  } while (after !== undefined);
  return { ...sum, old_usd: usdOfNano(oldNano), new_usd: usdOfNano(newNano) };
}

async function findTable(
  { prices }: Pick<AdminServices, "prices">,
  version: number | undefined,
): Promise<PriceTable> {
  const table = await prices.find(version);
  if (table !== undefined) return table;
  if (version !== undefined) throw invalidField("price_version", "use one that was published");
  throw wrongState(
    "No prices were published yet. The gateway does so within a second of its start.",
  );
}
