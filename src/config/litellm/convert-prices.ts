import { isObject, type JsonObject } from "../../domain/json-object.ts";
import { type TokenClass, tokenClasses } from "../../domain/money/price.ts";
import { decimalUnits, usdOfMicro } from "../../domain/money/usd.ts";

/** LiteLLM's list of prices as entries of the section `prices`. */
export interface ConvertedPrices {
  readonly entries: readonly JsonObject[];
  /** Models that were left out, by the reason. */
  readonly unmapped: ReadonlyMap<string, readonly string[]>;
}

/** Reads the list. Throws a `SyntaxError` if it is no JSON. */
export function convertPrices(text: string): ConvertedPrices {
  const list = parseTexts(text);
  const unmapped = new Map<string, string[]>();
  const leaveOut = (reason: string, name: string): void => {
    const names = unmapped.get(reason);
    if (names === undefined) unmapped.set(reason, [name]);
    else names.push(name);
  };
  const entries = new Map<string, PriceEntry>();
  for (const [name, model] of Object.entries(isObject(list) ? list : {})) {
    if (name === "sample_spec" || !isObject(model)) continue;
    const entry = entryOf(name, model);
    if (typeof entry === "string") leaveOut(entry, name);
    else {
      const key = JSON.stringify([entry.provider, entry.model, entry.scope]);
      if (entries.has(key)) leaveOut("named a second time", name);
      else entries.set(key, entry);
    }
  }
  return { entries: withoutGlobalTrap([...entries.values()]).map(writeEntry), unmapped };
}

/** Numbers stay as they are written: a float of USD per token is not the price. */
function parseTexts(text: string): unknown {
  const asText = (_: string, value: unknown, context?: { readonly source?: string }): unknown =>
    typeof value === "number" ? (context?.source ?? String(value)) : value;
  const parsed: unknown = JSON.parse(text, asText);
  return parsed;
}

interface PriceEntry {
  readonly provider: string;
  readonly model: string;
  /** Undefined: of an identifier without a prefix. */
  readonly scope: string | undefined;
  readonly prices: JsonObject;
}

const providers: Readonly<Record<string, string>> = {
  bedrock: "bedrock",
  bedrock_converse: "bedrock",
  openai: "openai",
  anthropic: "anthropic",
};
const servedModes: ReadonlySet<unknown> = new Set(["chat", "completion", "responses", "embedding"]);

/** The entry, or why there is none. */
function entryOf(name: string, model: JsonObject): PriceEntry | string {
  const named = String(model["litellm_provider"]);
  const provider = providers[named];
  if (provider === undefined) return "of other providers";
  if (!servedModes.has(model["mode"])) return "of other modes than chat and embedding";
  if (name.includes("commitment") || name.startsWith("ft:")) {
    return "of commitments and fine-tuned models";
  }
  const prices = pricesOf(model);
  // The list has 0 where nothing is known.
  const isKnown = tokenClasses.some((name) => (prices?.[name] ?? "0") !== "0");
  if (prices === undefined || !isKnown) return "without a price per token";
  if (provider !== "bedrock") {
    const own = name.startsWith(`${provider}/`) ? name.slice(provider.length + 1) : name;
    return own.includes("/")
      ? "with a name that is no model's"
      : { provider, model: own, scope: undefined, prices };
  }
  const [, region, id = ""] = /^(?:bedrock\/)?(?:([a-z]{2}[a-z-]*-\d)\/)?([^/]+)$/.exec(name) ?? [];
  if (id === "") return "with a name that is no model's";
  const [, geography, bare = id] = /^(global|us-gov|us|eu|ca|jp|au|apac|in)\.(.+)$/.exec(id) ?? [];
  return { provider, model: bare, scope: region ?? geography, prices };
}

const classes: Readonly<Record<string, TokenClass>> = {
  input_cost_per_token: "input",
  output_cost_per_token: "output",
  cache_read_input_token_cost: "cache_read",
  cache_creation_input_token_cost: "cache_write",
  cache_creation_input_token_cost_above_1hr: "cache_write_1h",
};
const suffixes = /(?:_above_(\d+)k_tokens)?(?:_(flex|priority))?$/;
/** USD per token as micro-USD per 1M tokens. */
const digitsPerToken = 12;

type Rates = { [Class in TokenClass]?: string };
interface Tier extends Rates {
  long_prompt?: Rates & { readonly over_tokens: number };
}

/** USD per 1M tokens, from a field with the price of a token; undefined: it is none. */
export function priceOf(name: string, value: unknown): string | undefined {
  return rateOf(name) && usdOf(value, digitsPerToken);
}

/** The form of `price` in Sluice's file; undefined: it would not be whole. */
export function pricesOf(model: JsonObject): JsonObject | undefined {
  const tiers = new Map<string, Tier>([["", {}]]);
  // Those of long prompts follow the usual ones.
  const names = Object.keys(model).toSorted((one, other) => placeOf(one) - placeOf(other));
  for (const name of names) {
    const [, thousands, tier = ""] = suffixes.exec(name) ?? [];
    const [rate, usd] = [rateOf(name), priceOf(name, model[name])];
    if (rate === undefined || usd === undefined) continue;
    const own = tiers.get(tier) ?? {};
    tiers.set(tier, own);
    if (thousands === undefined) own[rate] = usd;
    else (own.long_prompt ??= { over_tokens: Number(thousands) * 1_000 })[rate] = usd;
  }
  const { "": standard = {}, ...others } = Object.fromEntries(tiers);
  if (standard.input === undefined) return undefined;
  const isEmbedding = model["mode"] === "embedding";
  if (!isEmbedding && standard.output === undefined) return undefined;
  // Chat models bill an image as tokens.
  const image = isEmbedding ? usdOf(model["input_cost_per_image"], 6) : undefined;
  return {
    ...standard,
    ...(image !== undefined && { image }),
    ...(Object.keys(others).length > 0 && { tiers: others }),
  };
}

function placeOf(name: string): number {
  const rate = rateOf(name);
  const isLong = suffixes.exec(name)?.[1] === undefined ? 0 : tokenClasses.length;
  return rate === undefined ? 0 : isLong + tokenClasses.indexOf(rate);
}

function rateOf(name: string): TokenClass | undefined {
  return classes[name.replace(suffixes, "")];
}

function usdOf(value: unknown, digits: number): string | undefined {
  const isText = typeof value === "string" || typeof value === "number";
  const read = isText ? decimalUnits(String(value), digits) : undefined;
  return read && usdOfMicro(read.units);
}

/**
 * The list gives an identifier without a prefix the global price, also where a geography and thus the
 * region itself cost more.
 */
function withoutGlobalTrap(entries: readonly PriceEntry[]): readonly PriceEntry[] {
  const byModel = Map.groupBy(entries, ({ provider, model }) => `${provider} ${model}`);
  return [...byModel.values()].flatMap((scopes) => {
    const bare = scopes.find(({ scope }) => scope === undefined);
    const us = scopes.find(({ scope }) => scope === "us");
    const isDearer = Number(us?.prices["input"] ?? 0) > Number(bare?.prices["input"] ?? 0);
    if (bare === undefined || !isDearer) return scopes;
    const others = scopes.filter((entry) => entry !== bare);
    const hasGlobal = others.some(({ scope }) => scope === "global");
    return hasGlobal ? others : [{ ...bare, scope: "global" }, ...others];
  });
}

function writeEntry({ provider, model, scope, prices }: PriceEntry): JsonObject {
  return { provider, model, ...(scope === undefined ? {} : { scope }), ...prices };
}
