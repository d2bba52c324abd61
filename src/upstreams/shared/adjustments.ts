import type { AdjustedFields } from "../../domain/chat/answer.ts";
import { type Conversation, fieldOf } from "../../domain/chat/conversation.ts";
import { isObject, type JsonObject, listOf } from "../../domain/json-fields.ts";
import { unsupported } from "../../domain/errors/upstream-failure.ts";

/** Collects the fields of one request that are not sent as the caller wrote them. */
export class Adjustments {
  readonly #dropsUnsupported: boolean;
  readonly #fields = new Map<string, string | number>();

  constructor({ dropUnsupported }: { readonly dropUnsupported: boolean }) {
    this.#dropsUnsupported = dropUnsupported;
  }

  get fields(): AdjustedFields {
    return this.#fields;
  }

  /** Changes a field, whatever the operator's setting for unsupported ones. */
  sendAs(field: string, sent: string | number): void {
    this.#fields.set(field, sent);
  }

  /**
   * The model cannot honour a field: it is changed or, by default, dropped if the operator allows
   * it. Otherwise throws `unsupported` with `message`, which explains what to change.
   */
  dropOrRefuse(field: string, message: string, sent: string | number = "dropped"): void {
    if (!this.#dropsUnsupported) throw unsupported(field, message);
    this.sendAs(field, sent);
  }
}

/**
 * Drops or refuses fields that would change the answer and have no equivalent at the provider.
 * Values without effect pass. Hints such as `seed`, `user`, `store` or `verbosity` are ignored: an
 * answer without them still answers the question.
 */
export function checkUnsupported(request: Conversation, adjustments: Adjustments): void {
  const check = (field: string, asksForSomething: boolean): void => {
    if (!asksForSomething) return;
    const message = `This model does not support ${field}. Remove it from the request.`;
    adjustments.dropOrRefuse(field, message);
  };
  for (const [option, asksForSomething] of options) {
    check(fieldOf(request, option), asksForSomething(request.options[option]));
  }
  if (request.wire !== "chat") return;
  for (const [field, asksForSomething] of chatFields) {
    check(field, asksForSomething(request.extra[field]));
  }
}

/** Each option with a test of its value. */
const options = [
  ["presencePenalty", isOtherThanZero],
  ["frequencyPenalty", isOtherThanZero],
  ["logitBias", (value: unknown) => isObject(value) && Object.keys(value).length > 0],
  ["logprobs", (value: unknown) => value === true],
  ["topLogprobs", isOtherThanZero],
] as const;

/** Fields of chat alone. */
const chatFields: readonly (readonly [string, (value: unknown) => boolean])[] = [
  ["modalities", (value) => listOf(value)?.includes("audio") === true],
  ["web_search_options", isObject],
  // Filters the content, which the caller relies on.
  ["moderation", isObject],
];

function isOtherThanZero(value: unknown): boolean {
  return typeof value === "number" && value !== 0;
}

/** Merges two objects, and objects within them. The second one overrides values. */
export function mergeFields(first: JsonObject, second: JsonObject): JsonObject {
  const merged: Record<string, unknown> = { ...first };
  for (const [name, value] of Object.entries(second)) {
    const other = merged[name];
    merged[name] = isObject(other) && isObject(value) ? mergeFields(other, value) : value;
  }
  return merged;
}

/**
 * Whether a text is empty or white space: the provider refuses blocks of such text, even of a
 * single space. Stops at the first visible character.
 */
export function isBlank(text: string): boolean {
  return !/\S/.test(text);
}
