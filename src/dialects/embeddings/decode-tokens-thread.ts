import ranks from "gpt-tokenizer/bpeRanks/cl100k_base";
import { Cl100KBase } from "gpt-tokenizer/encodingParams/cl100k_base";
import type { TokenAnswer, TokenInput, TokenQuestion } from "./decode-tokens.ts";

declare const self: Worker;

/** The bytes of each id, which may be parts of characters. */
const bytesOf: (Uint8Array | undefined)[] = ranks.map((token) =>
  typeof token === "string" ? Buffer.from(token) : Uint8Array.from(token),
);
for (const [text, id] of Cl100KBase(ranks).specialTokensEncoder ?? []) {
  bytesOf[id] = Buffer.from(text);
}

self.onmessage = ({ data: { id, inputs, limitBytes } }: MessageEvent<TokenQuestion>) => {
  const answer: TokenAnswer = { id, ...textsOf(inputs, limitBytes) };
  self.postMessage(answer);
};

/** Measures before it decodes: a short id can stand for 128 characters. */
function textsOf(
  inputs: readonly TokenInput[],
  limitBytes: number,
): Pick<TokenAnswer, "texts" | "problem"> {
  let spareBytes = limitBytes;
  const sizes: number[] = [];
  for (const input of inputs) {
    const size = typeof input === "string" ? 0 : sizeOf(input);
    if (size === undefined) return { problem: "unknown" };
    spareBytes -= size;
    sizes.push(size);
  }
  if (spareBytes < 0) return { problem: "too long" };
  const texts = inputs.map((input, index) =>
    typeof input === "string" ? input : textOf(input, sizes[index] ?? 0),
  );
  return { texts };
}

function sizeOf(tokens: Float64Array): number | undefined {
  let size = 0;
  for (const token of tokens) {
    const bytes = bytesOf[token];
    if (bytes === undefined) return undefined;
    size += bytes.byteLength;
  }
  return size;
}

function textOf(tokens: Float64Array, size: number): string {
  const joined = new Uint8Array(size);
  let position = 0;
  for (const token of tokens) {
    const bytes = bytesOf[token];
    if (bytes === undefined) continue;
    joined.set(bytes, position);
    position += bytes.byteLength;
  }
  return new TextDecoder("utf-8", { ignoreBOM: true }).decode(joined);
}
