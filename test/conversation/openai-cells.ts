import {
  type Case,
  type Cells,
  hi,
  chat,
  items,
  turns,
  asked,
  user,
  assistant,
  png,
  pdf,
  imagePart,
  address,
  far,
  pngSource,
  pdfSource,
  text,
  call,
  calling,
  callItem,
  toolUse,
  toolResult,
  result,
  signedCalling,
  callThought,
  schema,
  tool,
  flatTool,
  ownTool,
  grammar,
  custom,
  ephemeral,
  explicit,
} from "./cell-parts.ts";

/** By the rows of `docs/conversation.md`, for the column of kind `openai`. */
export const openAiCells: Cells = {
  "order of blocks in a turn": [
    "mapped",
    [
      "responses",
      items(callItem, { role: "assistant", content: "then" }),
      asked({ role: "assistant", content: "then", tool_calls: [call] }),
    ],
    [
      "messages",
      turns(assistant(toolUse, text("then"), text("so"))),
      asked({ ...assistant(text("then"), text("so")), tool_calls: [call] }),
    ],
  ],
  "instructions at the beginning": [
    "kept",
    [
      "chat",
      { messages: [{ role: "developer", content: "a" }, hi] },
      { messages: [{ role: "developer", content: "a" }, hi] },
    ],
    ["responses", { instructions: "a" }, { messages: [{ role: "system", content: "a" }, hi] }],
    ["messages", { system: [text("a")] }, { messages: [{ role: "system", content: "a" }, hi] }],
  ],
  "later instructions": [
    "kept",
    ["chat", chat({ role: "system", content: "a" }), asked({ role: "system", content: "a" })],
    [
      "responses",
      items({ role: "developer", content: "a" }),
      asked({ role: "developer", content: "a" }),
    ],
    ["messages", turns({ role: "system", content: "a" }), asked({ role: "system", content: "a" })],
  ],
  text: [
    "kept",
    ["chat", chat(assistant(text("a"))), asked(assistant(text("a")))],
    [
      "responses",
      items(assistant({ type: "output_text", text: "a" })),
      asked({ role: "assistant", content: "a" }),
    ],
    ["messages", turns(assistant(text("a"))), asked({ role: "assistant", content: "a" })],
  ],
  "image as data": [
    "kept",
    ["chat", { messages: [user(imagePart)] }, { messages: [user(imagePart)] }],
    [
      "responses",
      { input: [user({ type: "input_image", image_url: png })] },
      { messages: [user(imagePart)] },
    ],
    [
      "messages",
      { messages: [user({ type: "image", source: pngSource })] },
      { messages: [user(imagePart)] },
    ],
  ],
  "image by address": [
    "kept",
    ["chat", { messages: [user(far)] }, { messages: [user(far)] }],
    [
      "responses",
      { input: [user({ type: "input_image", image_url: address })] },
      { messages: [user(far)] },
    ],
    [
      "messages",
      { messages: [user({ type: "image", source: { type: "url", url: address } })] },
      { messages: [user(far)] },
    ],
  ],
  "detail of an image": [
    "kept",
    [
      "chat",
      { messages: [user({ ...imagePart, image_url: { url: png, detail: "low" } })] },
      { messages: [user({ ...imagePart, image_url: { url: png, detail: "low" } })] },
    ],
    [
      "responses",
      { input: [user({ type: "input_image", image_url: png, detail: "low" })] },
      { messages: [user({ ...imagePart, image_url: { url: png, detail: "low" } })] },
    ],
  ],
  audio: [
    "kept",
    [
      "chat",
      { messages: [user({ type: "input_audio", input_audio: { data: "YQ==", format: "wav" } })] },
      { messages: [user({ type: "input_audio", input_audio: { data: "YQ==", format: "wav" } })] },
    ],
  ],
  "document as data": [
    "kept",
    [
      "chat",
      { messages: [user({ type: "file", file: { filename: "a.pdf", file_data: pdf } })] },
      { messages: [user({ type: "file", file: { filename: "a.pdf", file_data: pdf } })] },
    ],
    [
      "responses",
      { input: [user({ type: "input_file", filename: "a.pdf", file_data: pdf })] },
      { messages: [user({ type: "file", file: { filename: "a.pdf", file_data: pdf } })] },
    ],
    [
      "messages",
      { messages: [user({ type: "document", source: pdfSource })] },
      { messages: [user({ type: "file", file: { filename: "document", file_data: pdf } })] },
    ],
  ],
  "document as text": [
    "mapped",
    [
      "messages",
      { messages: [user({ type: "document", source: { type: "text", data: "a" } }, text("b"))] },
      { messages: [user(text("a"), text("b"))] },
    ],
  ],
  "document by address": [
    "refused",
    [
      "chat",
      { messages: [user({ type: "file", file: { file_data: "https://example.com/a" } })] },
      { refused: "file_data" },
    ],
  ],
  "words about a document": [
    "mapped",
    [
      "messages",
      {
        messages: [user({ type: "document", source: pdfSource, title: "a.pdf", context: "Old." })],
      },
      {
        messages: [
          user(text("Old."), { type: "file", file: { filename: "a.pdf", file_data: pdf } }),
        ],
      },
    ],
  ],
  "tool call": [
    "kept",
    ["chat", chat(calling), asked(calling)],
    ["responses", items(callItem), asked(calling)],
    ["messages", turns(assistant(toolUse)), asked(calling)],
  ],
  "custom tool": [
    "kept",
    ["chat", { tools: [custom] }, { tools: [custom] }],
    [
      "responses",
      { tools: [{ type: "custom", name: "f", format: { type: "grammar", ...grammar } }] },
      { tools: [custom] },
    ],
  ],
  "group of tools": [
    "mapped",
    [
      "responses",
      {
        tools: [{ type: "namespace", name: "ns", tools: [flatTool] }],
        tool_choice: { type: "function", name: "f", namespace: "ns" },
        ...items({ ...callItem, namespace: "ns" }),
      },
      {
        tools: [{ type: "function", function: { name: "ns__f" } }],
        tool_choice: { type: "function", function: { name: "ns__f" } },
        ...asked({ tool_calls: [{ ...call, function: { name: "ns__f" } }] }),
      },
    ],
    [
      "responses",
      { tools: [{ type: "namespace", name: "functions", tools: [flatTool] }] },
      { tools: [tool] },
    ],
  ],
  "result of a tool": [
    "kept",
    ["chat", chat(calling, result), asked(calling, result)],
    [
      "responses",
      items(callItem, { type: "function_call_output", call_id: "c", output: "done" }),
      asked(calling, result),
    ],
    [
      "messages",
      turns(assistant(toolUse), user(text("so"), toolResult)),
      asked(calling, result, { role: "user", content: "so" }),
    ],
    [
      "messages",
      turns(
        assistant(toolUse),
        user({ ...toolResult, content: [text("a"), { type: "image", source: pngSource }] }),
      ),
      asked(calling, { ...result, content: [text("a"), imagePart] }),
    ],
    [
      "messages",
      turns(assistant(toolUse), user({ type: "tool_result", tool_use_id: "c" })),
      asked(calling, { ...result, content: "" }),
    ],
  ],
  "failure of a tool": [
    "mapped",
    ...(
      [
        ["done", "Error: done"],
        ["error: no", "error: no"],
        [undefined, "Error"],
      ] as const
    ).map(([content, told]): Case => [
      "messages",
      turns(assistant(toolUse), user({ ...toolResult, content, is_error: true })),
      asked(calling, { ...result, content: told }),
    ]),
  ],
  "choice of a tool": [
    "kept",
    ["chat", { tools: [tool], tool_choice: "required" }, { tool_choice: "required" }],
    ["responses", { tools: [flatTool], tool_choice: "required" }, { tool_choice: "required" }],
    ["messages", { tools: [ownTool], tool_choice: { type: "any" } }, { tool_choice: "required" }],
    [
      "messages",
      { tools: [ownTool], tool_choice: { type: "tool", name: "f" } },
      { tools: [tool], tool_choice: { type: "function", function: { name: "f" } } },
    ],
    [
      "responses",
      {
        tools: [flatTool],
        tool_choice: {
          type: "allowed_tools",
          mode: "auto",
          tools: [{ type: "function", name: "f" }],
        },
      },
      {
        tool_choice: {
          type: "allowed_tools",
          allowed_tools: { mode: "auto", tools: [{ type: "function", function: { name: "f" } }] },
        },
      },
    ],
  ],
  "one call at a time": [
    "kept",
    ["chat", { tools: [tool], parallel_tool_calls: false }, { parallel_tool_calls: false }],
    [
      "responses",
      { tools: [flatTool], parallel_tool_calls: false },
      { parallel_tool_calls: false },
    ],
    [
      "messages",
      { tools: [ownTool], tool_choice: { type: "auto", disable_parallel_tool_use: true } },
      { parallel_tool_calls: false },
    ],
  ],
  "text of a thought": [
    "kept",
    [
      "chat",
      chat({ role: "assistant", content: "a", reasoning_content: "Hm." }),
      asked({ role: "assistant", content: "a", reasoning_content: "Hm." }),
    ],
    [
      "responses",
      items(
        { type: "reasoning", summary: [{ type: "summary_text", text: "Hm." }] },
        { role: "assistant", content: "a" },
      ),
      asked({ role: "assistant", content: "a", reasoning_content: "Hm." }),
    ],
    [
      "messages",
      turns(
        // Some clients send a thought as a message of its own.
        assistant({ type: "thinking", thinking: "Hm.", signature: "s" }),
        assistant(text("a")),
      ),
      asked({ role: "assistant", content: "a", reasoning_content: "Hm." }),
    ],
  ],
  "signed or redacted thought": [
    "own",
    [
      "chat",
      chat({
        role: "assistant",
        content: "a",
        reasoning_details: [{ type: "reasoning.text", text: "Hm.", signature: "s" }],
      }),
      {
        forwarded: ["reasoning_details"],
        ...asked({
          role: "assistant",
          reasoning_details: [{ type: "reasoning.text", text: "Hm.", signature: "s" }],
        }),
      },
    ],
    [
      "chat",
      chat({
        role: "assistant",
        content: "a",
        thinking_blocks: [{ type: "redacted_thinking", data: "s" }],
      }),
      { without: ["messages.1.thinking_blocks", "messages.1.reasoning_content"] },
    ],
    [
      "responses",
      items(
        { type: "reasoning", summary: [], encrypted_content: "s" },
        { role: "assistant", content: "a" },
      ),
      {
        forwarded: ["reasoning_details"],
        without: ["messages.1.reasoning_details", "messages.1.reasoning_content"],
      },
    ],
    [
      "messages",
      turns(assistant({ type: "redacted_thinking", data: "s" }), user(text("b"))),
      { ...asked({ role: "user", content: "b" }), without: ["messages.2"] },
    ],
  ],
  "signature of a call": [
    "kept",
    ["chat", chat(signedCalling), asked(signedCalling)],
    [
      "responses",
      items({ type: "reasoning", encrypted_content: `redacted:${callThought}` }, callItem),
      asked(signedCalling),
    ],
    [
      "messages",
      turns(assistant({ type: "redacted_thinking", data: callThought }, toolUse)),
      asked(signedCalling),
    ],
  ],
  "fields of a call": [
    "own",
    [
      "chat",
      chat({ ...calling, tool_calls: [{ ...call, extra_content: { a: 1 }, other: 1 }] }),
      {
        ...asked({ ...calling, tool_calls: [{ ...call, extra_content: { a: 1 } }] }),
        without: ["messages.1.tool_calls.0.other"],
      },
    ],
    [
      "responses",
      items({ ...callItem, extra_content: { a: 1 } }),
      { without: ["messages.1.tool_calls.0.extra_content"] },
    ],
    [
      "messages",
      turns(assistant({ ...toolUse, caller: { type: "direct" } })),
      { without: ["messages.1.tool_calls.0.caller"] },
    ],
  ],
  "cache mark of OpenAI": [
    "kept",
    [
      "chat",
      { messages: [user({ ...text("a"), ...explicit })] },
      { messages: [user({ ...text("a"), ...explicit })] },
    ],
    [
      "responses",
      { input: [user({ type: "input_text", text: "a", ...explicit })] },
      { messages: [user({ ...text("a"), ...explicit })] },
    ],
  ],
  "cache mark of Anthropic": [
    "hint",
    [
      "chat",
      { messages: [user({ ...text("a"), ...ephemeral })] },
      { without: ["messages.0.content.0.cache_control"] },
    ],
    [
      "messages",
      { messages: [user({ ...text("a"), ...ephemeral })] },
      { messages: [{ role: "user", content: "a" }] },
    ],
    [
      "messages",
      { messages: [user({ ...text("a"), ...ephemeral })], tools: [{ ...ownTool, ...ephemeral }] },
      {
        forwarded: ["cache_control"],
        messages: [user({ ...text("a"), ...ephemeral })],
        tools: [{ ...tool, ...ephemeral }],
      },
    ],
  ],
  "block of one wire": [
    "notice",
    [
      "responses",
      items({ type: "web_search_call", id: "w", status: "completed" }),
      { notices: { input: "server-blocks-dropped" }, without: ["messages.1"] },
    ],
    [
      "messages",
      turns(assistant({ type: "server_tool_use", id: "w", name: "web_search", input: {} })),
      { notices: { messages: "server-blocks-dropped" }, without: ["messages.1"] },
    ],
    [
      "messages",
      turns(assistant({ type: "compaction", content: "They met." })),
      asked({ role: "assistant", content: "They met." }),
    ],
  ],
  refusal: [
    "kept",
    [
      "chat",
      chat({ role: "assistant", content: null, refusal: "No." }),
      asked({ role: "assistant", content: null, refusal: "No." }),
    ],
    [
      "responses",
      items(assistant({ type: "refusal", refusal: "No." })),
      asked({ role: "assistant", content: null, refusal: "No." }),
    ],
  ],
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
