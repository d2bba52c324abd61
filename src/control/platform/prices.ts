import type { Price, PriceTable, Rates, TierRates } from "../../domain/money/price.ts";
import { usdOfMicro } from "../../domain/money/usd.ts";
import {
  pricesQuerySchema,
  pricesSchema,
  type PriceView,
  type RatesView,
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
        const isInUse = version === 0;
        const table = await prices.find(isInUse ? undefined : version);
        if (!isInUse && table === undefined) throw notFound("version of the prices");
        const versions = await prices.versions(mostVersions);
        return {
          version: table?.version ?? null,
          data: viewTargets(services, table?.targets ?? {}, isInUse),
          versions: versions.map(({ version: number, validFrom }) => ({
            version: number,
            valid_from: new Date(validFrom).toISOString(),
          })),
        };
      },
    }),
  ];
}

/** `isOfConfigured`: without targets that only the table has. */
function viewTargets(
  { platform }: Pick<AdminServices, "platform">,
  targets: PriceTable["targets"],
  isOfConfigured: boolean,
): TargetPriceView[] {
  const aliases = new Map<string, Set<string>>();
  for (const { models } of platform().environments) {
    for (const { alias, targets: own } of models) {
      for (const { id } of own) {
        aliases.set(id, (aliases.get(id) ?? new Set()).add(alias));
      }
    }
  }
  const others = isOfConfigured ? [] : Object.keys(targets).filter((id) => !aliases.has(id));
  return [...aliases.keys(), ...others].toSorted().map((target) => {
    const found = targets[target];
    return {
      target,
      models: [...(aliases.get(target) ?? [])],
      price: found ? viewPrice(found.price) : null,
      source: found?.source ?? null,
      confidence: found?.confidence ?? null,
      since: found?.since ?? null,
    };
  });
}

function viewPrice({ image, tiers = {}, ...standard }: Price): PriceView {
  const named = Object.entries(tiers).map(([name, tier]) => [name, viewTier(tier)] as const);
  const perImage = image === undefined ? {} : { image: usdOfMicro(image) };
  return { ...viewTier(standard), ...perImage, tiers: Object.fromEntries(named) };
}

function viewTier({ long_prompt: long, ...rates }: TierRates): TierView {
  if (long === undefined) return viewRates(rates);
  const { over_tokens, ...ofLong } = long;
  return { ...viewRates(rates), long_prompt: { over_tokens, ...viewRates(ofLong) } };
}

function viewRates(rates: Rates): RatesView {
  return Object.fromEntries(
    Object.entries(rates).map(([name, micro = 0]) => [name, usdOfMicro(micro)] as const),
  );
}
