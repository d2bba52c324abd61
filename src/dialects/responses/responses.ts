import { checkConversation } from "../request/check-conversation.ts";
import { checkResponsesRequest, requireInput } from "./check-request.ts";
import {
  bodyText,
  inputText,
  refersToStored,
  type WholeInput,
  withStored,
} from "./stored-input.ts";
import type { ChatSurface, ReadChat, ReadingCall } from "../chat-handler.ts";
import type { CountSurface } from "../count-tokens.ts";
import { textOf } from "../../domain/json-fields.ts";
import type { HeldResponse, StoredResponses } from "../../idempotency/stored-responses.ts";
import { groupedTools } from "../../wires/responses/output-items.ts";
import { includes, readResponsesRequest } from "../../wires/responses/read-request.ts";
import {
  echoOf,
  type ResponseOptions,
  type ResponseStore,
  writeResponse,
} from "../../wires/responses/write-answer.ts";
import { ResponseStreamWriter } from "../../wires/responses/write-stream.ts";
import type { AnswerOptions } from "../../wires/stream-writer.ts";

interface ResponsesParts {
  readonly responses: StoredResponses;
}

/** `POST /v1/responses` */
export function createResponses({ responses: stored }: ResponsesParts): ChatSurface {
  return {
    endpoint: "responses",
    read({ value }, call) {
      const body = checkResponsesRequest(value);
      if (!refersToStored(body)) {
        return readChat({ body, earlier: [], storedBytes: 0 }, call, stored);
      }
      return withStored(body, call, stored).then((input) => readChat(input, call, stored));
    },
  };
}

/** `POST /v1/responses/input_tokens` */
export function createResponseTokens(parts: ResponsesParts): CountSurface {
  const responses = createResponses(parts);
  return {
    read: (body, call) => responses.read(body, call),
    body: (inputTokens) => ({ object: "response.input_tokens", input_tokens: inputTokens }),
  };
}

function readChat(input: WholeInput, call: ReadingCall, stored: StoredResponses): ReadChat {
  const { body, earlier, storedBytes } = input;
  const conversation = readResponsesRequest(body, earlier);
  requireInput(conversation);
  checkConversation(conversation);
  const isStored = body["store"] !== false && stored.stores(call);
  const shared = {
    echo: echoOf(body),
    askedTier: textOf(body["service_tier"]) ?? "default",
    hasEncryptedReasoning: includes(body, "reasoning.encrypted_content"),
  };
  const begin = ({ id: callId, created, model }: AnswerOptions): ResponseOptions => {
    // An id that opens what is stored must not be in any log.
    const id = `resp_${isStored ? stored.newDigits() : callId.slice(4)}`;
    const text = isStored ? inputText(input) : undefined;
    const held = text === undefined ? undefined : stored.hold(call, { id, input: text });
    const encrypted = new Map<string, string>();
    const grouped = groupedTools(conversation.tools);
    const store = held && storeOf(held, encrypted);
    return { ...shared, id, created, model, grouped, encrypted, store };
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

/** Outside `readChat`: its closures would keep the request for as long as the stream is open. */
function storeOf(held: HeldResponse, encrypted: ReadonlyMap<string, string>): ResponseStore {
  return {
    keep: (response) => held.keep(bodyText(response, encrypted)),
    release: () => held.release(),
  };
}
