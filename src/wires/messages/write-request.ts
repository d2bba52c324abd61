import type { CacheMark, Conversation } from "../../domain/chat/conversation.ts";
import { type JsonObject, objectOf } from "../../domain/json-fields.ts";
import { cacheControl, type MessagesBlock, withFields } from "./write-blocks.ts";

/** The parts of a Messages request that depend on its model. */
export interface MessagesParts {
  /** The upstream's name of the model. */
  readonly model: string;
  readonly system: readonly MessagesBlock[];
  readonly messages: readonly { readonly role: string; readonly content: MessagesBlock[] }[];
  readonly tools: readonly MessagesTool[];
  readonly toolChoice: JsonObject | undefined;
  /** `thinking` and `output_config`. */
  readonly thinking: JsonObject;
  /** The schema that the answer has. */
  readonly schema: JsonObject | undefined;
  /** Fields that are sent on for a caller that speaks Messages too. */
  readonly forwarded: ReadonlySet<string>;
}

export interface MessagesTool {
  readonly name: string;
  readonly description: string | undefined;
  readonly schema: JsonObject;
  readonly isStrict: boolean;
  readonly cacheMark: CacheMark | undefined;
  /** The caller's other fields. */
  readonly extra: JsonObject | undefined;
}

/** The fields of `POST /v1/messages` that `count_tokens` takes too. */
export function writeMessagesContent(
  { wire, extra }: Conversation,
  parts: MessagesParts,
): JsonObject {
  const { model, messages, toolChoice, schema } = parts;
  const { thinking, output_config: config } = parts.thinking;
  const format = schema === undefined ? undefined : { type: "json_schema", schema };
  const output = { ...objectOf(config), ...(format !== undefined && { format }) };
  const forwarded = wire === "messages" ? parts.forwarded : nothing;
  const tools: JsonObject[] = parts.tools.map((tool) => writeTool(tool, forwarded));
  const system: JsonObject[] = [...parts.system];
  limitMarks([tools, system, ...messages.map(({ content }) => content)]);
  const content = {
    model,
    ...(system.length > 0 && { system }),
    messages,
    ...(tools.length > 0 && { tools }),
    ...(toolChoice !== undefined && { tool_choice: toolChoice }),
    ...(thinking !== undefined && { thinking }),
    ...(Object.keys(output).length > 0 && { output_config: output }),
  };
  return withFields(content, extra, forwarded.intersection(countedFields));
}

const nothing: ReadonlySet<string> = new Set();
/** Without a name in the conversation. */
const countedFields: ReadonlySet<string> = new Set(["context_management", "mcp_servers", "speed"]);

/** The other fields of `POST /v1/messages`. */
export interface MessagesOptions {
  readonly maxTokens: number;
  readonly temperature?: number | undefined;
  readonly topP?: number | undefined;
  readonly topK?: number | undefined;
  readonly stopSequences?: readonly string[] | undefined;
  /** The caller's name of its end user. */
  readonly user?: string | undefined;
  readonly forwarded: ReadonlySet<string>;
}

/** The whole body of `POST /v1/messages` around its content. */
export function writeMessagesRequest(
  { extra, isStreamed, options: { serviceTier }, wire }: Conversation,
  content: JsonObject,
  options: MessagesOptions,
): JsonObject {
  const { maxTokens, temperature, topP, topK, stopSequences, user, forwarded } = options;
  const tier = tiers[serviceTier ?? ""];
  const body = {
    ...content,
    max_tokens: maxTokens,
    ...(temperature !== undefined && { temperature }),
    ...(topP !== undefined && { top_p: topP }),
    ...(topK !== undefined && { top_k: topK }),
    ...(stopSequences !== undefined && { stop_sequences: stopSequences }),
    ...(tier !== undefined && { service_tier: tier }),
    ...(user !== undefined && { metadata: { user_id: user } }),
    ...(isStreamed && { stream: true }),
  };
  return wire === "messages" ? withFields(body, extra, forwarded) : body;
}

/** By OpenAI's names; without the field, the account's priority is used as far as it has any. */
const tiers: Readonly<Record<string, string>> = { default: "standard_only" };

function writeTool(tool: MessagesTool, forwarded: ReadonlySet<string>): JsonObject {
  const { name, description, schema, isStrict, cacheMark, extra } = tool;
  const sent = {
    name,
    ...(description !== undefined && { description }),
    input_schema: schema,
    ...(isStrict && { strict: true }),
    ...(cacheMark !== undefined && cacheControl(cacheMark)),
  };
  return withFields(sent, extra, forwarded);
}

/** The API's limit for one request. */
const mostMarks = 4;

/**
 * Removes the earliest marks if there are too many, because later ones cover more of the prompt. No
 * mark may last longer than one before it, so an hour after five minutes becomes five minutes.
 */
function limitMarks(lists: readonly JsonObject[][]): void {
  let excess = -mostMarks;
  for (const list of lists) for (const { cache_control: mark } of list) if (mark) excess += 1;
  let isShort = false;
  for (const list of lists) {
    for (const [index, { cache_control: mark, ...block }] of list.entries()) {
      if (mark === undefined) continue;
      excess -= 1;
      if (excess >= 0) list[index] = block;
      else if (objectOf(mark)?.["ttl"] !== "1h") isShort = true;
      else if (isShort) list[index] = { ...block, ...cacheControl({ form: "control" }) };
    }
  }
}
