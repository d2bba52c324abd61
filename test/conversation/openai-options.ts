import { type Case, type Cells, schema } from "./cell-parts.ts";

/** By the rows of `docs/conversation.md`, for the column of kind `openai`: what is asked for beside the turns. */
export const optionCells: Cells = {
  "cap of the answer": [
    "kept",
    ["chat", { max_tokens: 9 }, { max_tokens: 9, without: ["max_completion_tokens"] }],
    ["responses", { max_output_tokens: 9 }, { max_completion_tokens: 9 }],
    ["messages", { max_tokens: 9 }, { max_completion_tokens: 9 }],
  ],
  effort: [
    "kept",
    ["chat", { reasoning_effort: "low" }, { reasoning_effort: "low" }],
    ["responses", { reasoning: { effort: "low" } }, { reasoning_effort: "low" }],
    ["messages", { output_config: { effort: "low" } }, { reasoning_effort: "low" }],
  ],
  "budget of thinking": [
    "notice",
    ...(
      [
        [1024, "low"],
        [5_000, "low"],
        [6_000, "medium"],
        [100_000, "high"],
      ] as const
    ).map(([budget_tokens, effort]): Case => [
      "messages",
      { thinking: { type: "enabled", budget_tokens } },
      { reasoning_effort: effort, notices: { "output_config.effort": effort } },
    ]),
    ["messages", { thinking: { type: "disabled" } }, { without: ["reasoning_effort"] }],
  ],
  "schema of the answer": [
    "kept",
    [
      "chat",
      { response_format: { type: "json_schema", json_schema: { name: "a", schema } } },
      { response_format: { type: "json_schema", json_schema: { name: "a", schema } } },
    ],
    [
      "responses",
      { text: { format: { type: "json_schema", name: "a", schema, strict: true } } },
      {
        response_format: { type: "json_schema", json_schema: { name: "a", schema, strict: true } },
      },
    ],
    [
      "messages",
      { output_config: { format: { type: "json_schema", schema } } },
      { response_format: { type: "json_schema", json_schema: { name: "answer", schema } } },
    ],
    ["responses", { text: { format: { type: "text" } } }, { without: ["response_format"] }],
  ],
  "temperature, top_p": [
    "kept",
    ...(["chat", "responses", "messages"] as const).map((dialect): Case => [
      dialect,
      { temperature: 1, top_p: 0.5 },
      { temperature: 1, top_p: 0.5 },
    ]),
  ],
  top_k: [
    "notice",
    ["chat", { top_k: 4 }, { forwarded: ["top_k"], top_k: 4 }],
    ["messages", { top_k: 4 }, { notices: { top_k: "dropped" }, without: ["top_k"] }],
    ["messages", { top_k: 4 }, { forwarded: ["top_k"], top_k: 4 }],
  ],
  "stop sequences": [
    "kept",
    ["chat", { stop: ["a"] }, { stop: ["a"] }],
    ["messages", { stop_sequences: ["a"] }, { stop: ["a"] }],
  ],
  "several choices": ["kept", ["chat", { n: 2 }, { n: 2 }]],
  "penalties, logit_bias": [
    "kept",
    [
      "chat",
      { presence_penalty: 1, frequency_penalty: 1, logit_bias: { 1: 1 } },
      { presence_penalty: 1, frequency_penalty: 1, logit_bias: { 1: 1 } },
    ],
  ],
  logprobs: [
    "kept",
    ["chat", { logprobs: true, top_logprobs: 2 }, { logprobs: true, top_logprobs: 2 }],
    ["responses", { top_logprobs: 2 }, { logprobs: true, top_logprobs: 2 }],
  ],
  "seed, verbosity": [
    "kept",
    ["chat", { seed: 1, verbosity: "low" }, { seed: 1, verbosity: "low" }],
    ["responses", { text: { verbosity: "low" } }, { verbosity: "low" }],
  ],
  "service tier": [
    "kept",
    ["chat", { service_tier: "flex" }, { service_tier: "flex" }],
    ["responses", { service_tier: "flex" }, { service_tier: "flex" }],
    ["messages", { service_tier: "standard_only" }, { service_tier: "default" }],
  ],
  "name of the end user": [
    "kept",
    ["chat", { user: "u", safety_identifier: "s" }, { user: "u", safety_identifier: "s" }],
    ["responses", { user: "u", safety_identifier: "s" }, { user: "u", safety_identifier: "s" }],
    ["messages", { metadata: { user_id: "u" } }, { user: "u", without: ["metadata"] }],
  ],
  metadata: [
    "kept",
    ["chat", { metadata: { a: "b" } }, { metadata: { a: "b" } }],
    ["responses", { metadata: { a: "b" } }, { metadata: { a: "b" } }],
  ],
  "field without a name": [
    "own",
    ["chat", { wild: 1 }, { forwarded: ["wild"], wild: 1 }],
    ["chat", { wild: 1 }, { without: ["wild"] }],
    ["responses", { wild: 1 }, { forwarded: ["wild"], without: ["wild"] }],
    ["messages", { wild: 1 }, { forwarded: ["wild"], without: ["wild"] }],
  ],
};
