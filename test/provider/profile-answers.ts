import { chunk, completion, usageChunk } from "./provider.ts";

/** One answer of a known server, and what a caller must get of it. */
export interface ServerAnswer {
  readonly profile: string;
  readonly name: string;
  /** Whose report has it, or that it is written from the documentation. */
  readonly source: string;
  /** A body that is not JSON is a stream. */
  readonly body: string | object;
  readonly text?: string;
  readonly thoughts?: string;
  /** Name and arguments of each. */
  readonly calls?: readonly string[];
  /** Input, output and thoughts of the usage. */
  readonly usage?: readonly [number, number, number];
  readonly finish?: string;
}

const documented = "written from the documentation";

function stream(...events: readonly (object | string)[]): string {
  const lines = events.map((event) =>
    typeof event === "string" ? event : `data: ${JSON.stringify(event)}`,
  );
  return [...lines, "data: [DONE]"].map((line) => `${line}\n\n`).join("");
}

const stop = (reason = "stop"): object => chunk({}, { finish_reason: reason });
const counts = (prompt: number, completion: number, more: object = {}): object =>
  usageChunk({
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
    ...more,
  });
const call = (index: number, id: string | undefined, name: string | null, args: string | null) =>
  chunk({ tool_calls: [{ index, id, type: "function", function: { name, arguments: args } }] });
const mark = { extra_content: { google: { thought: true } } };
const two = ['look {"at":"a"}', 'look {"at":"b"}'];

export const serverAnswers: readonly ServerAnswer[] = [
  {
    profile: "azure",
    name: "filter results before, beside and after the answer",
    source: documented,
    body: stream(
      { ...usageChunk({}), usage: null, prompt_filter_results: [{ prompt_index: 0 }] },
      chunk({ content: "Hi" }, { content_filter_results: {} }),
      stop(),
      counts(9, 2),
    ),
    text: "Hi",
    usage: [9, 2, 0],
  },
  {
    profile: "gemini",
    name: "a stream of calls that ends with stop, with empty ids and one index",
    source: "googleapis/python-genai#2868, microsoft/autogen#4878, su-kaka/gcli2api#406",
    body: stream(
      call(0, "", "look", '{"at":"a"}'),
      call(0, "", "look", '{"at":"b"}'),
      stop(),
      usageChunk({ prompt_tokens: 21, completion_tokens: 0, total_tokens: 81 }),
    ),
    calls: two,
    finish: "tool_calls",
    usage: [21, 60, 60],
  },
  {
    profile: "gemini",
    name: "thoughts between tags with a mark",
    source: "decolua/9router#1749; the form from streams of gemini-2.5-flash and gemma-4",
    body: stream(
      chunk({ content: "<thought>Defin", ...mark }),
      chunk({ content: "ing it.\n", ...mark }),
      chunk({ content: "</thought>Hello" }),
      chunk({ content: " there" }),
      stop(),
    ),
    thoughts: "Defining it.\n",
    text: "Hello there",
  },
  {
    profile: "gemini",
    name: "thoughts whose tags are split, after a text",
    source: "the same, with tags split as any text may be",
    body: stream(
      chunk({ content: "One" }),
      chunk({ content: " two" }),
      chunk({ content: "<thou", ...mark }),
      chunk({ content: "ght>a < b</tho", ...mark }),
      chunk({ content: "ught>three" }),
      stop(),
    ),
    thoughts: "a < b",
    text: "One twothree",
  },
  {
    profile: "gemini",
    name: "a whole message with thoughts",
    source: "the same, measured without a stream",
    body: completion("<thought>Hm.</thought>Yes.", {
      choices: [
        {
          index: 0,
          finish_reason: "stop",
          message: { role: "assistant", content: "<thought>Hm.</thought>Yes.", ...mark },
        },
      ],
    }),
    thoughts: "Hm.",
    text: "Yes.",
  },
  {
    profile: "gemini",
    name: "an answer that speaks of such tags",
    source: "nobody yet",
    body: stream(chunk({ content: "<thought>" }), chunk({ content: "</thought>" }), stop()),
    text: "<thought></thought>",
  },
  {
    profile: "vllm",
    name: "thoughts as reasoning, and usage beside each piece",
    source: "vllm-project/vllm#27755",
    body: stream(
      chunk({ reasoning: "Hm." }, {}, { usage: { prompt_tokens: 4, completion_tokens: 1 } }),
      chunk({ content: "Hi" }, {}, { usage: { prompt_tokens: 4, completion_tokens: 2 } }),
      stop(),
      counts(4, 2),
    ),
    thoughts: "Hm.",
    text: "Hi",
    usage: [4, 2, 0],
  },
  {
    profile: "ollama",
    name: "calls that all have the index 0",
    source: "ollama/ollama#15457, vercel/ai#14277",
    body: stream(
      call(0, "call_1", "look", '{"at":"a"}'),
      call(0, "call_2", "look", '{"at":"b"}'),
      stop("tool_calls"),
      counts(3, 5),
    ),
    calls: two,
    finish: "tool_calls",
  },
  {
    profile: "ollama",
    name: "a call in the last piece, without an index",
    source: "ollama/ollama#5915",
    body: stream(
      chunk(
        {
          role: "assistant",
          content: "",
          tool_calls: [
            { id: "call_e", type: "function", function: { name: "look", arguments: '{"at":"a"}' } },
          ],
        },
        { finish_reason: "tool_calls" },
      ),
    ),
    calls: two.slice(0, 1),
    finish: "tool_calls",
  },
  {
    profile: "deepseek",
    name: "comments while it waits, thoughts, and hits of its cache",
    source: "tmc/langchaingo#1171",
    body: stream(
      ": keep-alive",
      ": keep-alive",
      chunk({ role: "assistant", content: null, reasoning_content: "Hm." }),
      chunk({ content: "Hi", reasoning_content: null }),
      stop(),
      counts(10, 5, {
        prompt_cache_hit_tokens: 8,
        completion_tokens_details: { reasoning_tokens: 3 },
      }),
    ),
    thoughts: "Hm.",
    text: "Hi",
    usage: [10, 5, 3],
  },
  {
    profile: "deepseek",
    name: "blank lines before a whole answer",
    source: "Lambdua/openai4j#86",
    body: `\n\n\n${JSON.stringify(completion("Hi"))}`,
    text: "Hi",
  },
  {
    profile: "xai",
    name: "thoughts that its output does not count",
    source: "Wei-Shaw/sub2api#5771",
    body: stream(
      chunk({ reasoning_content: "Hm." }),
      chunk({ content: "Hi" }),
      stop(),
      usageChunk({
        prompt_tokens: 10_120,
        completion_tokens: 1_499,
        total_tokens: 14_428,
        prompt_tokens_details: { cached_tokens: 128 },
        completion_tokens_details: { reasoning_tokens: 2_809 },
      }),
    ),
    thoughts: "Hm.",
    text: "Hi",
    usage: [10_120, 4_308, 2_809],
  },
  {
    profile: "openrouter",
    name: "comments before the answer",
    source: "openai/openai-go#227",
    body: stream(
      ": OPENROUTER PROCESSING",
      ": OPENROUTER PROCESSING",
      chunk({ role: "assistant", content: "" }, { native_finish_reason: null }),
      chunk({ content: "亚" }),
      stop(),
      counts(3, 1, { cost: 0.1, is_byok: false }),
    ),
    text: "亚",
    usage: [3, 1, 0],
  },
  {
    profile: "dashscope",
    name: "an empty id and no name in the later pieces of a call",
    source: "experientiallabs/experiential#742",
    body: stream(
      call(0, "call_1", "look", ""),
      call(0, "", null, '{"at":'),
      call(0, "", null, '"a"}'),
      stop("tool_calls"),
      counts(7, 4),
    ),
    calls: two.slice(0, 1),
    finish: "tool_calls",
    usage: [7, 4, 0],
  },
  {
    profile: "llama-cpp",
    name: "a null content first, and its timings",
    source: documented,
    body: stream(
      chunk({ role: "assistant", content: null }),
      chunk({ content: "Hi" }),
      chunk({}, { finish_reason: "stop" }, { timings: { prompt_n: 1 } }),
      counts(2, 1, { prompt_tokens_details: { cached_tokens: 1 } }),
    ),
    text: "Hi",
    usage: [2, 1, 0],
  },
  {
    profile: "ollama",
    name: "two calls of one name with one index and no ids",
    source: "ollama/ollama#15457",
    body: stream(
      call(0, undefined, "look", '{"at":"a"}'),
      call(0, undefined, "look", '{"at":"b"}'),
      stop(),
    ),
    calls: two,
    finish: "tool_calls",
  },
  {
    profile: "gemini",
    name: "one id for two names",
    source: "su-kaka/gcli2api#406",
    body: stream(call(0, "call_0", "look", "{}"), call(0, "call_0", "see", "{}"), stop()),
    calls: ["look {}", "see {}"],
    finish: "tool_calls",
  },
  {
    profile: "gemini",
    name: "thoughts within the output, by the total",
    source: "the usage of documents: thoughts are in the total alone, or in both",
    body: stream(
      chunk({ content: "Hi" }),
      stop(),
      counts(10, 50, { completion_tokens_details: { reasoning_tokens: 40 } }),
    ),
    text: "Hi",
    usage: [10, 50, 40],
  },
  {
    profile: "gemini",
    name: "an end in Google's word for moderation",
    source: documented,
    body: stream(chunk({ content: "Once" }), stop("RECITATION")),
    text: "Once",
    finish: "content_filter",
  },
  {
    profile: "azure",
    name: "an end with a hyphen",
    source: documented,
    body: stream(chunk({ content: "Once" }), stop("content-filter")),
    text: "Once",
    finish: "content_filter",
  },
  {
    profile: "vllm",
    name: "a character in two halves",
    source: documented,
    body: stream(
      chunk({ content: "\ud83d" }),
      chunk({ content: "\ude00" }),
      chunk({ content: "\ud83d" }),
      stop(),
    ).replaceAll(/[\ud800-\udfff]/g, (half) => `\\u${half.charCodeAt(0).toString(16)}`),
    text: "😀\ufffd",
  },
  {
    profile: "llama-cpp",
    name: "arguments that are an object",
    source: "ollama/ollama#5915 and its neighbours",
    body: stream(
      chunk({
        tool_calls: [
          {
            index: 0,
            id: "c",
            type: "function",
            function: { name: "look", arguments: { at: "a" } },
          },
        ],
      }),
      stop("tool_calls"),
    ),
    calls: two.slice(0, 1),
    finish: "tool_calls",
  },
  {
    profile: "dashscope",
    name: "a whole answer in place of a stream, and no name for its end",
    source: "QuantumNous/new-api#1109",
    body: completion("Hi"),
    text: "Hi",
    usage: [10, 5, 0],
  },
];

/** An error of a known server. */
export interface ServerError {
  readonly profile: string;
  readonly source: string;
  readonly status: number;
  readonly body: object | string;
  readonly seen: readonly [status: number, code: string | null];
}

export const serverErrors: readonly ServerError[] = [
  {
    profile: "azure",
    source: documented,
    status: 404,
    body: { error: { code: "DeploymentNotFound", message: "The API deployment does not exist." } },
    seen: [503, "model_unavailable"],
  },
  {
    profile: "gemini",
    source: "0xsline/OpenChatCut#6",
    status: 400,
    body: [
      {
        error: {
          code: 400,
          message: "Function call is missing a thought_signature in functionCall parts.",
          status: "INVALID_ARGUMENT",
        },
      },
    ],
    seen: [400, null],
  },
  {
    profile: "gemini",
    source: documented,
    status: 400,
    body: [
      {
        error: {
          code: 400,
          message:
            "The input token count (1048577) exceeds the maximum number of tokens allowed (1048576).",
          status: "INVALID_ARGUMENT",
        },
      },
    ],
    seen: [400, "context_length_exceeded"],
  },
  {
    profile: "vllm",
    source: "ogx-ai/ogx#4534",
    status: 400,
    body: {
      object: "error",
      message:
        "This model's maximum context length is 6048 tokens. However, you requested 6616 tokens " +
        "(568 in the messages, 6048 in the completion).",
      type: "BadRequestError",
      param: null,
      code: 400,
    },
    seen: [400, "context_length_exceeded"],
  },
  {
    profile: "ollama",
    source: documented,
    status: 500,
    body: { error: { message: "input length exceeds maximum context length", type: "api_error" } },
    seen: [400, "context_length_exceeded"],
  },
  {
    profile: "deepseek",
    source: "abhigyanpatwari/GitNexus#43",
    status: 402,
    body: { error: { message: "Insufficient Balance", type: "unknown_error", code: null } },
    seen: [503, "model_unavailable"],
  },
  {
    profile: "xai",
    source: documented,
    status: 400,
    body: {
      code: "Client specified an invalid argument",
      error: "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
    },
    seen: [400, "context_length_exceeded"],
  },
  {
    profile: "openrouter",
    source: "diegosouzapw/OmniRoute#8210",
    status: 200,
    body: stream(": OPENROUTER PROCESSING", {
      ...usageChunk({}),
      usage: null,
      error: { code: 502, message: "Worker local total request limit reached (33/32)" },
    }),
    seen: [503, "model_unavailable"],
  },
  {
    profile: "openrouter",
    source: "dcdpr/jp#978",
    status: 200,
    body: stream({
      ...usageChunk({}),
      usage: null,
      error: { code: 400, message: "prompt is too long: 1284668 tokens > 1000000 maximum" },
    }),
    seen: [400, "context_length_exceeded"],
  },
  {
    profile: "dashscope",
    source: documented,
    status: 400,
    body: {
      error: {
        code: "invalid_parameter_error",
        param: null,
        message:
          "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 98304]",
        type: "invalid_request_error",
      },
      request_id: "r",
    },
    seen: [400, "context_length_exceeded"],
  },
  {
    profile: "llama-cpp",
    source: documented,
    status: 400,
    body: {
      error: {
        code: 400,
        message: "the request exceeds the available context size",
        type: "exceed_context_size_error",
        n_prompt_tokens: 9000,
        n_ctx: 4096,
      },
    },
    seen: [400, "context_length_exceeded"],
  },
  {
    profile: "deepseek",
    source: "an end that is none: insufficient_system_resource, documented",
    status: 200,
    body: stream(stop("insufficient_system_resource")),
    seen: [503, "model_unavailable"],
  },
  {
    profile: "openrouter",
    source: "an error within a choice, documented",
    status: 200,
    body: {
      choices: [
        {
          index: 0,
          message: { role: "assistant", content: "" },
          error: { code: 429, message: "Rate limit reached" },
          finish_reason: "error",
        },
      ],
    },
    seen: [503, "model_unavailable"],
  },
  {
    profile: "vllm",
    source: "its server_utils: a text for a wrong key",
    status: 401,
    body: { error: "Unauthorized" },
    seen: [503, "model_unavailable"],
  },
  {
    profile: "vllm",
    source: "FastAPI's form",
    status: 422,
    body: { detail: [{ loc: ["body", "temperature"], msg: "must be at most 2" }] },
    seen: [400, null],
  },
  {
    profile: "azure",
    source: documented,
    status: 400,
    body: {
      error: {
        message: "The response was filtered due to the prompt triggering Azure OpenAI's policy.",
        type: null,
        param: "prompt",
        code: "content_filter",
        status: 400,
        innererror: { code: "ResponsibleAIPolicyViolation" },
      },
    },
    seen: [400, "content_policy_violation"],
  },
  {
    profile: "gemini",
    source: documented,
    status: 429,
    body: [{ error: { code: 429, message: "You exceeded it.", status: "RESOURCE_EXHAUSTED" } }],
    seen: [503, "model_unavailable"],
  },
];
