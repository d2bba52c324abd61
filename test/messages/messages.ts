import type { JsonObject } from "../../src/domain/json-object.ts";

/** A message of Anthropic's API as far as tests read it. */
export interface MessageBody {
  readonly id: string;
  readonly model: string;
  readonly content: readonly {
    readonly type: string;
    readonly id?: string;
    readonly text?: string;
    readonly input?: JsonObject;
  }[];
  readonly stop_reason: string;
  readonly usage: Readonly<Record<string, number>>;
}

export function user(content: string) {
  return { role: "user", content };
}

/** The events of a stream; each must be named as its type. */
export function dataOf(frames: string): readonly JsonObject[] {
  return frames
    .split("\n\n")
    .filter((frame) => frame !== "")
    .map((frame) => {
      const [, event, json = ""] = /^event: (\w+)\ndata: ([^\n]*)$/.exec(frame) ?? [];
      const data = JSON.parse(json) as JsonObject;
      if (data["type"] !== event) throw new Error(`${event} has the type ${String(data["type"])}`);
      return data;
    });
}
