import type { CallRouting } from "../../domain/usage/call-routing.ts";
import { explainCost, partsOf } from "../../domain/money/cost-parts.ts";
import { usdOfMicro, usdOfNano } from "../../domain/money/usd.ts";
import type { UsageRecord } from "../../domain/usage/usage.ts";
import type { PriceTables } from "../../store/store.ts";
import type { Principal } from "../../domain/principal.ts";
import {
  callRowSchema,
  type CallDetail,
  type CallRow,
  type RoutingView,
} from "../contract/usage.ts";
import { apiForm, viewAs } from "../values/api-form.ts";

type Reader = Pick<Principal, "accountId">;

/** A call as a principal may see it: only operators see the upstreams' own model identifiers. */
export function viewCall(record: UsageRecord, reader: Reader): CallRow {
  const { target, cacheWriteTokens, mayBeBilledTwice } = record;
  return viewAs(callRowSchema, record, {
    target: target === undefined ? null : viewTarget(target, reader),
    class: record.capacityClass,
    cache_write_tokens: cacheWriteTokens ?? 0,
    cache_write_1h_tokens: record.cacheWrite1hTokens ?? 0,
    service_tier: record.serviceTier ?? null,
    cost_usd: record.costNano === undefined ? null : usdOfNano(record.costNano),
    repriced_usd: record.repricedNano === undefined ? null : usdOfNano(record.repricedNano),
    price_version: record.priceVersion ?? null,
    may_be_billed_twice: mayBeBilledTwice ?? false,
    via: record.via ?? null,
    end_user: record.endUser ?? null,
    tags: record.tags ?? null,
  });
}

/**
 * Adds how the call found its target, and how it came to its cost, which are omitted in lists and
 * downloads.
 */
export async function viewCallDetail(
  record: UsageRecord,
  reader: Reader,
  prices: Pick<PriceTables, "find">,
): Promise<CallDetail> {
  const { routing } = record;
  return {
    ...viewCall(record, reader),
    cost_parts: await costPartsOf(record, prices),
    routing: routing === undefined ? null : viewRouting(routing, reader),
  };
}

async function costPartsOf(
  record: UsageRecord,
  prices: Pick<PriceTables, "find">,
): Promise<CallDetail["cost_parts"]> {
  const { priceVersion, target = "" } = record;
  const table = priceVersion === undefined ? undefined : await prices.find(priceVersion);
  const price = table?.targets[target]?.price;
  if (price === undefined || explainCost(record, price) === undefined) return null;
  return partsOf(record, price).map(({ item, count, rate }) => ({
    item,
    tokens: count,
    usd_per_million: usdOfMicro(rate),
    cost_usd: usdOfNano((BigInt(count) * BigInt(rate) + 500n) / 1_000n),
  }));
}

function viewRouting({ candidates, attempts }: CallRouting, reader: Reader): RoutingView {
  return {
    candidates: candidates.map(({ target, model, why }) => {
      return { target: viewTarget(target, reader), model, why };
    }),
    attempts: attempts.map(({ target, decision, ...attempt }) => ({
      ...apiForm(attempt),
      target: viewTarget(target, reader),
      decision: decision ?? null,
    })),
  };
}

/** The id of a target is `upstream/identifier`, and names of upstreams contain no slash. */
function viewTarget(id: string, { accountId }: Reader): string {
  return accountId === undefined ? id : (id.split("/", 1)[0] ?? "");
}
