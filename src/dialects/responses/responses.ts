import { checkConversation, checkResponsesRequest, withoutReferences } from "./check-request.ts";
import { groupedTools, type ItemOptions, outputItems } from "./output-items.ts";
import { ResponseEventWriter } from "./response-events.ts";
import { echoOf, outcomeOf, responseFields, tierOf } from "./response-object.ts";
import type { ChatSurface } from "../chat-handler.ts";
import type { CountSurface } from "../count-tokens.ts";
import type { JsonObject } from "../../domain/json-fields.ts";
import {
  type ReadResponsesRequest,
  readResponsesRequest,
} from "../../wires/responses/read-request.ts";

/** `POST /v1/responses` */
export const responses: ChatSurface = {
  endpoint: "responses",
  read({ value }) {
    const body = checkResponsesRequest(value);
    const { conversation, included } = readBody(body);
    const grouped = groupedTools(conversation.tools);
    const itemOptions = (callId: string): ItemOptions => ({
      digits: digitsOf(callId),
      grouped,
      hasEncryptedReasoning: included.encryptedReasoning,
    });
    return {
      conversation,
      body(answer, { callId, created, model, usage }) {
        const [choice] = answer.choices;
        const blocks = choice?.blocks ?? [];
        const hasRefusal = blocks.some(({ type }) => type === "refusal");
        const outcome = outcomeOf(choice?.finishReason, hasRefusal);
        const fields = responseFields({
          id: responseId(callId),
          createdAt: created,
          completedAt: created,
          model,
          outcome,
          output: choice === undefined ? [] : outputItems(choice, outcome, itemOptions(callId)),
          usage,
          serviceTier: tierOf(answer.serviceTier, body),
          isStored: false,
        });
        return { ...fields, ...echoOf(body) };
      },
      openWriter: ({ callId, created, model, now }) =>
        new ResponseEventWriter({
          ...itemOptions(callId),
          id: responseId(callId),
          createdAt: created,
          model,
          body,
          echo: echoOf(body),
          now,
        }),
    };
  },
};

/** `POST /v1/responses/input_tokens` */
export const responseTokens: CountSurface = {
  read: (body) => readBody(checkResponsesRequest(body)).conversation,
  body: (inputTokens) => ({ object: "response.input_tokens", input_tokens: inputTokens }),
};

function readBody(body: JsonObject): ReadResponsesRequest {
  const read = readResponsesRequest(withoutReferences(body));
  checkConversation(read.conversation);
  return read;
}

/** Those of `req_` and 32 hexadecimal digits. */
function digitsOf(callId: string): string {
  return callId.slice(4);
}

function responseId(callId: string): string {
  return `resp_${digitsOf(callId)}`;
}
