import { countPromptTokens } from "../../answer/prompt-tokens.ts";
import { hashText } from "../../answer/random.ts";
import { isRecord, listOf, recordOf, type JsonRecord } from "../../read-json.ts";
import type { CapabilityRow } from "../account/capability-row.ts";
import type { CacheUse } from "./converse-request.ts";
import { readPrompt } from "./read-prompt.ts";

const maxPrefixes = 10_000;

/** Remembers the prefixes of prompts before cache points. They never expire. */
export class PromptCache {
  readonly #prefixes = new Set<string>();

  /** Undefined for a body without cache points. Prefixes that are too short are not cached. */
  use(body: JsonRecord, model: string, row: CapabilityRow): CacheUse | undefined {
    const prefixes = [...prefixesOf(body)];
    if (prefixes.length === 0) return undefined;
    let readTokens = 0;
    let cachedTokens = 0;
    const written = { "5m": 0, "1h": 0 };
    for (const { prefix, ttl } of prefixes) {
      const tokens = countPromptTokens(readPrompt(prefix, model, row));
      if (tokens < row.minCachedTokens) continue;
      const added = tokens - cachedTokens;
      cachedTokens = tokens;
      const text = JSON.stringify(prefix);
      const key = `${model} ${text.length} ${hashText(text)} ${hashText(text, 1)}`;
      if (this.#prefixes.has(key)) {
        readTokens = tokens;
        Object.assign(written, { "5m": 0, "1h": 0 });
      } else written[ttl] += added;
      if (this.#prefixes.size >= maxPrefixes) this.#prefixes.clear();
      this.#prefixes.add(key);
    }
    return { readTokens, writeTokens: cachedTokens - readTokens, written };
  }
}

interface CachedPrefix {
  readonly prefix: JsonRecord;
  readonly ttl: "5m" | "1h";
}

/** The prefix before each cache point, shortest first: tools, then system, then messages. */
function* prefixesOf(body: JsonRecord): Generator<CachedPrefix, void, void> {
  const tools = listOf(recordOf(body["toolConfig"])["tools"]);
  const system = listOf(body["system"]);
  const messages = listOf(body["messages"]);
  for (const { before, ttl } of cachedParts(tools)) {
    yield { prefix: { toolConfig: { tools: before } }, ttl };
  }
  const first = { toolConfig: { tools: withoutPoints(tools) } };
  for (const { before, ttl } of cachedParts(system)) {
    yield { prefix: { ...first, system: before }, ttl };
  }
  const earlier: JsonRecord[] = [];
  for (const message of messages.map(recordOf)) {
    const content = listOf(message["content"]);
    for (const { before, ttl } of cachedParts(content)) {
      const last = { ...message, content: before };
      const prefix = { ...first, system: withoutPoints(system), messages: [...earlier, last] };
      yield { prefix, ttl };
    }
    earlier.push({ ...message, content: withoutPoints(content) });
  }
}

interface CachedPart {
  readonly before: readonly unknown[];
  readonly ttl: "5m" | "1h";
}

/** Other cache points do not belong to a prefix: the next request may have them elsewhere. */
function cachedParts(blocks: readonly unknown[]): CachedPart[] {
  return blocks.flatMap((block, index) => {
    const { cachePoint } = recordOf(block);
    if (!isRecord(cachePoint)) return [];
    const ttl = cachePoint["ttl"] === "1h" ? "1h" : "5m";
    return [{ before: withoutPoints(blocks.slice(0, index)), ttl }];
  });
}

function withoutPoints(blocks: readonly unknown[]): readonly unknown[] {
  return blocks.filter((block) => !isRecord(recordOf(block)["cachePoint"]));
}
