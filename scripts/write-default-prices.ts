/**
 * Writes `src/config/prices/defaults.json` from a list of facts, whose amounts are micro-USD per 1M
 * tokens: `bun scripts/write-default-prices.ts FACTS`. Scopes that cost the same become one.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { usdOfMicro } from "../src/domain/money/usd.ts";

interface FactRates {
  readonly input?: number | undefined;
  readonly cache_read?: number | undefined;
  readonly cache_write_5m?: number | undefined;
  readonly cache_write_1h?: number | undefined;
  readonly output?: number | undefined;
}

interface Fact extends FactRates {
  readonly provider: string;
  readonly model: string;
  /** `-`: of the identifier without a prefix. */
  readonly scope: string;
  readonly long?: FactRates & { readonly over_tokens: number };
  readonly flex?: FactRates;
  readonly priority?: FactRates;
  readonly confidence: string;
  readonly valid_from: string | null;
  readonly source: readonly string[];
}

const [, , path] = process.argv;
if (path === undefined) throw new Error("name the file of facts");
const facts = readFacts(readFileSync(path, "utf8"));
const entries = [...facts.flatMap((scopes) => entriesOf(scopes)), ...anthropicOf(facts)];
const text = entries.map((entry) => `  ${JSON.stringify(entry)}`).join(",\n");
writeFileSync("src/config/prices/defaults.json", `[\n${text}\n]\n`);

/** By model. */
function readFacts(text: string): (readonly Fact[])[] {
  const { rows } = parseFacts(text);
  // No document of the maker's knows it.
  const doubtful = "anthropic.claude-3-7-sonnet-20240620-v1:0";
  const known = rows
    .filter(({ model }) => model !== doubtful)
    .toSorted((one, other) => (orderOf(one) < orderOf(other) ? -1 : 1));
  return [...Map.groupBy(known, orderOf).values()];
}

function parseFacts(text: string): { readonly rows: readonly Fact[] };
function parseFacts(text: string): unknown {
  const facts: unknown = JSON.parse(text);
  return facts;
}

function orderOf({ provider, model }: Fact): string {
  return `${provider} ${model}`;
}

/** One entry for each price of a model. */
function entriesOf(scopes: readonly Fact[]): object[] {
  const [first] = scopes;
  if (first === undefined) return [];
  if (scopes.every((fact) => isSame(fact, first)) && !isOnlyRegional(scopes)) {
    if (first.provider !== "bedrock") return [entryOf(surest(scopes), undefined)];
    // What is listed once is the price of us-east-1.
    const isKnownElsewhere = scopes.some(({ scope }) => scope === "eu" || scope === "global");
    return [entryOf(surest(scopes), isKnownElsewhere ? "commercial" : "us")];
  }
  const bare = scopeOf(scopes, "-");
  const ofUs = scopeOf(scopes, "us");
  const us = bare && ofUs && isSame(bare, ofUs) ? { ...surest([bare, ofUs]), scope: "us" } : ofUs;
  const eu = scopeOf(scopes, "eu");
  // Lists give the identifier without a prefix the global price where the geography's is higher.
  const global = scopeOf(scopes, "global") ?? (bare && us && isSame(bare, us) ? undefined : bare);
  const regional =
    us !== undefined && (eu === undefined || isSame(us, eu))
      ? [entryOf(us, "regional")]
      : [us, eu].flatMap((fact) => (fact === undefined ? [] : [entryOf(fact, fact.scope)]));
  return [...(global === undefined ? [] : [entryOf(global, "global")]), ...regional];
}

function isOnlyRegional(scopes: readonly Fact[]): boolean {
  return scopes.every(({ scope }) => scope !== "-" && scope !== "global");
}

/** Anthropic's own API costs what a global profile does; its names have neither date nor version. */
function anthropicOf(models: readonly (readonly Fact[])[]): object[] {
  const named = new Map<string, object>();
  for (const scopes of models) {
    const fact = scopeOf(scopes, "global") ?? scopeOf(scopes, "-");
    if (fact?.model.startsWith("anthropic.") !== true) continue;
    const model = fact.model.replace("anthropic.", "").replace(/(-\d{8})?(-v\d+(:\d+)?)?$/, "");
    const source = ["the global price of bedrock"];
    const own = { ...fact, provider: "anthropic", model, confidence: "low", source };
    named.set(model, entryOf(own, undefined));
  }
  return [...named.values()];
}

function scopeOf(scopes: readonly Fact[], name: string): Fact | undefined {
  return scopes.find(({ scope }) => scope === name);
}

/** Of facts with the same price. */
function surest(same: readonly Fact[]): Fact {
  const [first] = same.toSorted((one, other) => rank(other) - rank(one));
  if (first === undefined) throw new Error("there is no fact");
  return first;
}

function rank({ confidence }: Fact): number {
  return ["low", "medium", "high"].indexOf(confidence);
}

function isSame(one: Fact, other: Fact): boolean {
  return JSON.stringify(ratesOfFact(one)) === JSON.stringify(ratesOfFact(other));
}

function entryOf(fact: Fact, scope: string | undefined): object {
  const { provider, model, confidence, valid_from: date, source } = fact;
  return {
    provider,
    model,
    ...(scope === undefined ? {} : { scope }),
    ...(date === null ? {} : { valid_from: date }),
    ...ratesOfFact(fact),
    confidence,
    source: source.map((each) => each.replace(/:.*$/, "").replace(/-(\d)/, " $1")).join(", "),
  };
}

function ratesOfFact(fact: Fact): object {
  const { long, flex, priority } = fact;
  const over = long && { ...long, ...longWrites(fact, long) };
  const tiers = Object.entries({ flex, priority }).flatMap(([name, rates]) => {
    if (rates === undefined) return [];
    // Half of the standard price is half of its long prompts' price, too.
    const isHalf = rates.input === half(fact.input) && rates.output === half(fact.output);
    const ofLong = isHalf && over !== undefined ? longOf(over, half) : {};
    const reads = isHalf ? cached(fact) : {};
    return [[name, { ...usd({ ...reads, ...rates }), ...ofLong }] as const];
  });
  return {
    ...usd(fact),
    ...(over === undefined ? {} : longOf(over, (rate) => rate)),
    ...(tiers.length === 0 ? {} : { tiers: Object.fromEntries(tiers) }),
  };
}

/** A tier of half the price has its reads and writes at half the price. */
function cached({ cache_read: read, cache_write_5m: write }: FactRates): FactRates {
  return { cache_read: half(read), cache_write_5m: half(write) };
}

/** Writes for an hour cost twice the input, long prompts included. */
function longWrites(fact: Fact, long: FactRates): FactRates {
  const { input = 0, cache_write_1h: write } = fact;
  return write === input * 2 && long.input !== undefined ? { cache_write_1h: long.input * 2 } : {};
}

function longOf(
  { over_tokens, ...rates }: NonNullable<Fact["long"]>,
  change: (rate: number | undefined) => number | undefined,
): object {
  const { input, cache_read, cache_write_5m, cache_write_1h, output } = rates;
  const changed = {
    input: change(input),
    cache_read: change(cache_read),
    cache_write_5m: change(cache_write_5m),
    cache_write_1h: change(cache_write_1h),
    output: change(output),
  };
  return { long_prompt: { over_tokens, ...usd(changed) } };
}

function half(rate: number | undefined): number | undefined {
  return rate === undefined ? undefined : rate / 2;
}

/** In the words of the configuration. */
function usd(rates: FactRates): object {
  const { input, cache_read, cache_write_5m: cache_write, cache_write_1h, output } = rates;
  const named = Object.entries({ input, cache_read, cache_write, cache_write_1h, output });
  return Object.fromEntries(
    named.flatMap(([name, rate]) =>
      rate === undefined ? [] : [[name, Number(usdOfMicro(Math.round(rate)))]],
    ),
  );
}
