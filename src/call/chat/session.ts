import type { Conversation } from "../../domain/chat/conversation.ts";
import { nonEmpty } from "../../domain/json-fields.ts";
import type { Model } from "../../domain/model.ts";
import type { Session, SessionName, SessionOwner, Sessions } from "../../routing/affinity.ts";
import type { Call } from "../../snapshot/call.ts";

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
  readonly sessions: Pick<Sessions, "of">;
}

/** `prompt_cache_key` for a caller that names a session, and no cache. */
export function cacheKeyOfSession(
  request: Conversation,
  model: Model,
  { call, sessions }: SessionSearch,
): string | undefined {
  if (!call.snapshot.routing.hasSessionAffinity || isOff(call.headers)) return undefined;
  const name = namedSession(request, call.headers);
  return name && sessions.of(name, ownerOf(call, model)).hash.toString(16).padStart(16, "0");
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

/** Of each text, so that long prompts cost no more. */
const mostCharacters = 4_096;
const mostBlocks = 64;

/**
 * How a prompt begins: tools, instructions and the first message of the user, which are the same in all
 * calls of a conversation.
 */
function prefixOf({ tools, turns }: Conversation): string {
  let hash = 0n;
  const add = (text: string): void => {
    hash = Bun.hash.xxHash64(text.slice(0, mostCharacters), hash);
  };
  for (const { name, description = "" } of tools) {
    add(name);
    add(description);
  }
  let left = mostBlocks;
  for (const { role, blocks } of turns) {
    if (role === "assistant") continue;
    for (const block of blocks) {
      if (left === 0) return String(hash);
      left -= 1;
      if (block.type === "text") add(block.text);
    }
    if (role === "user") break;
  }
  return String(hash);
}
