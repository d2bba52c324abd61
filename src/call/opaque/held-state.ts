import {
  type Block,
  type Conversation,
  type ExtraFields,
  fieldOf,
} from "../../domain/chat/conversation.ts";
import { unsupported } from "../../domain/errors/upstream-failure.ts";
import { isObject } from "../../domain/json-fields.ts";
import type { Destination } from "../../routing/candidates.ts";
import type { Call } from "../../snapshot/call.ts";
import type { ChatCodec, UpstreamRequest } from "../../upstreams/adapter.ts";

/** A field of a request that names what an upstream holds, such as a file. */
export interface NamedState {
  /** Path of the caller's field. */
  readonly at: string;
  /** Stands in the body of a request that has the field, and in no text or number of another. */
  readonly sign: string;
}

/**
 * The fields among those without a name in a conversation that name what upstreams hold. To an upstream
 * all accounts of the gateway are one: it would read one's file for another.
 */
export function heldStateIn(conversation: Conversation): readonly NamedState[] {
  const found: NamedState[] = [];
  const { turns, tools, format, extra } = conversation;
  find(extra, "", found);
  for (const { blocks, extra: beside, cacheMark, at } of turns) {
    find(beside, at, found);
    find(cacheMark?.extra, at, found);
    for (const block of blocks) findInBlock(block, found);
  }
  for (const { kind, extra: beside, inner, cacheMark, at } of tools) {
    find(beside, at, found);
    find(inner, `${at}.${kind}`, found);
    find(cacheMark?.extra, at, found);
  }
  const field = fieldOf(conversation, "format");
  find(format?.extra, field, found);
  if (format?.type === "schema") find(format.inner, `${field}.json_schema`, found);
  return found;
}

function findInBlock(block: Block, found: NamedState[]): void {
  const { type, extra, inner, cacheMark, at } = block;
  find(extra, at, found);
  find(cacheMark?.extra, at, found);
  find(inner, type === "document" ? `${at}.file` : at, found);
  if (type === "foreign") find(block.value, at, found);
  if (type === "tool-result") for (const part of block.content) findInBlock(part, found);
  // The id of an answer to the caller itself is another in the body, without its tag.
  if (type === "spoken") {
    found.push({ at: `${at}.id`, sign: `"audio":{"id":${JSON.stringify(block.id)}` });
  }
}

function find(value: unknown, at: string, found: NamedState[]): void {
  if (value === undefined) return;
  if (Array.isArray(value)) {
    value.forEach((item, index) => find(item, `${at}[${index}]`, found));
  } else if (isObject(value)) findInFields(value, at, found);
}

function findInFields(fields: ExtraFields, at: string, found: NamedState[]): void {
  for (const name in fields) {
    const value = fields[name];
    const path = at === "" ? name : `${at}.${name}`;
    if (!namesState(name, value)) find(value, path, found);
    else if (value !== null) found.push({ at: path.slice(0, 200), sign: signOf(name, value) });
  }
}

/** Within texts, quotes would be escaped. Lists and objects may be sent with other fields. */
function signOf(name: string, value: unknown): string {
  const written = JSON.stringify(value);
  return `${JSON.stringify(name)}:${typeof value === "object" ? written[0] : written}`;
}

/** A voice by its name is everybody's, one by its id is somebody's. Google takes two spellings. */
function namesState(name: string, value: unknown): boolean {
  const plain = name.replaceAll(/[_-]/g, "").toLowerCase();
  return plain === "voice" ? isObject(value) : stateNames.has(plain);
}

/** Without underscores. Source: the requests of OpenAI, Anthropic, Google and Azure. */
const stateNames: ReadonlySet<string> = new Set([
  "assistantid",
  "cachedcontent",
  "connectorid",
  "container",
  "containerid",
  "conversation",
  "conversationid",
  "fileid",
  "fileids",
  "fileuri",
  "mcpservers",
  "previousinteractionid",
  "previousresponseid",
  "promptid",
  "responseid",
  "serverurl",
  "skillid",
  "thread",
  "threadid",
  "vectorstoreid",
  "vectorstoreids",
]);

/**
 * The codec for one caller's request. It throws `unsupported` for one in whose written form a field
 * names what the upstream holds, unless that is the caller's account's.
 */
export function guardedCodec(
  codec: ChatCodec,
  held: readonly NamedState[],
  { destination, call }: { readonly destination: Destination; readonly call: Pick<Call, "caller"> },
): ChatCodec {
  const isOwn = destination.upstream.stateAccount === call.caller.key.accountId;
  if (held.length === 0 || isOwn) return codec;
  const { countTokens } = codec;
  return {
    ...codec,
    encode: (request, model) => checked(codec.encode(request, model), held),
    encodeStream: (request, model) => checked(codec.encodeStream(request, model), held),
    ...(countTokens !== undefined && {
      countTokens(request, model) {
        const exchange = countTokens(request, model);
        return exchange && checked(exchange, held);
      },
    }),
  };
}

function checked<Exchange extends { readonly request: UpstreamRequest }>(
  exchange: Exchange,
  held: readonly NamedState[],
): Exchange {
  const { body } = exchange.request;
  const text = typeof body === "string" ? body : Buffer.from(body).toString();
  const sent = held.find(({ sign }) => text.includes(sign));
  if (sent === undefined) return exchange;
  throw unsupported(
    sent.at,
    `Unsupported parameter: '${sent.at}' names what a provider holds, which accounts of this ` +
      "gateway would share. Send the content itself.",
  );
}
