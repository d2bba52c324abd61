import type { ChunkExtra, ExtraFields, TokenDetails } from "../../domain/chat/answer.ts";
import { writeJsonText } from "../../domain/json-object.ts";
import type { TokenUsage } from "../../domain/usage/usage.ts";
import { type AnswerOptions, type EventOf, StreamWriter } from "../stream-writer.ts";
import { contentFilterResults, finishWord, reasoningDetail, writeUsage } from "./write-answer.ts";

export interface CompletionStreamOptions extends AnswerOptions {
  readonly includeUsage: boolean;
  readonly wantsLogprobs: boolean;
}

/**
 * Writes events as `chat.completion.chunk` frames. Role, tool id and tool name go out exactly
 * once: Python's and Go's clients join repeated strings. Reference: recordings of OpenAI's API.
 */
export class CompletionStreamWriter extends StreamWriter {
  readonly #options: CompletionStreamOptions;
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

  constructor(options: CompletionStreamOptions) {
    super({ choices: true });
    this.#options = options;
    this.#head = this.#makeHead(undefined, undefined);
    this.#tail = options.includeUsage ? ',"usage":null}\n\n' : "}\n\n";
  }

  keepAlive(): string {
    return `${this.#head}[]${this.#tail}`;
  }

  /** The usage chunk, if asked for, and `[DONE]`. */
  end(usage: TokenUsage): string {
    const done = "data: [DONE]\n\n";
    if (!this.#options.includeUsage) return done;
    const body = JSON.stringify(writeUsage(usage, this.#tokenDetails));
    return `${this.#head}[],"usage":${body}${fieldsAfter(this.#lateExtra)}}\n\n${done}`;
  }

  protected text({ choice, text, logprobs, extra }: EventOf<"text-delta">): void {
    const json = writeJsonText(text);
    if (logprobs === undefined && extra === undefined) {
      const plain = this.#plain ?? this.#learn(choice);
      if (plain?.choice === choice) this.frames += plain.before + json + plain.after;
      else this.#delta(choice, `"content":${json}`);
      return;
    }
    const written = logprobs && `{"content":${JSON.stringify(logprobs)},"refusal":null}`;
    const delta = `"content":${json}${fieldsAfter(extra?.message)}`;
    this.#delta(choice, delta, { logprobs: written, extra });
  }

  protected refusal({ choice, text, logprobs }: EventOf<"refusal-delta">): void {
    this.#delta(choice, `"refusal":${writeJsonText(text)}`, {
      logprobs: logprobs && `{"content":null,"refusal":${JSON.stringify(logprobs)}}`,
    });
  }

  protected thought({ choice, text }: EventOf<"reasoning-delta">): void {
    this.#delta(choice, `"reasoning_content":${writeJsonText(text)}`);
  }

  protected thoughtEnd({ choice, content }: EventOf<"reasoning-block">): void {
    const index = this.#reasoningBlocks.get(choice) ?? 0;
    const detail = reasoningDetail(content, index);
    if (detail === undefined) return;
    this.#reasoningBlocks.set(choice, index + 1);
    this.#delta(choice, `"reasoning_details":[${JSON.stringify(detail)}]`);
  }

  protected callStart({ choice, call, id, kind, name, extra }: EventOf<"tool-call-start">): void {
    if (kind === "custom") this.#customCalls.add(`${choice} ${call}`);
    const field = kind === "custom" ? "input" : "arguments";
    const named = `"name":${JSON.stringify(name)},"${field}":""${fieldsAfter(extra?.body)}`;
    const head = `"index":${call},"id":${JSON.stringify(id)},"type":"${kind}"`;
    this.#delta(choice, `"tool_calls":[{${head},"${kind}":{${named}}${fieldsAfter(extra?.call)}}]`);
  }

  protected callDelta(event: EventOf<"tool-call-delta">): void {
    const { choice, call, extra } = event;
    const text = writeJsonText(event.arguments) + fieldsAfter(extra?.body);
    const body = this.#customCalls.has(`${choice} ${call}`)
      ? `"custom":{"input":${text}}`
      : `"function":{"arguments":${text}}`;
    this.#delta(choice, `"tool_calls":[{"index":${call},${body}${fieldsAfter(extra?.call)}}]`);
  }

  protected override functionStart({ choice, name }: EventOf<"function-call-start">): void {
    this.#delta(choice, `"function_call":{"name":${JSON.stringify(name)},"arguments":""}`);
  }

  protected override functionDelta(event: EventOf<"function-call-delta">): void {
    this.#delta(event.choice, `"function_call":{"arguments":${writeJsonText(event.arguments)}}`);
  }

  protected choiceEnd({ choice, finishReason, guardrail, extra }: EventOf<"choice-finish">): void {
    if (!this.#choicesWithRole.has(choice)) this.#roleChunk(choice, emptyText);
    const results = guardrail && JSON.stringify(contentFilterResults(guardrail));
    const filter = results === undefined ? "" : `,"content_filter_results":${results}`;
    const finish = `"${finishWord(finishReason)}"${filter}`;
    this.frames += this.#choice({ choice, delta: "", logprobs: "null", finish, extra });
  }

  protected override answerStart(event: EventOf<"answer-start">): void {
    this.#head = this.#makeHead(event.systemFingerprint, event.serviceTier);
    this.#plain = undefined;
  }

  protected override usageReport({ details, extra }: EventOf<"usage-report">): void {
    this.#tokenDetails = details;
    this.#lateExtra = extra;
  }

  /** Undefined before the first delta of the choice, which has its role. */
  #learn(choice: number): PlainFrame | undefined {
    if (!this.#choicesWithRole.has(choice)) return undefined;
    const frame = this.#choice({ ...plainChoice, choice, delta: `"content":${noText}` });
    const [before = "", after = ""] = frame.split(noText);
    return (this.#plain = { choice, before, after });
  }

  #delta(choice: number, delta: string, { logprobs = "null", extra } = nothingBeside): void {
    if (!this.#choicesWithRole.has(choice)) {
      this.#choicesWithRole.add(choice);
      // OpenAI sends a call's header with the role, and text and refusals after it.
      if (delta.startsWith('"tool_calls"') || delta.startsWith('"function_call"')) {
        this.#roleChunk(choice, `"content":null,${delta},"refusal":null`);
        return;
      }
      const isRefusal = delta.startsWith('"refusal"');
      this.#roleChunk(choice, isRefusal ? '"content":null,"refusal":""' : emptyText);
    }
    this.frames += this.#choice({ choice, delta, logprobs, finish: "null", extra });
  }

  /** The first chunk of a choice; its fields show clients which kind of answer begins. */
  #roleChunk(choice: number, fields: string): void {
    const delta = `"role":"assistant",${fields}`;
    const logprobs = this.#options.wantsLogprobs ? '{"content":[],"refusal":null}' : "null";
    this.frames += this.#choice({ ...plainChoice, choice, delta, logprobs });
  }

  #choice({ choice, delta, logprobs, finish, extra }: ChunkChoice): string {
    return (
      `${this.#head}[{"index":${choice},"delta":{${delta}},"logprobs":${logprobs},` +
      `"finish_reason":${finish}${fieldsAfter(extra?.choice)}}]${fieldsAfter(extra?.answer)}` +
      this.#tail
    );
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

const nothingBeside: BesideDelta = {};
const plainChoice = { logprobs: "null", finish: "null", extra: undefined };

/** More fields of an object, as JSON behind its others. */
function fieldsAfter(extra: ExtraFields | undefined): string {
  const fields = extra === undefined ? "" : JSON.stringify(extra).slice(1, -1);
  return fields === "" ? "" : `,${fields}`;
}
