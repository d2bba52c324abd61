import { checkConversation, checkResponsesRequest } from "./check-request.ts";
import { groupedTools, type ItemOptions, outputItems } from "./output-items.ts";
import { ResponseEventWriter } from "./response-events.ts";
import { askedTier, echoOf, outcomeOf, responseFields } from "./response-object.ts";
import {
  bodyText,
  inputText,
  refersToStored,
  type WholeInput,
  withStored,
} from "./stored-input.ts";
import type { ChatSurface, ReadChat, ReadingCall } from "../chat-handler.ts";
import type { CountSurface } from "../count-tokens.ts";
import type { JsonObject } from "../../domain/json-fields.ts";
import type { HeldResponse, StoredResponses } from "../../idempotency/stored-responses.ts";
import {
  type ReadResponsesRequest,
  readResponsesRequest,
} from "../../wires/responses/read-request.ts";

interface ResponsesParts {
  readonly responses: StoredResponses;
}

/** `POST /v1/responses` */
export function createResponses({ responses: stored }: ResponsesParts): ChatSurface {
  return {
    endpoint: "responses",
    read({ value }, call) {
      const input = wholeInput(checkResponsesRequest(value), call, stored);
      if (input instanceof Promise) return input.then((whole) => readChat(whole, call, stored));
      return readChat(input, call, stored);
    },
  };
}

/** `POST /v1/responses/input_tokens` */
export function createResponseTokens({ responses: stored }: ResponsesParts): CountSurface {
  return {
    read({ value }, call) {
      const input = wholeInput(checkResponsesRequest(value), call, stored);
      if (input instanceof Promise) return input.then((whole) => readInput(whole).conversation);
      return readInput(input).conversation;
    },
    body: (inputTokens) => ({ object: "response.input_tokens", input_tokens: inputTokens }),
  };
}

function wholeInput(
  body: JsonObject,
  call: ReadingCall,
  stored: StoredResponses,
): WholeInput | Promise<WholeInput> {
  if (refersToStored(body)) return withStored(body, call, stored);
  return { body, earlier: [], storedBytes: 0 };
}

function readInput({ body, earlier }: WholeInput): ReadResponsesRequest {
  const read = readResponsesRequest(body, earlier);
  checkConversation(read.conversation);
  return read;
}

function readChat(input: WholeInput, call: ReadingCall, stored: StoredResponses): ReadChat {
  const { body, storedBytes } = input;
  const { conversation, included } = readInput(input);
  const isStored = body["store"] !== false && stored.stores(call);
  const begin = (callId: string): BegunResponse => {
    // An id that opens what is stored must not be in any log.
    const digits = isStored ? stored.newDigits() : callId.slice(4);
    const id = `resp_${digits}`;
    const hasEncryptedReasoning = included.encryptedReasoning;
    const grouped = groupedTools(conversation.tools);
    const text = isStored ? inputText(input) : undefined;
    const held = text === undefined ? undefined : stored.hold(call, { id, input: text });
    return { id, held, digits, grouped, hasEncryptedReasoning, encrypted: new Map() };
  };
  const shared = { echo: echoOf(body), askedTier: askedTier(body) };
  return {
    conversation,
    storedBytes,
    body(answer, { callId, created, model, usage }) {
      const { id, held, ...options } = begin(callId);
      try {
        const [choice] = answer.choices;
        const blocks = choice?.blocks ?? [];
        const hasRefusal = blocks.some(({ type }) => type === "refusal");
        const outcome = outcomeOf(choice?.finishReason, hasRefusal);
        const fields = responseFields({
          id,
          createdAt: created,
          completedAt: created,
          model,
          outcome,
          output: choice === undefined ? [] : outputItems(choice, outcome, options),
          usage,
          serviceTier: answer.serviceTier ?? shared.askedTier,
          isStored: held !== undefined,
        });
        const response = { ...fields, ...shared.echo };
        if (held === undefined) return response;
        const keeping = held.keep(bodyText(response, options.encrypted));
        return keeping.then((store) => ({ ...response, store }));
      } catch (error) {
        held?.release();
        throw error;
      }
    },
    openWriter: ({ callId, created, model, now }) =>
      new ResponseEventWriter({ ...shared, ...begin(callId), createdAt: created, model, now }),
  };
}

interface BegunResponse extends ItemOptions {
  readonly id: string;
  readonly held: HeldResponse | undefined;
}
