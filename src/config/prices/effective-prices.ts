import type { ModelKind, Target } from "../../domain/model.ts";
import { missingPrices } from "../../domain/money/billed-classes.ts";
import type { PricesWanted, TargetPrice } from "../../domain/money/price.ts";
import { isSameValue } from "../../domain/json-object.ts";
import type { ListedModel } from "../../upstreams/kind.ts";
import type { Config } from "../config.ts";
import { defaultPricesSchema, type ListedPrice } from "../sections/prices.ts";
import defaults from "./defaults.json" with { type: "json" };

/** What the prices of targets are made from. */
export type PricedConfig = Pick<Config, "environments" | "upstreams" | "prices">;

/**
 * The price of each target of a configuration at a time, in milliseconds since the epoch: later prices
 * of the section do not apply yet.
 */
export function effectivePrices(config: PricedConfig, at: number): PricesWanted {
  const shipped = defaultPricesSchema.parse(defaults);
  const day = new Date(at).toISOString();
  const section = config.prices.filter(({ validFrom = "" }) => validFrom <= day);
  const found = new Map<string, TargetPrice | undefined>();
  for (const target of targetsOf(config)) {
    found.set(target.id, priceOf(target, { config, section, shipped }));
  }
  return found;
}

/**
 * Notices about targets whose calls have no cost, or may have none because their price lacks a class of
 * tokens.
 */
export function priceNotices(config: PricedConfig, at: number): readonly string[] {
  const prices = effectivePrices(config, at);
  const unpriced: string[] = [];
  const partly: string[] = [];
  for (const [target, kind] of kindsOf(config)) {
    const price = prices.get(target.id)?.price;
    const plain = { tier: undefined, cacheTime: undefined, hasOutput: kind === "chat" };
    const missing = price === undefined ? [] : missingPrices(price, target.promptCache, plain);
    if (price === undefined) unpriced.push(target.id);
    else if (missing.length > 0) partly.push(`${target.id} (${missing.join(", ")})`);
  }
  const notices = [
    [unpriced, "their calls have no cost"],
    [partly, "calls that are billed for that have no cost"],
  ] as const;
  return notices.flatMap(([targets, what]) => {
    if (targets.length === 0) return [];
    const how =
      "Set the whole `price` at the target, such as `price: { input: 0.2, cache_read: 0.1, output: 0.6 }` " +
      "in USD per 1M tokens, or add to `prices`: 0 for what costs nothing";
    const under = "keys under a budget that refuses cannot use them";
    return [`not priced: ${targets.join(", ")}; ${what}, and ${under}. ${how}`];
  });
}

/** Each target once, with the kind of its model. */
function kindsOf({ environments }: Pick<Config, "environments">): ReadonlyMap<Target, ModelKind> {
  const byId = new Map<string, readonly [Target, ModelKind]>();
  for (const environment of environments) {
    for (const { kind, targets } of environment.models.values()) {
      for (const target of targets) byId.set(target.id, [target, kind]);
    }
  }
  return new Map(byId.values());
}

export function targetsOf(config: Pick<Config, "environments">): readonly Target[] {
  return [...kindsOf(config).keys()];
}

interface Lists {
  readonly config: PricedConfig;
  readonly section: readonly ListedPrice[];
  readonly shipped: readonly (ListedPrice & Pick<TargetPrice, "confidence">)[];
}

const ofOperator = "the configuration";

/** What lists call a target's model; undefined: nobody can tell. */
export function listedAs(
  { upstreams }: Pick<Config, "upstreams">,
  { upstream, model }: Target,
): ListedModel | undefined {
  const settings = upstreams.get(upstream);
  return settings?.kind.listedAs?.(settings.settings, model);
}

function priceOf(target: Target, { config, section, shipped }: Lists): TargetPrice | undefined {
  const { price } = target;
  if (price !== undefined) return { price, source: ofOperator, confidence: "configured" };
  const listed = listedAs(config, target);
  if (listed === undefined) return undefined;
  const own = findListed(section, listed);
  if (own !== undefined) {
    return { ...viewOf(own), source: own.source ?? ofOperator, confidence: "configured" };
  }
  const known = findListed(shipped, listed);
  if (known === undefined) return ofOtherRegion(shipped, listed);
  return { ...viewOf(known), source: known.source ?? "", confidence: known.confidence };
}

/** Many models are listed with the price of one region alone, which is rarely lower in others. */
function ofOtherRegion(shipped: Lists["shipped"], listed: ListedModel): TargetPrice | undefined {
  const found = listed.scopes.includes("commercial")
    ? findListed(shipped, { ...listed, scopes: ["us"] })
    : undefined;
  const scopes = shipped.filter(({ model }) => model === found?.model);
  if (found === undefined || scopes.length > 1) return undefined;
  return { ...viewOf(found), source: `${found.source ?? ""}, of us`, confidence: "low" };
}

function viewOf({ price, validFrom }: ListedPrice): Pick<TargetPrice, "price" | "since"> {
  return validFrom === undefined ? { price } : { price, since: validFrom };
}

/** By the most exact scope, then by the most exact name, the latest of several. */
export function findListed<Entry extends ListedPrice>(
  entries: readonly Entry[],
  { provider, model, scopes }: ListedModel,
): Entry | undefined {
  const ofProvider = entries.filter((entry) => entry.provider === provider);
  for (const scope of scopes) {
    const inScope = ofProvider.filter((entry) => entry.scope === scope);
    const found =
      latest(inScope.filter((entry) => entry.model === model)) ??
      latest(inScope.filter((entry) => entry.model === undated(model))) ??
      theOnly(inScope.filter((entry) => shortName(entry.model) === model));
    if (found !== undefined) return found;
  }
  return undefined;
}

function latest<Entry extends ListedPrice>(entries: readonly Entry[]): Entry | undefined {
  return entries.toSorted((one, other) =>
    (other.validFrom ?? "").localeCompare(one.validFrom ?? ""),
  )[0];
}

/** Several versions of a model may have one short name; it is priced only if they cost the same. */
function theOnly<Entry extends ListedPrice>(entries: readonly Entry[]): Entry | undefined {
  const ofEach = [...Map.groupBy(entries, ({ model }) => model).values()].map((each) =>
    latest(each),
  );
  const [first, ...others] = ofEach;
  const isOne = others.every((other) => isSameValue(other?.price, first?.price));
  return isOne ? first : undefined;
}

/** `gpt-4o-2024-08-06` is a `gpt-4o`, `claude-sonnet-4-5-20250929` a `claude-sonnet-4-5`. */
function undated(model: string): string {
  return model.replace(/-(\d{8}|\d{4}-\d{2}-\d{2}|latest)$/, "");
}

/** The name of a model of Bedrock at endpoints that know neither its date nor its version. */
function shortName(model: string): string {
  return undated(model.replace(/-(v\d+|\d)(:\d+)?$/, ""));
}
