import { eventFrame } from "../../simulator/bedrock/event-frames.ts";
import type { ImportedFamily } from "../../src/upstreams/bedrock/models/model-families.ts";
import { chunkOf, usageChunk, type Counts, type Step } from "./bedrock-answers.ts";

/** The frames of InvokeModel, in which each family of imported models answers in its own words. */

type Form = (text: string, reason: string | null) => object;

const forms: Readonly<Record<ImportedFamily, Form>> = {
  "imported-llama": (generation, stop_reason) => ({
    generation,
    prompt_token_count: null,
    generation_token_count: 1,
    stop_reason,
  }),
  "imported-mistral": (text, stop_reason) => ({ outputs: [{ text, stop_reason }] }),
  "imported-qwen": (text, finish_reason) => ({ choices: [{ index: 0, text, finish_reason }] }),
};

export interface NativeEnd {
  readonly reason: string;
  /** As JSON, and fields behind it. */
  readonly finish: string;
  /** Fields of the last part. */
  readonly fields?: object;
}

/** The pieces of a text, each a chunk, and the last part, which has the counts too. */
export function nativeSteps(
  family: ImportedFamily,
  pieces: readonly string[],
  { reason, finish, fields = {} }: NativeEnd,
  { inputTokens, outputTokens }: Counts,
): readonly Step[] {
  const metrics = { inputTokenCount: inputTokens, outputTokenCount: outputTokens };
  const last = {
    ...forms[family]("", reason),
    ...fields,
    "amazon-bedrock-invocationMetrics": { ...metrics, invocationLatency: 12 },
  };
  const told = { prompt: inputTokens, completion: outputTokens, read: 0, written: 0 };
  return [
    ...pieces.map((text, index) => ({
      at: `the piece ${text}`,
      frame: partFrame(forms[family](text, null)),
      seen: (index === 0 ? opening(family) : "") + piece(family, text),
    })),
    {
      at: "the end",
      frame: partFrame(last),
      seen: chunkOf(family, "", finish) + usageChunk(family, told) + "data: [DONE]\n\n",
    },
  ];
}

const opening = (alias: string): string =>
  chunkOf(alias, '"role":"assistant","content":"","refusal":null');

const piece = (alias: string, text: string): string =>
  chunkOf(alias, `"content":${JSON.stringify(text)}`);

function partFrame(native: object): Uint8Array {
  const bytes = Buffer.from(JSON.stringify(native)).toString("base64");
  return eventFrame("chunk", JSON.stringify({ bytes, p: "abcd" }));
}
