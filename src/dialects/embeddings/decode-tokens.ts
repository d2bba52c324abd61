import type { TextInput } from "../../domain/chat/embedding.ts";
import { GatewayError } from "../../domain/errors/gateway-error.ts";

/** Ids as numbers of eight bytes, which can be handed over uncopied; or a text, which stays. */
export type TokenInput = string | Float64Array<ArrayBuffer>;

/** What the thread is asked. */
export interface TokenQuestion {
  readonly id: number;
  readonly inputs: readonly TokenInput[];
  /** Of all texts that it makes. */
  readonly limitBytes: number;
}

/** What it says. */
export interface TokenAnswer {
  readonly id: number;
  readonly texts?: readonly string[];
  /** Why there are none: ids that the encoding does not have, or too much text. */
  readonly problem?: "unknown" | "too long";
}

/** Texts of the inputs of one request, at most so many bytes of them. Throws 400 or 413. */
export type DecodeTokens = (
  inputs: readonly TextInput[],
  limitBytes: number,
) => Promise<readonly string[]>;

/**
 * Text of token ids. LangChain's Python client sends `cl100k_base` ids to any embeddings server;
 * only OpenAI's own models read those, so others get the text. The table is large and rarely needed,
 * hence loaded on first use, in a thread that lives on: loading it would hold the event loop for
 * half a second.
 */
export function createTokenDecoder(): DecodeTokens {
  const asked = new Map<number, PromiseWithResolvers<TokenAnswer>>();
  let thread: Worker | undefined;
  let lastId = 0;
  const start = (): Worker => {
    const started = new Worker(new URL("./decode-tokens-thread.ts", import.meta.url).href);
    started.unref();
    started.onmessage = ({ data }: MessageEvent<TokenAnswer>) => {
      asked.get(data.id)?.resolve(data);
      asked.delete(data.id);
    };
    started.onerror = ({ message }) => {
      thread = undefined;
      started.terminate();
      for (const { reject } of asked.values()) reject(new Error(message));
      asked.clear();
    };
    return started;
  };
  return async (inputs, limitBytes) => {
    thread ??= start();
    const id = (lastId += 1);
    const answer = Promise.withResolvers<TokenAnswer>();
    asked.set(id, answer);
    const tokens = inputs.map((input) =>
      typeof input === "string" ? input : Float64Array.from(input),
    );
    const question: TokenQuestion = { id, inputs: tokens, limitBytes };
    thread.postMessage(
      question,
      tokens.flatMap((input) => (typeof input === "string" ? [] : [input.buffer])),
    );
    const { texts, problem } = await answer.promise;
    if (texts !== undefined) return texts;
    throw problem === "too long" ? tooMuchText(limitBytes) : unknownTokens();
  };
}

function unknownTokens(): GatewayError {
  return new GatewayError("invalid_body", {
    message: "'$.input' is invalid: it has token ids that the cl100k_base encoding does not have.",
    param: "input",
  });
}

function tooMuchText(limitBytes: number): GatewayError {
  return new GatewayError("request_too_large", {
    message:
      `'$.input' is too large: its token ids stand for more than ${limitBytes} bytes of text. ` +
      "Please send fewer in one request.",
    param: "input",
  });
}
