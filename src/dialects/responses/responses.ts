import { checkConversation, checkResponsesRequest } from "./check-request.ts";
import {
  bodyText,
  inputText,
  refersToStored,
  type WholeInput,
  withStored,
} from "./stored-input.ts";
import type { AboutAnswer, ChatSurface, ReadChat, ReadingCall } from "../chat-handler.ts";
import type { CountSurface } from "../count-tokens.ts";
import { type JsonObject, textOf } from "../../domain/json-fields.ts";
import type { StoredResponses } from "../../idempotency/stored-responses.ts";
import { groupedTools } from "../../wires/responses/output-items.ts";
import {
  type ReadResponsesRequest,
  readResponsesRequest,
} from "../../wires/responses/read-request.ts";
import { echoOf, writeResponse } from "../../wires/responses/write-answer.ts";
import {
  type ResponseStreamOptions,
  ResponseStreamWriter,
} from "../../wires/responses/write-stream.ts";

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
  const shared = {
    echo: echoOf(body),
    askedTier: textOf(body["service_tier"]) ?? "default",
    hasEncryptedReasoning: included.encryptedReasoning,
  };
  const begin = ({ callId, created, model }: AboutAnswer): Omit<ResponseStreamOptions, "now"> => {
    // An id that opens what is stored must not be in any log.
    const id = `resp_${isStored ? stored.newDigits() : callId.slice(4)}`;
    const text = isStored ? inputText(input) : undefined;
    const held = text === undefined ? undefined : stored.hold(call, { id, input: text });
    const encrypted = new Map<string, string>();
    const grouped = groupedTools(conversation.tools);
    const store = held && {
      keep: (response: JsonObject) => held.keep(bodyText(response, encrypted)),
      release: () => held.release(),
    };
    return { ...shared, id, createdAt: created, model, grouped, encrypted, store };
  };
  return {
    conversation,
    storedBytes,
    body(answer, about) {
      const options = begin(about);
      const { store } = options;
      try {
        const response = writeResponse(answer, { ...options, usage: about.usage });
        if (store === undefined) return response;
        return store.keep(response).then((isKept) => ({ ...response, store: isKept }));
      } catch (error) {
        store?.release();
        throw error;
      }
    },
    openWriter: (about) => new ResponseStreamWriter({ ...begin(about), now: about.now }),
  };
}
