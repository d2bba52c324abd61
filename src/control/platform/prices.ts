import {
  type Price,
  type PriceTable,
  type Rates,
  tableAt,
  type TierRates,
} from "../../domain/money/price.ts";
import { usdOfMicro } from "../../domain/money/usd.ts";
import {
  pricesQuerySchema,
  pricesSchema,
  type PriceVersionView,
  type PriceView,
  type TargetPriceView,
  type TierView,
} from "../contract/prices.ts";
import { defineOperation, type Operation, permissions } from "../operation/operation.ts";
import { notFound, requireUnbound } from "../operation/scope.ts";
import type { AdminServices } from "../services.ts";

const mostVersions = 100;

/** What calls cost: the published tables of prices. */
export function priceOperations(services: AdminServices): readonly Operation[] {
  const { prices } = services;
  return [
    defineOperation({
      id: "listPrices",
      method: "GET",
      path: "/admin/v1/prices",
      resource: "Prices",
      summary: "List what each target costs",
      description:
        "Prices are published as numbered versions, which never change. A call has the version that " +
        "applied when it arrived. They come from the configuration and from the shipped list.",
      ...permissions.oversee,
      query: pricesQuerySchema,
      answer: pricesSchema,
      async run({ query: { version }, call }) {
        requireUnbound(call.principal);
        const table = version === 0 ? await inUse(services) : await prices.find(version);
        if (version !== 0 && table === undefined) throw notFound("version of the prices");
        const versions = await prices.versions(mostVersions);
        return {
          version: table?.version ?? null,
          data: viewTargets(services, table, version === 0),
          versions: versions.map(({ version: number, validFrom, publishedAt, withdrawnAt }) => ({
            version: number,
            valid_from: isoOf(validFrom),
            published_at: isoOf(publishedAt),
            withdrawn_at: withdrawnAt === undefined ? null : isoOf(withdrawnAt),
          })) satisfies PriceVersionView[],
        };
      },
    }),
  ];
}

async function inUse({
  prices,
  clock,
}: Pick<AdminServices, "prices" | "clock">): Promise<PriceTable | undefined> {
  const now = clock.now();
  const { tables = [] } = await prices.load(now, undefined);
  return tableAt(tables, now);
}

/** `isOfConfigured`: without targets that only the table has. */
function viewTargets(
  { platform }: Pick<AdminServices, "platform">,
  table: PriceTable | undefined,
  isOfConfigured: boolean,
): TargetPriceView[] {
  const aliases = new Map<string, Set<string>>();
  for (const { models } of platform().environments) {
    for (const { alias, targets } of models) {
      for (const { id } of targets) {
        aliases.set(id, (aliases.get(id) ?? new Set()).add(alias));
      }
    }
  }
  const targets = table?.targets ?? {};
  const others = isOfConfigured ? [] : Object.keys(targets).filter((id) => !aliases.has(id));
  return [...aliases.keys(), ...others].toSorted().map((target) => {
    const found = targets[target];
    return {
      target,
      models: [...(aliases.get(target) ?? [])],
      price: found === undefined ? null : viewPrice(found.price),
      source: found?.source ?? null,
      confidence: found?.confidence ?? null,
      since: found?.since ?? null,
    };
  });
}

function viewPrice({ tiers = {}, image, ...standard }: Price): PriceView {
  const named = Object.entries(tiers).map(([name, tier]) => [name, viewTier(tier)] as const);
  return { ...viewTier(standard), image: usdOrNull(image), tiers: Object.fromEntries(named) };
}

function viewTier({ over, ...rates }: TierRates): TierView {
  const long = over && { over_tokens: over.tokens, ...viewRates(over.rates) };
  return { ...viewRates(rates), long_prompt: long ?? null };
}

function viewRates(rates: Rates) {
  return {
    input: usdOrNull(rates.input),
    cache_read: usdOrNull(rates.cacheRead),
    cache_write: usdOrNull(rates.cacheWrite),
    cache_write_1h: usdOrNull(rates.cacheWrite1h),
    output: usdOrNull(rates.output),
  };
}

function usdOrNull(micro: number | undefined): string | null {
  return micro === undefined ? null : usdOfMicro(micro);
}

function isoOf(at: number): string {
  return new Date(at).toISOString();
}
