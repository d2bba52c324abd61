/** Answers in OpenAI's wire format, made once: the upstream must cost less than a gateway. */

export const content =
  "A gateway stands between those who call and those who answer. It knows who calls, counts what " +
  "is used, and passes on the rest as it came.";

/** Of a tool that the suite's requests describe. */
export const toolCall = {
  id: "call_static",
  type: "function",
  function: { name: "search_library_3", arguments: '{"query":"gateways","limit":10}' },
};

export function chatBody(
  model: string,
  message: { readonly content: string | null; readonly tool_calls?: readonly object[] } = {
    content,
  },
): string {
  return JSON.stringify({
    id: "chatcmpl-static",
    object: "chat.completion",
    created: 1_750_000_000,
    model,
    choices: [
      {
        index: 0,
        message: { role: "assistant", ...message, refusal: null, annotations: [] },
        logprobs: null,
        finish_reason: message.tool_calls === undefined ? "stop" : "tool_calls",
      },
    ],
    usage: {
      ...usage,
      prompt_tokens_details: { cached_tokens: 0, audio_tokens: 0 },
      completion_tokens_details: { reasoning_tokens: 0, audio_tokens: 0 },
    },
    service_tier: "default",
    system_fingerprint: "fp_static",
  });
}

export interface StreamFrames {
  readonly first: Buffer;
  readonly text: Buffer;
  /** The end of a stream: finish, usage and `[DONE]`. */
  readonly last: Buffer;
}

export function streamFrames(model: string): StreamFrames {
  const frame = (choices: readonly object[], extra: object): string => {
    const head = { id: "chatcmpl-static", object: "chat.completion.chunk", created: 1_750_000_000 };
    return `data: ${JSON.stringify({ ...head, model, choices, ...extra })}\n\n`;
  };
  const choice = (delta: object, finish: string | null): object[] => [
    { index: 0, delta, logprobs: null, finish_reason: finish },
  ];
  const none = { usage: null };
  return {
    first: Buffer.from(
      frame(choice({ role: "assistant", content: "", refusal: null }, null), none),
    ),
    text: Buffer.from(frame(choice({ content: " answer" }, null), none)),
    last: Buffer.from(`${frame(choice({}, "stop"), none)}${frame([], { usage })}data: [DONE]\n\n`),
  };
}

export interface EmbeddingsShape {
  readonly model: string;
  readonly inputs: number;
  readonly dimensions: number;
}

/** Base64 of little-endian float32 values, as OpenAI's clients ask for by default. */
export function embeddingsBody({ model, inputs, dimensions }: EmbeddingsShape): string {
  const vector = Float32Array.from({ length: dimensions }, (_, index) => Math.sin(index) / 32);
  const embedding = Buffer.from(vector.buffer).toString("base64");
  const data = Array.from({ length: inputs }, (_, index) => ({
    object: "embedding",
    index,
    embedding,
  }));
  const total = inputs * 4;
  return JSON.stringify({
    object: "list",
    data,
    model,
    usage: { prompt_tokens: total, total_tokens: total },
  });
}

const usage = { prompt_tokens: 24, completion_tokens: 30, total_tokens: 54 };
