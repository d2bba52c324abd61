import { GatewayError } from "../../domain/errors/gateway-error.ts";
import {
  isObject,
  type JsonObject,
  nonEmpty,
  objectOf,
  parseObject,
  textOf,
} from "../../domain/json-fields.ts";
import { parsedFactor } from "../../edge/body/read-body.ts";
import {
  mostStoredBytes,
  type ResponseTexts,
  type StoredResponses,
} from "../../idempotency/stored-responses.ts";
import type { ReadingCall } from "../chat-handler.ts";
import { clip } from "../request/checks.ts";
import { itemsOf } from "./check-request.ts";
import { itemType } from "./request-fields.ts";

/** Responses that the references of one request may read, before any limit of its key is asked. */
const mostResponses = 256;

/** The input of a request with what it refers to. */
export interface WholeInput {
  readonly body: JsonObject;
  /** The items of the response that it continues. */
  readonly earlier: readonly unknown[];
  /** Length of what was stored, as JSON. */
  readonly storedBytes: number;
}

/** Whether a body refers to what an earlier call may have stored. */
export function refersToStored(body: JsonObject): boolean {
  return body["previous_response_id"] !== undefined || itemsOf(body["input"]).some(isReference);
}

/**
 * Puts what is stored in place of references. Throws 400 for a response or a call that is not there;
 * a message that is not there is left out, because a client that sends such references does so with
 * store or without. A thought that is not there takes the others with it, as any that is not known.
 */
export async function withStored(
  body: JsonObject,
  call: ReadingCall,
  stored: StoredResponses,
): Promise<WholeInput> {
  const previous = textOf(body["previous_response_id"]);
  const items = itemsOf(body["input"]);
  const references = items.flatMap((item) => (isReference(item) ? [textOf(item["id"]) ?? ""] : []));
  const ids = new Set(references.flatMap((id) => responseOf(id) ?? []));
  if (ids.size > mostResponses && stored.stores(call)) throw tooManyResponses(ids.size);
  const continued = previous === undefined ? undefined : await stored.find(call, [previous], true);
  const before = continued?.get(previous ?? "");
  if (previous !== undefined && before === undefined) throw previousNotFound(previous);
  const found = await stored.find(call, [...ids]);
  const texts = [...(before === undefined ? [] : [before]), ...found.values()];
  const storedBytes = texts.reduce((sum, each) => sum + each.body.length + each.input.length, 0);
  call.memory.takesMore(parsedFactor * storedBytes);
  const outputs = new Map([...found.values()].flatMap(outputOf).map((item) => [item["id"], item]));
  const input = items.map((item, index) => {
    if (!isReference(item)) return item;
    const id = textOf(item["id"]) ?? "";
    const output = outputs.get(id);
    if (output === undefined && !/^(?:rs|msg)_/.test(id)) throw itemNotFound(id, index);
    return output ?? (id.startsWith("rs_") ? lostThought : null);
  });
  return {
    body: typeof body["input"] === "string" ? body : { ...body, input },
    earlier: before === undefined ? [] : [...inputOf(before), ...outputOf(before)],
    storedBytes,
  };
}

const lostThought = { type: "reasoning", summary: [], encrypted_content: "lost" };

function isReference(item: unknown): item is JsonObject {
  return isObject(item) && itemType(item) === "item_reference";
}

/** Items have the digits of their response (`itemId`). */
function responseOf(itemId: string): string | undefined {
  const [, digits] = /^(?:rs|msg|fc|ctc)_([0-9a-f]{32})[0-9a-f]{4}$/.exec(itemId) ?? [];
  return digits && `resp_${digits}`;
}

/** The items of the answer, thoughts with their ciphertexts. */
function outputOf({ body }: ResponseTexts): readonly JsonObject[] {
  const stored = parseObject(body) ?? {};
  const encrypted = objectOf(stored["encrypted"]) ?? {};
  return itemsOf(objectOf(stored["response"])?.["output"])
    .filter(isObject)
    .map((item) => {
      const content = nonEmpty(encrypted[textOf(item["id"]) ?? ""]);
      return content === undefined ? item : { ...item, encrypted_content: content };
    });
}

function inputOf({ input }: ResponseTexts): readonly unknown[] {
  return itemsOf(parseObject(input)?.["items"]);
}

/**
 * What is stored of a request, as JSON: all items that the model read. Undefined if it is too large
 * to be stored, which is found without writing it.
 */
export function inputText({ body, earlier }: WholeInput): string | undefined {
  const { input } = body;
  const own = typeof input === "string" ? [{ role: "user", content: input }] : itemsOf(input);
  const items = [...earlier, ...own.filter((item) => item !== null)];
  if (lengthOfTexts(items, mostStoredBytes) > mostStoredBytes) return undefined;
  return JSON.stringify({ items });
}

/** Characters of the texts in a value: its JSON has at least as many. Counts on only up to `most`. */
function lengthOfTexts(value: unknown, most: number): number {
  if (typeof value === "string") return value.length;
  if (typeof value !== "object" || value === null) return 0;
  let length = 0;
  for (const each of Object.values(value)) {
    length += lengthOfTexts(each, most - length);
    if (length > most) break;
  }
  return length;
}

/** What is stored of its answer, as JSON. `encrypted` has ciphertexts by the ids of their items. */
export function bodyText(response: JsonObject, encrypted: ReadonlyMap<string, string>): string {
  return JSON.stringify({ response, encrypted: Object.fromEntries(encrypted) });
}

/** The response as its caller got it. */
export function storedResponse({ body }: ResponseTexts): JsonObject {
  return objectOf(parseObject(body)?.["response"]) ?? {};
}

function previousNotFound(id: string): GatewayError {
  return new GatewayError("previous_response_not_found", {
    message:
      `Previous response with id '${clip(id)}' not found. Responses are kept for the time of the ` +
      "key's plan, 1 hour by default, and not at all with 'store: false'.",
    param: "previous_response_id",
  });
}

function tooManyResponses(count: number): GatewayError {
  return new GatewayError("invalid_body", {
    message:
      `Invalid 'input': its item references are to ${count} stored responses, and at most ` +
      `${mostResponses} may be. Send the items themselves in place of references.`,
    param: "input",
  });
}

function itemNotFound(id: string, index: number): GatewayError {
  return new GatewayError("invalid_body", {
    message:
      `Item with id '${clip(id)}' not found. Items are not persisted when \`store\` is set to ` +
      "false. Send the item itself in place of the reference.",
    param: `input[${index}].id`,
  });
}
