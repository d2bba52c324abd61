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
  movedImage,
  pdf,
  pdfBlock,
  pdfPart,
  imagePart,
  address,
  far,
  pngBlock,
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
  tool,
  flatTool,
  ownTool,
  grammar,
  custom,
  ephemeral,
  explicit,
} from "./cell-parts.ts";
import { optionCells } from "./openai-options.ts";

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
      asked({ role: "system", content: "a" }),
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
  citations: [
    "hint",
    [
      "messages",
      {
        messages: [
          user({ type: "document", source: pdfSource, citations: { enabled: true } }),
          assistant({ ...text("a"), citations: [] }),
        ],
      },
      { messages: [user(pdfPart), { role: "assistant", content: "a" }] },
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
      turns(assistant(toolUse), user({ type: "tool_result", tool_use_id: "c" })),
      asked(calling, { ...result, content: "" }),
    ],
  ],
  "image in a result": [
    "notice",
    [
      "chat",
      chat(calling, { ...result, content: [imagePart] }),
      asked(calling, { ...result, content: [imagePart] }),
    ],
    [
      "responses",
      items(callItem, {
        type: "function_call_output",
        call_id: "c",
        output: [{ type: "input_image", image_url: png }],
      }),
      { ...asked(calling, ...movedImage), notices: { input: "tool-images-moved" } },
    ],
    [
      "messages",
      turns(assistant(toolUse), user({ ...toolResult, content: [pngBlock] }, text("so"))),
      {
        ...asked(calling, movedImage[0], user(text("[tool image 1:]"), imagePart, text("so"))),
        notices: { messages: "tool-images-moved" },
      },
    ],
    [
      "messages",
      turns(
        assistant(toolUse, { ...toolUse, id: "d" }),
        user({ ...toolResult, content: [text("a"), pdfBlock], is_error: true }),
        user({ ...toolResult, tool_use_id: "d", content: [pngBlock] }),
      ),
      {
        ...asked(
          { ...calling, tool_calls: [call, { ...call, id: "d" }] },
          {
            ...result,
            content: [
              text("Error: a"),
              text("[This file follows the tool results as tool file 1.]"),
            ],
          },
          {
            ...result,
            tool_call_id: "d",
            content: "[This image follows the tool results as tool image 2.]",
          },
          user(text("[tool file 1:]"), pdfPart, text("[tool image 2:]"), imagePart),
        ),
        notices: { messages: "tool-images-moved" },
      },
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
  ...optionCells,
};
