import type { ContentBlock, ResultBlock } from "../encode/converse-body.ts";
import { invalidRequest } from "../encode/adjustments.ts";
import { ToolIds, type ToolNames } from "./tool-names.ts";
import { inputOf } from "./tool-arguments.ts";
import { textToolField } from "../encode/answer-context.ts";

export interface ToolCall {
  readonly kind: "function" | "custom";
  readonly name: string;
  /** Arguments of a function, or the text for a custom tool. */
  readonly input: string;
}

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
  readonly #names: ToolNames;
  readonly #ids: ToolIds;
  readonly #isText: boolean;
  readonly #open = new Map<string, OpenCall>();
  /** Set for the deprecated `function_call`, which has no id. */
  #openFunction: OpenCall | undefined;

  constructor(names: ToolNames, options: { nineCharacterToolIds: boolean; isText: boolean }) {
    this.#names = names;
    this.#ids = new ToolIds(options.nineCharacterToolIds);
    this.#isText = options.isText;
  }

  call(id: string, call: ToolCall, path: string): ContentBlock {
    if (this.#open.has(id)) {
      throw invalidRequest(path, `${path}: two tool calls have the id '${clip(id)}'.`);
    }
    const sentId = this.#ids.assign(id);
    this.#open.set(id, { sentId, name: call.name });
    return this.#callBlock(sentId, call);
  }

  functionCall(call: ToolCall, path: string): ContentBlock {
    const sentId = this.#ids.assign(`function:${path}`);
    this.#openFunction = { sentId, name: call.name };
    return this.#callBlock(sentId, call);
  }

  /** `content` has no blank texts: a result may be empty, but may not contain them. */
  result(id: string, content: readonly ResultBlock[], path: string): readonly ContentBlock[] {
    const call = this.#open.get(id);
    if (call === undefined) {
      throw invalidRequest(
        path,
        `${path}: the tool_call_id '${clip(id)}' belongs to no open tool call of the ` +
          "assistant's message before it. Send one tool message for each call.",
      );
    }
    this.#open.delete(id);
    return this.#resultBlocks(call, content);
  }

  functionResult(content: readonly ResultBlock[], path: string): readonly ContentBlock[] {
    const call = this.#openFunction;
    if (call === undefined) {
      throw invalidRequest(path, `${path}: a function message must follow a function_call.`);
    }
    this.#openFunction = undefined;
    return this.#resultBlocks(call, content);
  }

  /** Call before anything but a result. */
  checkAnswered(): void {
    if (this.#open.size === 0 && this.#openFunction === undefined) return;
    const ids = [...this.#open.keys()].map((id) => `'${clip(id)}'`);
    const unanswered = ids.length > 0 ? `tool calls ${ids.join(", ")}` : "a function_call";
    throw invalidRequest(
      "messages",
      `Results are missing for ${unanswered}: each call must be answered by a message of its ` +
        "own, directly after the assistant's.",
    );
  }

  #callBlock(sentId: string, { kind, name, input }: ToolCall): ContentBlock {
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
  ): readonly ContentBlock[] {
    if (!this.#isText) return [{ toolResult: { toolUseId: sentId, content } }];
    const texts = content.flatMap((block) => ("text" in block ? [block.text] : []));
    const attached = content.filter((block) => !("text" in block));
    const nothing = attached.length > 0 ? "what follows" : "nothing";
    const returned = texts.length > 0 ? texts.join("\n") : nothing;
    return [{ text: `[The tool ${name} returned: ${returned}]` }, ...attached];
  }
}

/** Callers' ids may be of any length, and messages are logged. */
function clip(id: string): string {
  return id.length > 64 ? `${id.slice(0, 64)}…` : id;
}
