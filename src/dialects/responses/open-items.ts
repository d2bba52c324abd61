/** The items of a streamed response while they grow. */
import type { ItemCall, MessagePart } from "./output-items.ts";

export interface ItemBase {
  readonly id: string;
  readonly index: number;
  /** Undefined until it is done. */
  body: object | undefined;
}

export interface OpenPart {
  readonly type: MessagePart["type"];
  text: string;
  readonly logprobs: unknown[];
  /** The fields that name it in events, as JSON. */
  readonly place: string;
}

export interface Message extends ItemBase {
  readonly type: "message";
  readonly parts: OpenPart[];
}

export interface Thought extends ItemBase {
  readonly type: "reasoning";
  text: string;
  opaque?: string | undefined;
  isRedacted?: true | undefined;
  readonly place: string;
}

export interface Call extends ItemBase {
  readonly type: "call";
  readonly about: ItemCall & { arguments: string };
}

export type Item = Message | Thought | Call;

/** The fields that name an item in events, as JSON. */
export function placeOf({ id, index }: ItemBase): string {
  return `"item_id":"${id}","output_index":${index}`;
}
