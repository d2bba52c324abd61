import { decode } from "gpt-tokenizer/encoding/cl100k_base";
import type { TokenAnswer, TokenQuestion } from "./decode-tokens.ts";

declare const self: Worker;

self.onmessage = ({ data: { id, tokens } }: MessageEvent<TokenQuestion>) => {
  const answer: TokenAnswer = { id, text: textOf(tokens) };
  self.postMessage(answer);
};

function textOf(tokens: Float64Array): string | undefined {
  try {
    return decode(tokens);
  } catch {
    return undefined;
  }
}
