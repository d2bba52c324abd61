import type {
  AnswerBlock,
  AnswerReasoning,
  AnswerToolCall,
  ChatChoice,
} from "../../domain/chat/answer.ts";
import { flatNameOf, type Tool } from "../../domain/chat/conversation.ts";

/** How the items of one response are written. */
export interface ItemOptions {
  /** `resp_` and 32 hexadecimal digits, which its items share. */
  readonly id: string;
  /** Tools of groups by the name that other wires have for them. */
  readonly grouped: ReadonlyMap<string, Pick<Tool, "name" | "namespace">>;
  readonly hasEncryptedReasoning: boolean;
  /** Gets the ciphertexts of thoughts by the ids of their items, for the store. */
  readonly encrypted: Map<string, string>;
}

export function groupedTools(tools: readonly Tool[]): ItemOptions["grouped"] {
  const grouped = tools.filter(({ namespace }) => namespace !== undefined);
  return new Map(grouped.map((tool) => [flatNameOf(tool), tool]));
}

const prefixes = { message: "msg", reasoning: "rs", function: "fc", custom: "ctc" } as const;
export type ItemKind = keyof typeof prefixes;

/** The id of an item: the same in all events, and another one for each item. */
export function itemId(kind: ItemKind, index: number, { id }: ItemOptions): string {
  return `${prefixes[kind]}_${id.slice("resp_".length)}${index.toString(16).padStart(4, "0")}`;
}

export type ItemStatus = "in_progress" | "completed" | "incomplete";

/** A part of a message, or the summary of a thought. */
export interface Part {
  readonly kind: "text" | "refusal" | "summary";
  text: string;
  readonly logprobs: readonly unknown[];
}

export function partBody({ kind, text, logprobs }: Part): object {
  switch (kind) {
    case "text":
      return { type: "output_text", annotations: [], logprobs, text };
    case "refusal":
      return { type: "refusal", refusal: text };
    case "summary":
      return { type: "summary_text", text };
  }
}

export function messageItem(id: string, status: ItemStatus, parts: readonly Part[]): object {
  return { id, type: "message", status, content: parts.map(partBody), role: "assistant" };
}

export function reasoningItem(
  id: string,
  { text, opaque, isRedacted }: Omit<AnswerReasoning, "type">,
  { hasEncryptedReasoning, encrypted }: ItemOptions,
): object {
  const content = isRedacted === true && opaque !== undefined ? redactedMark + opaque : opaque;
  if (content !== undefined) encrypted.set(id, content);
  return {
    id,
    type: "reasoning",
    ...(hasEncryptedReasoning && content !== undefined && { encrypted_content: content }),
    summary: text === "" ? [] : [{ type: "summary_text", text }],
  };
}

/** Before the ciphertext of a thought that its provider redacted. */
export const redactedMark = "redacted:";

export function callItem(
  id: string,
  call: Pick<AnswerToolCall, "id" | "kind" | "name" | "arguments"> & {
    readonly status: ItemStatus;
  },
  { grouped }: ItemOptions,
) {
  const { kind, status } = call;
  const { name, namespace } = grouped.get(call.name) ?? { name: call.name };
  return {
    id,
    type: kind === "custom" ? "custom_tool_call" : "function_call",
    status,
    [kind === "custom" ? "input" : "arguments"]: call.arguments,
    call_id: call.id ?? "",
    name,
    ...(namespace !== undefined && { namespace }),
  };
}

/** The items of a whole answer. One that ends early does so in its last item. */
export function outputItems(
  { blocks, logprobs, refusalLogprobs }: ChatChoice,
  lastStatus: ItemStatus,
  options: ItemOptions,
): readonly object[] {
  const items: object[] = [];
  let parts: Part[] = [];
  for (const [place, block] of blocks.entries()) {
    const status = place === blocks.length - 1 ? lastStatus : "completed";
    switch (block.type) {
      case "reasoning":
        items.push(reasoningItem(itemId("reasoning", items.length, options), block, options));
        break;
      case "tool-call": {
        const id = itemId(block.kind, items.length, options);
        items.push(callItem(id, { ...block, status }, options));
        break;
      }
      default: {
        const { type: kind, text } = block;
        const last = parts.at(-1);
        const own = kind === "text" ? logprobs : refusalLogprobs;
        if (last?.kind === kind) last.text += text;
        else parts.push({ kind, text, logprobs: own ?? [] });
        // Neighbouring texts and refusals are parts of one message.
        if (isOfMessage(blocks[place + 1])) break;
        items.push(messageItem(itemId("message", items.length, options), status, parts));
        parts = [];
      }
    }
  }
  if (lastStatus === "completed" && blocks.every(({ type }) => type === "reasoning")) {
    // Agents wait for a message or a call.
    const id = itemId("message", items.length, options);
    items.push(messageItem(id, "completed", [{ kind: "text", text: "", logprobs: [] }]));
  }
  return items;
}

function isOfMessage(block: AnswerBlock | undefined): boolean {
  return block?.type === "text" || block?.type === "refusal";
}
