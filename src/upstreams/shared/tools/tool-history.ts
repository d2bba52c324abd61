import {
  type Conversation,
  fieldOf,
  flatNameOf,
  type ToolCallBlock,
  type ToolResultBlock,
} from "../../../domain/chat/conversation.ts";
import type { BlockWriter } from "../../../wires/block-writer.ts";
import { invalidRequest } from "../../../domain/errors/upstream-failure.ts";
import { ToolIds, type ToolNames } from "./tool-names.ts";
import { inputOf } from "./tool-arguments.ts";
import { textToolField } from "../answers/answer-context.ts";

interface OpenCall {
  readonly sentId: string;
  readonly name: string;
}

/**
 * The calls and results of a conversation, each result matched to its call: the provider refuses a
 * call without a result, and a result without a call.
 *
 * If the request offers no tools, calls and results are written as text. The provider accepts tool
 * blocks only together with tools, and a model that has tools may call them, which the caller has
 * ruled out.
 */
export class ToolHistory<Sent> {
  readonly #conversation: Conversation;
  readonly #writer: BlockWriter<Sent>;
  readonly #names: ToolNames;
  readonly #ids: ToolIds;
  readonly #isText: boolean;
  readonly #open = new Map<string, OpenCall>();
  /** Set for the deprecated `function_call`, which has no id. */
  #openFunction: OpenCall | undefined;

  constructor(conversation: Conversation, writer: BlockWriter<Sent>, options: HistoryOptions) {
    this.#conversation = conversation;
    this.#writer = writer;
    this.#names = options.names;
    this.#ids = new ToolIds(options.nineCharacterToolIds);
    this.#isText = options.isText;
  }

  /** Whether a call has no result yet. */
  get isOpen(): boolean {
    return this.#open.size > 0 || this.#openFunction !== undefined;
  }

  call(call: ToolCallBlock): Sent {
    const { id, at } = call;
    const name = flatNameOf(call);
    if (id === undefined) {
      const sentId = this.#ids.assign(`function:${at}`);
      this.#openFunction = { sentId, name };
      return this.#callBlock(sentId, name, call);
    }
    if (this.#open.has(id)) {
      throw invalidRequest(at, `${at}: two tool calls have the id '${clip(id)}'.`);
    }
    const sentId = this.#ids.assign(id);
    this.#open.set(id, { sentId, name });
    return this.#callBlock(sentId, name, call);
  }

  /** `content` has no blank texts: a result may be empty, but may not contain them. */
  result(result: ToolResultBlock, content: readonly Sent[]): readonly Sent[] {
    return this.#resultBlocks(this.#close(result), content, result);
  }

  /** Takes the call that a result answers. */
  #close({ callId, at }: ToolResultBlock): OpenCall {
    if (callId === undefined) {
      const call = this.#openFunction;
      this.#openFunction = undefined;
      if (call !== undefined) return call;
      throw invalidRequest(at, `${at}: a function message must follow a function_call.`);
    }
    const call = this.#open.get(callId);
    this.#open.delete(callId);
    if (call !== undefined) return call;
    const { idField, oneEach } = words[this.#conversation.wire];
    throw invalidRequest(
      at,
      `${at}: the ${idField} '${clip(callId)}' belongs to no open tool call of the ` +
        `assistant's message before it. ${oneEach}`,
    );
  }

  /** Call before anything but a result. */
  checkAnswered(): void {
    if (!this.isOpen) return;
    const ids = [...this.#open.keys()].map((id) => `'${clip(id)}'`);
    const unanswered = ids.length > 0 ? `tool calls ${ids.join(", ")}` : "a function_call";
    throw invalidRequest(
      fieldOf(this.#conversation, "turns"),
      `Results are missing for ${unanswered}: ${words[this.#conversation.wire].where}, directly ` +
        "after the assistant's.",
    );
  }

  #callBlock(id: string, name: string, call: ToolCallBlock): Sent {
    const { kind, arguments: text } = call;
    if (this.#isText) return this.#writer.text(`[Called the tool ${name} with the input ${text}]`);
    const input = kind === "custom" ? { [textToolField]: text } : inputOf(text);
    return this.#writer.call({ id, name: this.#names.sentNameOf(name), input, from: call });
  }

  #resultBlocks(
    { sentId, name }: OpenCall,
    content: readonly Sent[],
    from: ToolResultBlock,
  ): readonly Sent[] {
    const writer = this.#writer;
    if (!this.#isText) return [writer.result({ id: sentId, content, from })];
    const texts = content.flatMap((block) => writer.textOf(block) ?? []);
    const attached = content.filter((block) => writer.textOf(block) === undefined);
    const nothing = attached.length > 0 ? "what follows" : "nothing";
    const returned = texts.length > 0 ? texts.join("\n") : nothing;
    const did = from.isError === true ? "failed" : "returned";
    return [writer.text(`[The tool ${name} ${did}: ${returned}]`), ...attached];
  }
}

interface HistoryOptions {
  readonly names: ToolNames;
  readonly nineCharacterToolIds: boolean;
  readonly isText: boolean;
}

/** What each wire calls the id of a result's call, and how it answers calls. */
const words = {
  chat: {
    idField: "tool_call_id",
    oneEach: "Send one tool message for each call.",
    where: "each call must be answered by a message of its own",
  },
  responses: {
    idField: "call_id",
    oneEach: "Send one output for each call.",
    where: "each call must be answered by an output of its own",
  },
  messages: {
    idField: "tool_use_id",
    oneEach: "Send one tool_result for each call.",
    where: "each call must be answered by a tool_result in the user's turn",
  },
} as const;

/** Callers' ids may be of any length, and messages are logged. */
function clip(id: string): string {
  return id.length > 64 ? `${id.slice(0, 64)}…` : id;
}
