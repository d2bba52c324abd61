import { countPromptTokens } from "../answer/prompt-tokens.ts";
import { hashText } from "../answer/random.ts";
import { isRecord, listOf, recordOf, type JsonRecord } from "../read-json.ts";
import type { CapabilityRow } from "./capability-rows.ts";
import type { CacheUse } from "./converse-request.ts";
import { readPrompt } from "./read-prompt.ts";

const fewestTokens = 1024;
const mostPrefixes = 10_000;

/** Remembers the beginnings of prompts that were marked with cache points. They never expire. */
export class PromptCache {
  readonly #prefixes = new Set<string>();

  /** Undefined for a body without cache points. Beginnings that are too short are not cached. */
  use(body: JsonRecord, model: string, row: CapabilityRow): CacheUse | undefined {
    const prefixes = [...prefixesOf(body)];
    if (prefixes.length === 0) return undefined;
    let readTokens = 0;
    let cachedTokens = 0;
    for (const prefix of prefixes) {
      const tokens = countPromptTokens(readPrompt(prefix, model, row));
      if (tokens < fewestTokens) continue;
      cachedTokens = tokens;
      const text = JSON.stringify(prefix);
      const key = `${model} ${text.length} ${hashText(text)} ${hashText(text, 1)}`;
      if (this.#prefixes.has(key)) readTokens = tokens;
      if (this.#prefixes.size >= mostPrefixes) this.#prefixes.clear();
      this.#prefixes.add(key);
    }
    return { readTokens, writeTokens: cachedTokens - readTokens };
  }
}

/** What stands before each cache point, shortest first: tools, then system, then messages. */
function* prefixesOf(body: JsonRecord): Generator<JsonRecord, void, void> {
  const tools = listOf(recordOf(body["toolConfig"])["tools"]);
  const system = listOf(body["system"]);
  const messages = listOf(body["messages"]);
  for (const index of cachePointsIn(tools)) yield { toolConfig: { tools: tools.slice(0, index) } };
  const before = { toolConfig: { tools } };
  for (const index of cachePointsIn(system)) yield { ...before, system: system.slice(0, index) };
  for (const [turn, message] of messages.entries()) {
    const content = listOf(recordOf(message)["content"]);
    for (const index of cachePointsIn(content)) {
      const last = { ...recordOf(message), content: content.slice(0, index) };
      yield { ...before, system, messages: [...messages.slice(0, turn), last] };
    }
  }
}

function cachePointsIn(blocks: readonly unknown[]): number[] {
  return blocks.flatMap((block, index) => (isRecord(recordOf(block)["cachePoint"]) ? [index] : []));
}
