import type { Conversation } from "../../domain/chat/conversation.ts";
import { nonEmpty } from "../../domain/json-fields.ts";
import type { Model } from "../../domain/model.ts";
import type { Session, SessionName, SessionOwner } from "../../routing/affinity.ts";
import type { Call } from "../../snapshot/call.ts";
import type { CallServices } from "../services.ts";

/** In order of precedence: Sluice's own, then those of Claude Code, of Codex, and of other clients. */
const sessionHeaders = [
  "x-sluice-session",
  "x-claude-code-session-id",
  "session_id",
  "session-id",
  "x-session-affinity",
  "x-session-id",
] as const;

/** Calls of one session are best served by one target. Undefined: the call is of none. */
export function sessionOf(
  prompt: Prompt,
  model: Model,
  { call, sessions }: SessionSearch,
): Session | undefined {
  if (isOff(call.headers)) return undefined;
  const { request } = prompt;
  const name =
    namedSession(request, call.headers) ??
    (mayBeCached(prompt, model) ? { kind: "prefix", value: prefixOf(request) } : undefined);
  return name && sessions.of(name, ownerOf(call, model));
}

interface Prompt {
  readonly request: Conversation;
  readonly bytes: number;
  /** Whether a part of it is marked to be cached. */
  readonly isMarked: () => boolean;
}

interface SessionSearch {
  readonly call: Call;
  readonly sessions: CallServices["sessions"];
}

/** `prompt_cache_key` for a caller that names a session, and no cache. */
export function cacheKeyOfSession(
  request: Conversation,
  model: Model,
  { call, sessions }: SessionSearch,
): string | undefined {
  if (!call.snapshot.routing.hasSessionAffinity || isOff(call.headers)) return undefined;
  const name = namedSession(request, call.headers);
  return name && sessions.cacheKey(name, ownerOf(call, model));
}

function ownerOf({ caller, environment }: Call, { alias }: Model): SessionOwner {
  return { accountId: caller.key.accountId, environment: environment.name, alias };
}

function isOff(headers: Pick<Headers, "get">): boolean {
  return headers.get(sessionHeaders[0]) === "off";
}

/** The session that the caller names. Not by `user`: all work of a user would be at one target. */
function namedSession(
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

function mayBeCached({ bytes, isMarked }: Prompt, { targets }: Model): boolean {
  return targets.some(({ promptCache }) => {
    if (promptCache === undefined) return false;
    return (promptCache.filled !== "as_asked" && bytes >= fewestBytes) || isMarked();
  });
}

/** Of each text: a provider keeps no shorter prefix. */
const mostCharacters = 4_096;
/** Of those, the first and the last are hashed: all of them would cost more than the rest of it. */
const endCharacters = 256;
/** Of each turn. */
const mostBlocks = 16;

/**
 * How a prompt begins: instructions and the first message of the user, which are the same in all
 * calls of a conversation, and how many tools it has, from which to which.
 */
function prefixOf({ tools, turns }: Conversation): string {
  const from = tools[0]?.name ?? "";
  let hash = Bun.hash.xxHash32(tools.length < 2 ? from : from + tools.at(-1)?.name, tools.length);
  for (const { role, blocks } of turns) {
    if (role === "assistant") continue;
    for (const block of blocks.slice(0, mostBlocks)) {
      if (block.type === "text") hash = textHash(block.text, hash);
    }
    if (role === "user") break;
  }
  return String(hash);
}

function textHash(text: string, before: number): number {
  const end = Math.min(text.length, mostCharacters);
  const hash = Bun.hash.xxHash32(text.slice(0, endCharacters), before ^ end);
  if (end <= endCharacters) return hash;
  return Bun.hash.xxHash32(text.slice(Math.max(endCharacters, end - endCharacters), end), hash);
}
