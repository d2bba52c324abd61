import type { Block, CacheMark, Conversation } from "../../domain/chat/conversation.ts";
import { nonEmpty } from "../../domain/json-fields.ts";
import type { Model } from "../../domain/model.ts";
import type { Session, SessionName, SessionOwner, Sessions } from "../../routing/affinity.ts";
import type { Call } from "../../snapshot/call.ts";
import type { SessionServices } from "../attempts/call-candidates.ts";

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
  request: Conversation,
  model: Model,
  { call, bytes, services }: SessionSearch,
): Session | undefined {
  if (isOff(call.headers)) return undefined;
  const named = namedSession(request, call.headers);
  const isBegun = named === undefined && mayCache(model, services);
  const name = isBegun ? prefixOf(request, bytes) : named;
  return name && services.sessions.of(name, ownerOf(call, model));
}

interface SessionSearch {
  readonly call: Call;
  /** Of the prompt. */
  readonly bytes: number;
  readonly services: SessionServices;
}

/** `prompt_cache_key` for a caller that names a session, and no cache. */
export function cacheKeyOfSession(
  request: Conversation,
  model: Model,
  { call, sessions }: { readonly call: Call; readonly sessions: Pick<Sessions, "of"> },
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

/** Whether a provider may read the prompt from its cache at a lower price; unknown without prices. */
function mayCache(model: Model, { prices, clock }: SessionServices): boolean {
  const now = clock.now();
  return model.targets.some(({ id }) => {
    const found = prices.find(id, now);
    if (found === undefined) return true;
    const { input = 0, cache_read: read = input } = found.price;
    return read < input;
  });
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
/** Of each text, so that long prompts cost no more. */
const mostCharacters = 4_096;

/**
 * The beginning of a prompt that a provider may cache: tools, instructions and the first message of the
 * user, which are the same in all calls of a conversation.
 */
function prefixOf(
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
