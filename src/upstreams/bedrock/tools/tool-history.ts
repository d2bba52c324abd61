import {
  type Conversation,
  fieldOf,
  flatNameOf,
  type ToolCallBlock,
  type ToolResultBlock,
} from "../../../domain/chat/conversation.ts";
import type { ContentBlock, ResultBlock } from "../encode/converse-body.ts";
import { invalidRequest } from "../encode/adjustments.ts";
import { ToolIds, type ToolNames } from "./tool-names.ts";
import { inputOf } from "./tool-arguments.ts";
import { textToolField } from "../encode/answer-context.ts";

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
export class ToolHistory {
  readonly #conversation: Conversation;
  readonly #names: ToolNames;
  readonly #ids: ToolIds;
  readonly #isText: boolean;
  readonly #hasErrorStatus: boolean;
  readonly #open = new Map<string, OpenCall>();
  /** Set for the deprecated `function_call`, which has no id. */
  #openFunction: OpenCall | undefined;

  constructor(conversation: Conversation, names: ToolNames, options: HistoryOptions) {
    this.#conversation = conversation;
    this.#names = names;
    this.#ids = new ToolIds(options.nineCharacterToolIds);
    this.#isText = options.isText;
    this.#hasErrorStatus = options.hasErrorStatus;
  }

  /** Whether a call has no result yet. */
  get isOpen(): boolean {
    return this.#open.size > 0 || this.#openFunction !== undefined;
  }

  call(call: ToolCallBlock): ContentBlock {
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
  result(result: ToolResultBlock, content: readonly ResultBlock[]): readonly ContentBlock[] {
    return this.#resultBlocks(this.#close(result), content, result.isError === true);
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

  #callBlock(sentId: string, name: string, call: ToolCallBlock): ContentBlock {
    const { kind, arguments: input } = call;
    if (this.#isText) return { text: `[Called the tool ${name} with the input ${input}]` };
    return {
      toolUse: {
        toolUseId: sentId,
        name: this.#names.sentNameOf(name),
        input: kind === "custom" ? { [textToolField]: input } : inputOf(input),
      },
    };
  }

  #resultBlocks(
    { sentId, name }: OpenCall,
    content: readonly ResultBlock[],
    isError: boolean,
  ): readonly ContentBlock[] {
    if (!this.#isText) {
      if (isError && this.#hasErrorStatus) {
        return [{ toolResult: { toolUseId: sentId, content, status: "error" } }];
      }
      const told = isError ? [failed, ...content] : content;
      return [{ toolResult: { toolUseId: sentId, content: told } }];
    }
    const texts = content.flatMap((block) => ("text" in block ? [block.text] : []));
    const attached = content.filter((block) => !("text" in block));
    const nothing = attached.length > 0 ? "what follows" : "nothing";
    const returned = texts.length > 0 ? texts.join("\n") : nothing;
    const did = isError ? "failed" : "returned";
    return [{ text: `[The tool ${name} ${did}: ${returned}]` }, ...attached];
  }
}

interface HistoryOptions {
  readonly nineCharacterToolIds: boolean;
  readonly isText: boolean;
  /** Whether the model reads the status of a result. */
  readonly hasErrorStatus: boolean;
}

/** Stands in a result for models without a status. */
const failed = { text: "The tool failed." };

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
