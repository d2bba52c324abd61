import { isObject, type JsonObject } from "../../domain/json-object.ts";
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
  if (prices === undefined) return "without a price per token";
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

const classes: Readonly<Record<string, string>> = {
  input_cost_per_token: "input",
  output_cost_per_token: "output",
  cache_read_input_token_cost: "cache_read",
  cache_creation_input_token_cost: "cache_write",
  cache_creation_input_token_cost_above_1hr: "cache_write_1h",
};
const field =
  /^((?:in|out)put_cost_per_token|cache_read_input_token_cost|cache_creation_input_token_cost(?:_above_1hr)?)(?:_above_(\d+)k_tokens)?(?:_(flex|priority))?$/;
/** USD per token as micro-USD per 1M tokens. */
const digitsPerToken = 12;

interface Tier {
  readonly rates: Record<string, string>;
  readonly long: Record<string, string>;
  over: number | undefined;
}

/** Undefined: nothing has a price. */
function pricesOf(model: JsonObject): JsonObject | undefined {
  const tiers = new Map<string, Tier>();
  for (const [name, text] of Object.entries(model)) {
    const [, of = "", thousands, tier = ""] = field.exec(name) ?? [];
    const rate = classes[of];
    const read = typeof text === "string" ? decimalUnits(text, digitsPerToken) : undefined;
    if (rate === undefined || read === undefined) continue;
    const own = tiers.get(tier) ?? { rates: {}, long: {}, over: undefined };
    tiers.set(tier, own);
    const usd = usdOfMicro(read.units);
    if (thousands === undefined) own.rates[rate] = usd;
    else {
      own.over = Number(thousands) * 1_000;
      own.long[rate] = usd;
    }
  }
  const standard = tiers.get("");
  if (standard?.rates["input"] === undefined) return undefined;
  const isEmbedding = model["mode"] === "embedding";
  if (!isEmbedding && standard.rates["output"] === undefined) return undefined;
  // The list has it where nothing is known.
  if (Object.values(standard.rates).every((rate) => rate === "0")) return undefined;
  tiers.delete("");
  const others = [...tiers].map(([name, tier]) => [name, writeTier(tier)] as const);
  // Chat models bill an image as tokens.
  const image = isEmbedding ? imageOf(model["input_cost_per_image"]) : {};
  return {
    ...writeTier(standard),
    ...image,
    ...(others.length === 0 ? {} : { tiers: Object.fromEntries(others) }),
  };
}

function imageOf(text: unknown): JsonObject {
  const read = typeof text === "string" ? decimalUnits(text, 6) : undefined;
  return read === undefined ? {} : { image: usdOfMicro(read.units) };
}

function writeTier({ rates, long, over }: Tier): JsonObject {
  const own = inOrder(rates);
  return over === undefined
    ? own
    : { ...own, long_prompt: { over_tokens: over, ...inOrder(long) } };
}

function inOrder(rates: Tier["rates"]): JsonObject {
  const names = ["input", "cache_read", "cache_write", "cache_write_1h", "output"];
  return Object.fromEntries(
    names.flatMap((name) => (rates[name] === undefined ? [] : [[name, rates[name]] as const])),
  );
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
