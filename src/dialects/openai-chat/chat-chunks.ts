import type { ChatEvent, ChunkExtra, ExtraFields, TokenDetails } from "../../domain/chat/answer.ts";
import { writeJsonText } from "../../domain/json-object.ts";
import type { TokenUsage } from "../../domain/usage/usage.ts";
import type { ChatWriter } from "../chat-frames.ts";
import { contentFilterResults, finishWord, reasoningDetail, usageBody } from "./chat-body.ts";

export interface ChatChunkOptions {
  /** `chatcmpl-...`, the same in every chunk. */
  readonly id: string;
  /** Unix seconds. */
  readonly created: number;
  /** The alias the caller asked for. */
  readonly model: string;
  readonly includeUsage: boolean;
  readonly wantsLogprobs: boolean;
}

/**
 * Writes events as `chat.completion.chunk` frames. Role, tool id and tool name go out exactly
 * once: Python's and Go's clients join repeated strings. Reference: recordings of OpenAI's API.
 */
export class ChatChunkWriter implements ChatWriter {
  readonly #options: ChatChunkOptions;
  readonly #choicesWithRole = new Set<number>();
  /** Calls of custom tools, whose fragments have a different shape. */
  readonly #customCalls = new Set<string>();
  /** Number of each choice's thoughts that its upstream expects back. */
  readonly #reasoningBlocks = new Map<number, number>();
  #head: string;
  readonly #tail: string;
  /** What stands around the text in the frames of a choice, from its second delta on. */
  #plain: PlainFrame | undefined;
  #tokenDetails: TokenDetails | undefined;
  #lateExtra: ExtraFields | undefined;

  constructor(options: ChatChunkOptions) {
    this.#options = options;
    this.#head = this.#makeHead(undefined, undefined);
    this.#tail = options.includeUsage ? ',"usage":null}\n\n' : "}\n\n";
  }

  write(events: readonly ChatEvent[]): string {
    let frames = "";
    for (const event of events) frames += this.#writeEvent(event);
    return frames;
  }

  /** An empty chunk, for clients that cannot parse comments. */
  keepAlive(): string {
    return `${this.#head}[]${this.#tail}`;
  }

  /** The end of a whole answer: the usage chunk, if asked for, and `[DONE]`. */
  end(usage: TokenUsage): string {
    const done = "data: [DONE]\n\n";
    if (!this.#options.includeUsage) return done;
    const body = JSON.stringify(usageBody(usage, this.#tokenDetails));
    return `${this.#head}[],"usage":${body}${fieldsAfter(this.#lateExtra)}}\n\n${done}`;
  }

  #writeEvent(event: ChatEvent): string {
    switch (event.type) {
      case "text-delta":
        return this.#textDelta(event);
      case "refusal-delta":
        return this.#delta(event.choice, `"refusal":${writeJsonText(event.text)}`, {
          logprobs:
            event.logprobs && `{"content":null,"refusal":${JSON.stringify(event.logprobs)}}`,
        });
      case "reasoning-delta":
        return this.#delta(event.choice, `"reasoning_content":${writeJsonText(event.text)}`);
      case "reasoning-block":
        return this.#reasoningBlock(event);
      case "tool-call-start":
        if (event.kind === "custom") this.#customCalls.add(`${event.choice} ${event.call}`);
        return this.#delta(event.choice, `"tool_calls":[${toolHeader(event)}]`);
      case "tool-call-delta":
        return this.#delta(event.choice, `"tool_calls":[${this.#toolDelta(event)}]`);
      case "function-call-start": {
        const name = JSON.stringify(event.name);
        return this.#delta(event.choice, `"function_call":{"name":${name},"arguments":""}`);
      }
      case "function-call-delta": {
        const text = writeJsonText(event.arguments);
        return this.#delta(event.choice, `"function_call":{"arguments":${text}}`);
      }
      case "choice-finish":
        return this.#finish(event);
      case "answer-start":
        this.#head = this.#makeHead(event.systemFingerprint, event.serviceTier);
        this.#plain = undefined;
        return "";
      case "usage-report":
        this.#tokenDetails = event.details;
        this.#lateExtra = event.extra;
        return "";
      case "usage-start":
        return "";
    }
  }

  #reasoningBlock({ choice, content }: ReasoningBlock): string {
    const index = this.#reasoningBlocks.get(choice) ?? 0;
    const detail = reasoningDetail(content, index);
    if (detail === undefined) return "";
    this.#reasoningBlocks.set(choice, index + 1);
    return this.#delta(choice, `"reasoning_details":[${JSON.stringify(detail)}]`);
  }

  #textDelta({ choice, text, logprobs, extra }: TextDelta): string {
    const json = writeJsonText(text);
    const content = `"content":${json}`;
    if (logprobs === undefined && extra === undefined) {
      const plain = this.#plain ?? this.#learn(choice);
      if (plain?.choice === choice) return plain.before + json + plain.after;
      return this.#delta(choice, content);
    }
    const written = logprobs && `{"content":${JSON.stringify(logprobs)},"refusal":null}`;
    const delta = extra === undefined ? content : content + fieldsAfter(extra.message);
    return this.#delta(choice, delta, { logprobs: written, extra });
  }

  /** Undefined before the first delta of the choice, which has its role. */
  #learn(choice: number): PlainFrame | undefined {
    if (!this.#choicesWithRole.has(choice)) return undefined;
    const [before = "", after = ""] = this.#delta(choice, `"content":${noText}`).split(noText);
    return (this.#plain = { choice, before, after });
  }

  #delta(choice: number, delta: string, beside = nothingBeside): string {
    const { logprobs = "null", extra } = beside;
    const finish = "null";
    if (this.#choicesWithRole.has(choice)) {
      return this.#choice({ choice, delta, logprobs, finish, extra });
    }
    this.#choicesWithRole.add(choice);
    // OpenAI sends a call's header with the role, and text and refusals after it.
    if (delta.startsWith('"tool_calls"') || delta.startsWith('"function_call"')) {
      return this.#roleChunk(choice, `"content":null,${delta},"refusal":null`);
    }
    const isRefusal = delta.startsWith('"refusal"');
    const fields = isRefusal ? '"content":null,"refusal":""' : emptyText;
    const chunk = this.#choice({ choice, delta, logprobs, finish, extra });
    return this.#roleChunk(choice, fields) + chunk;
  }

  /** The first chunk of a choice; its fields show clients which kind of answer begins. */
  #roleChunk(choice: number, fields: string): string {
    const delta = `"role":"assistant",${fields}`;
    const logprobs = this.#options.wantsLogprobs ? '{"content":[],"refusal":null}' : "null";
    return this.#choice({ choice, delta, logprobs, finish: "null", extra: undefined });
  }

  #finish({ choice, finishReason, guardrail, extra }: FinishEvent): string {
    const role = this.#choicesWithRole.has(choice) ? "" : this.#roleChunk(choice, emptyText);
    const results = guardrail && JSON.stringify(contentFilterResults(guardrail));
    const filter = results === undefined ? "" : `,"content_filter_results":${results}`;
    const finish = `"${finishWord(finishReason)}"${filter}`;
    return role + this.#choice({ choice, delta: "", logprobs: "null", finish, extra });
  }

  #choice({ choice, delta, logprobs, finish, extra }: ChunkChoice): string {
    const ofChoice = extra === undefined ? "" : fieldsAfter(extra.choice);
    const ofAnswer = extra === undefined ? "" : fieldsAfter(extra.answer);
    return (
      `${this.#head}[{"index":${choice},"delta":{${delta}},"logprobs":${logprobs},` +
      `"finish_reason":${finish}${ofChoice}}]${ofAnswer}${this.#tail}`
    );
  }

  #toolDelta(event: Extract<ChatEvent, { type: "tool-call-delta" }>): string {
    const text = writeJsonText(event.arguments) + fieldsAfter(event.extra?.body);
    const after = fieldsAfter(event.extra?.call);
    return this.#customCalls.has(`${event.choice} ${event.call}`)
      ? `{"index":${event.call},"custom":{"input":${text}}${after}}`
      : `{"index":${event.call},"function":{"arguments":${text}}${after}}`;
  }

  #makeHead(fingerprint: string | undefined, serviceTier: string | undefined): string {
    const { id, created, model } = this.#options;
    const head = {
      id,
      object: "chat.completion.chunk",
      created,
      model,
      ...(serviceTier !== undefined && { service_tier: serviceTier }),
      ...(fingerprint !== undefined && { system_fingerprint: fingerprint }),
    };
    return `data: ${JSON.stringify(head).slice(0, -1)},"choices":`;
  }
}

/** JSON has no such character. */
const noText = "\0";
const emptyText = '"content":"","refusal":null';

const nothingBeside: BesideDelta = {};

interface PlainFrame {
  readonly choice: number;
  readonly before: string;
  readonly after: string;
}

interface BesideDelta {
  /** As JSON. */
  readonly logprobs?: string | undefined;
  readonly extra?: ChunkExtra | undefined;
}

interface ChunkChoice {
  readonly choice: number;
  /** The inside of the delta object, as JSON. */
  readonly delta: string;
  /** As JSON. */
  readonly logprobs: string;
  /** As JSON, with the fields after it. */
  readonly finish: string;
  readonly extra: ChunkExtra | undefined;
}

type TextDelta = Extract<ChatEvent, { type: "text-delta" }>;
type ReasoningBlock = Extract<ChatEvent, { type: "reasoning-block" }>;
type FinishEvent = Extract<ChatEvent, { type: "choice-finish" }>;

/** More fields of an object, as JSON behind its others. */
function fieldsAfter(extra: ExtraFields | undefined): string {
  const fields = extra === undefined ? "" : JSON.stringify(extra).slice(1, -1);
  return fields === "" ? "" : `,${fields}`;
}

function toolHeader(event: Extract<ChatEvent, { type: "tool-call-start" }>): string {
  const { call, kind, extra } = event;
  const name = JSON.stringify(event.name);
  const field = kind === "custom" ? "input" : "arguments";
  const body = `"${kind}":{"name":${name},"${field}":""${fieldsAfter(extra?.body)}}`;
  const id = JSON.stringify(event.id);
  return `{"index":${call},"id":${id},"type":"${kind}",${body}${fieldsAfter(extra?.call)}}`;
}
