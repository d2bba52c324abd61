import type {
  AnswerBlock,
  AnswerReasoning,
  ChatChoice,
  TokenLogprobs,
} from "../../domain/chat/answer.ts";
import { flatNameOf, type Tool, type ToolKind } from "../../domain/chat/conversation.ts";
import { writeEncrypted } from "../../wires/responses/read-items.ts";
import type { Outcome } from "./response-object.ts";

/** How the items of one response are written. */
export interface ItemOptions {
  /** The 32 hexadecimal digits of the response, which its items share. */
  readonly digits: string;
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

/** The id of an item: the same in all events, and another one for each item. */
export function itemId(
  kind: keyof typeof prefixes,
  index: number,
  { digits }: ItemOptions,
): string {
  return `${prefixes[kind]}_${digits}${index.toString(16).padStart(4, "0")}`;
}

export type ItemStatus = "in_progress" | "completed" | "incomplete";

export interface MessagePart {
  readonly type: "text" | "refusal";
  readonly text: string;
  readonly logprobs: TokenLogprobs;
}

export function partBody({ type, text, logprobs }: MessagePart): object {
  return type === "refusal"
    ? { type: "refusal", refusal: text }
    : { type: "output_text", annotations: [], logprobs, text };
}

export function messageItem(id: string, status: ItemStatus, parts: readonly MessagePart[]): object {
  return { id, type: "message", status, content: parts.map(partBody), role: "assistant" };
}

export function reasoningItem(
  id: string,
  thought: Omit<AnswerReasoning, "type">,
  { hasEncryptedReasoning, encrypted }: ItemOptions,
): object {
  const content = writeEncrypted(thought);
  if (content !== undefined) encrypted.set(id, content);
  const { text } = thought;
  return {
    id,
    type: "reasoning",
    ...(hasEncryptedReasoning && content !== undefined && { encrypted_content: content }),
    summary: text === "" ? [] : [{ type: "summary_text", text }],
  };
}

export interface ItemCall {
  readonly id: string;
  readonly kind: ToolKind;
  /** As the upstream has it. */
  readonly name: string;
  readonly arguments: string;
}

export function callItem(
  id: string,
  call: ItemCall & { readonly status: ItemStatus },
  { grouped }: ItemOptions,
): object {
  const { kind, status } = call;
  const { name, namespace } = grouped.get(call.name) ?? { name: call.name };
  return {
    id,
    type: kind === "custom" ? "custom_tool_call" : "function_call",
    status,
    [kind === "custom" ? "input" : "arguments"]: call.arguments,
    call_id: call.id,
    name,
    ...(namespace !== undefined && { namespace }),
  };
}

/** The items of a whole answer. One that ends early does so in its last item. */
export function outputItems(
  { blocks, logprobs, refusalLogprobs }: ChatChoice,
  outcome: Outcome,
  options: ItemOptions,
): readonly object[] {
  const items: object[] = [];
  const groups = groupBlocks(blocks);
  groups.forEach((group, index) => {
    const status = index === groups.length - 1 ? outcome.status : "completed";
    const [first] = group;
    switch (first?.type) {
      case "reasoning":
        items.push(reasoningItem(itemId("reasoning", index, options), first, options));
        break;
      case "tool-call": {
        const call = { ...first, id: first.id ?? "", status };
        items.push(callItem(itemId(call.kind, index, options), call, options));
        break;
      }
      default:
        items.push(
          messageItem(
            itemId("message", index, options),
            status,
            partsOf(group, { text: logprobs, refusal: refusalLogprobs }),
          ),
        );
    }
  });
  if (outcome.status === "completed" && items.length === thoughtsIn(groups)) {
    // Agents wait for a message or a call.
    const id = itemId("message", items.length, options);
    items.push(messageItem(id, "completed", [{ type: "text", text: "", logprobs: [] }]));
  }
  return items;
}

type BlockGroup = readonly AnswerBlock[];

function thoughtsIn(groups: readonly BlockGroup[]): number {
  return groups.filter(([first]) => first?.type === "reasoning").length;
}

/** Neighbouring texts and refusals are parts of one message; empty ones are nothing. */
function groupBlocks(blocks: readonly AnswerBlock[]): readonly BlockGroup[] {
  const groups: AnswerBlock[][] = [];
  for (const block of blocks) {
    if (block.type === "reasoning" || block.type === "tool-call") {
      groups.push([block]);
      continue;
    }
    if (block.text === "") continue;
    const last = groups.at(-1);
    if (last?.[0]?.type === "text" || last?.[0]?.type === "refusal") last.push(block);
    else groups.push([block]);
  }
  return groups;
}

/** Neighbouring texts are one part, as in a stream, whose events do not tell them apart. */
function partsOf(
  group: BlockGroup,
  logprobs: Readonly<Record<MessagePart["type"], TokenLogprobs | undefined>>,
): readonly MessagePart[] {
  const parts: MessagePart[] = [];
  for (const block of group) {
    if (block.type !== "text" && block.type !== "refusal") continue;
    const { type, text } = block;
    const last = parts.at(-1);
    if (last?.type === type) parts[parts.length - 1] = { ...last, text: last.text + text };
    else parts.push({ type, text, logprobs: logprobs[type] ?? [] });
  }
  return parts;
}
