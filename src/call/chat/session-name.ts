import type { Block, CacheMark, Conversation } from "../../domain/chat/conversation.ts";
import { nonEmpty } from "../../domain/json-fields.ts";
import type { SessionName } from "../../routing/affinity.ts";

/** In order of precedence: Sluice's own, then those of Claude Code, of Codex, and of other clients. */
const sessionHeaders = [
  "x-sluice-session",
  "x-claude-code-session-id",
  "session_id",
  "session-id",
  "x-session-affinity",
  "x-session-id",
] as const;

/** Whether the caller wants its calls to be drawn by weight. */
export function isSessionOff(headers: Pick<Headers, "get">): boolean {
  return headers.get(sessionHeaders[0]) === "off";
}

/** The session that the caller names. Not by `user`: all work of a user would be at one target. */
export function namedSession(
  { extra, options }: Pick<Conversation, "extra" | "options">,
  headers: Pick<Headers, "get">,
): SessionName | undefined {
  for (const name of sessionHeaders) {
    const value = nonEmpty(headers.get(name));
    if (value !== undefined) return { kind: "session", value };
  }
  const id = nonEmpty(extra["session_id"]);
  if (id !== undefined) return { kind: "session", value: id };
  const cacheKey = nonEmpty(options.promptCacheKey);
  return cacheKey === undefined ? undefined : { kind: "prompt_cache_key", value: cacheKey };
}

/** No provider caches prompts of fewer tokens, 1,024, which have about four bytes each. */
const fewestBytes = 4_096;
/** Of each text, so that long prompts cost no more. */
const mostCharacters = 8_192;

/**
 * The beginning of a prompt that a provider may cache: tools, instructions and the first message of the
 * user, which are the same in all calls of a conversation.
 */
export function prefixOf(
  request: Pick<Conversation, "tools" | "turns">,
  bytes: number,
): SessionName | undefined {
  if (bytes < fewestBytes && !hasCacheMark(request, () => true)) return undefined;
  let hash = 0n;
  const add = (text: string): void => {
    hash = Bun.hash.xxHash64(text.slice(0, mostCharacters), hash);
  };
  for (const { name, description = "" } of request.tools) {
    add(name);
    add(description);
  }
  for (const { role, blocks } of request.turns) {
    if (role === "assistant") continue;
    for (const block of blocks) if (block.type === "text") add(block.text);
    if (role === "user") break;
  }
  return { kind: "prefix", value: String(hash) };
}

/** Whether the caller marked a part of the prompt to be cached, in this way. */
export function hasCacheMark(
  { tools, turns }: Pick<Conversation, "tools" | "turns">,
  isMeant: (mark: CacheMark) => boolean,
): boolean {
  const isMarked = ({ cacheMark }: { readonly cacheMark?: CacheMark | undefined }): boolean =>
    cacheMark !== undefined && isMeant(cacheMark);
  const isIn = (block: Block): boolean =>
    isMarked(block) || (block.type === "tool-result" && block.content.some(isIn));
  return tools.some(isMarked) || turns.some((turn) => isMarked(turn) || turn.blocks.some(isIn));
}
