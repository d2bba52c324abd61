import { GatewayError } from "../domain/gateway-error.ts";

/** What the thread is asked: ids as numbers of eight bytes, which can be handed over uncopied. */
export interface TokenQuestion {
  readonly id: number;
  readonly tokens: Float64Array<ArrayBuffer>;
}

/** What it says; undefined for ids that the encoding does not have. */
export interface TokenAnswer {
  readonly id: number;
  readonly text: string | undefined;
}

/**
 * Text of token ids. LangChain's Python client sends `cl100k_base` ids to any embeddings server;
 * only OpenAI's own models read those, so others get the text. The table is large and rarely needed,
 * hence loaded on first use, in a thread that lives on: loading it would hold the event loop for
 * half a second.
 */
export function createTokenDecoder(): (tokens: readonly number[]) => Promise<string> {
  const asked = new Map<number, PromiseWithResolvers<string | undefined>>();
  let thread: Worker | undefined;
  let lastId = 0;
  const start = (): Worker => {
    const started = new Worker(new URL("./decode-tokens-thread.ts", import.meta.url).href);
    started.unref();
    started.onmessage = ({ data }: MessageEvent<TokenAnswer>) => {
      asked.get(data.id)?.resolve(data.text);
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
  return async (tokens) => {
    thread ??= start();
    const id = (lastId += 1);
    const answer = Promise.withResolvers<string | undefined>();
    asked.set(id, answer);
    const question: TokenQuestion = { id, tokens: Float64Array.from(tokens) };
    thread.postMessage(question, [question.tokens.buffer]);
    const text = await answer.promise;
    if (text === undefined) throw unknownTokens();
    return text;
  };
}

function unknownTokens(): GatewayError {
  return new GatewayError("invalid_body", {
    message: "'$.input' is invalid: it has token ids that the cl100k_base encoding does not have.",
    param: "input",
  });
}
