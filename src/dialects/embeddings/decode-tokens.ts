import type { TextInput } from "../../domain/chat/embedding.ts";
import { GatewayError } from "../../domain/errors/gateway-error.ts";

/** Ids as an array that is transferred without a copy, or a text, which is returned as it is. */
export type TokenInput = string | Float64Array<ArrayBuffer>;

/** A message to the thread. */
export interface TokenQuestion {
  readonly id: number;
  readonly inputs: readonly TokenInput[];
  /** Limit on all decoded texts together. */
  readonly limitBytes: number;
}

/** A message from the thread. */
export interface TokenAnswer {
  readonly id: number;
  readonly texts?: readonly string[];
  /** Unknown ids, or too much text. */
  readonly problem?: "unknown" | "too long";
}

/** Decodes the inputs of one request up to a number of bytes. Throws 400 or 413. */
export type DecodeTokens = (
  inputs: readonly TextInput[],
  limitBytes: number,
) => Promise<readonly string[]>;

/**
 * Decodes token ids. LangChain's Python client sends `cl100k_base` ids to any embeddings server,
 * but only OpenAI's own models read them. The table is large and rarely needed. It is loaded on
 * first use, in a thread of its own, because loading would block the event loop for half a second.
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
