import type { JsonObject } from "../../src/domain/json-fields.ts";
import {
  assistant,
  callItem,
  calling,
  chat,
  type Dialect,
  flatTool,
  imagePart,
  items,
  ownTool,
  png,
  pngBlock,
  result,
  schema,
  text,
  tool,
  toolResult,
  toolUse,
  turns,
  user,
} from "./cell-parts.ts";

/** What an upstream gets, whatever the dialect; patterns of what is told to the caller. */
interface Sent {
  readonly fate: string;
  readonly body?: JsonObject;
  /** In place of it for callers of these dialects. */
  readonly bodyFor?: Partial<Readonly<Record<Dialect, JsonObject>>>;
  /** Paths that are not in the body. */
  readonly without?: readonly string[];
  /** The end of the field that a refusal names. */
  readonly refused?: RegExp;
  /** What `x-sluice-adjusted-parameters` says of a field. */
  readonly notice?: RegExp;
}

export interface ClaudeCell {
  /** In place of the first case of kind `openai`. */
  readonly sent?: Partial<Readonly<Record<Dialect, JsonObject>>>;
  readonly bedrock: Sent;
  readonly anthropic: Sent;
}

/** A history of calls is one only where tools are offered, and each call needs its result. */
const answered = {
  chat: { tools: [tool], ...chat(calling, result) },
  responses: {
    tools: [flatTool],
    ...items(callItem, { type: "function_call_output", call_id: "c", output: "done" }),
  },
  messages: { tools: [ownTool], ...turns(assistant(toolUse), user(toolResult)) },
};
const callsOfConverse = {
  messages: [
    { role: "user" },
    { role: "assistant", content: [{ toolUse: { toolUseId: "c", name: "f", input: {} } }] },
    { role: "user", content: [{ toolResult: { toolUseId: "c", content: [{ text: "done" }] } }] },
  ],
};
const callsOfMessages = {
  messages: [
    { role: "user" },
    { role: "assistant", content: [toolUse] },
    { role: "user", content: [{ ...toolResult, content: [text("done")] }] },
  ],
};

const said = (content: string) => ({ content: [{ text: content }] });
const wrote = (content: string) => ({ content: [text(content)] });
/** The second turn. */
const second = (turn: object) => ({ messages: [{ role: "user" }, turn] });
const first = (...content: readonly object[]) => ({ messages: [{ content }] });
const gone = (fate: string, ...without: readonly string[]): Sent => ({ fate, without });
const textSchema = { properties: { input: { type: "string" } } };

/** By the rows of `docs/conversation.md`, for a model of Claude. */
export const claudeCells: Readonly<Record<string, ClaudeCell>> = {
  "order of blocks in a turn": {
    sent: {
      responses: {
        ...answered.responses,
        ...items(
          callItem,
          { role: "assistant", content: "then" },
          { type: "function_call_output", call_id: "c", output: "done" },
        ),
      },
      messages: {
        ...answered.messages,
        ...turns(assistant(toolUse, text("then")), user(toolResult)),
      },
    },
    bedrock: {
      fate: "kept",
      body: { messages: [{}, { content: [{ toolUse: {} }, { text: "then" }] }, {}] },
    },
    anthropic: {
      fate: "kept",
      body: { messages: [{}, { content: [toolUse, text("then")] }, {}] },
    },
  },
  "instructions at the beginning": {
    bedrock: { fate: "kept", body: { system: [{ text: "a" }] } },
    anthropic: { fate: "kept", body: { system: [text("a")] } },
  },
  "later instructions": {
    // Before the others, they would change what a model has signed.
    bedrock: {
      fate: "mapped",
      body: first({ text: "hi" }, { text: "<system>\na\n</system>" }),
    },
    anthropic: { fate: "mapped", body: first(text("hi"), text("<system>\na\n</system>")) },
  },
  text: {
    bedrock: { fate: "kept", body: second(said("a")) },
    anthropic: { fate: "kept", body: second(wrote("a")) },
  },
  "image as data": {
    bedrock: {
      fate: "kept",
      body: first({ image: { format: "png", source: { bytes: "iVBORw0KGgo=" } } }),
    },
    anthropic: {
      fate: "kept",
      body: first({
        type: "image",
        source: { type: "base64", media_type: "image/png", data: "iVBORw0KGgo=" },
      }),
    },
  },
  "image by address": {
    // The gateway fetches it before, where the operator lets it.
    bedrock: { fate: "mapped", refused: /content\[0\]$/ },
    anthropic: {
      fate: "kept",
      body: first({ type: "image", source: { type: "url", url: "https://example.com/a.png" } }),
    },
  },
  "detail of an image": {
    bedrock: gone("hint", "messages.0.content.0.image.detail"),
    anthropic: gone("hint", "messages.0.content.0.detail"),
  },
  audio: {
    bedrock: { fate: "refused", refused: /content\[0\]$/ },
    anthropic: { fate: "refused", refused: /content\[0\]$/ },
  },
  "document as data": {
    bedrock: {
      fate: "kept",
      body: first({ document: { format: "pdf", source: { bytes: "JVBERi0=" } } }, {}),
    },
    anthropic: {
      fate: "kept",
      body: first({
        type: "document",
        source: { type: "base64", media_type: "application/pdf", data: "JVBERi0=" },
      }),
    },
  },
  "document as text": {
    bedrock: {
      fate: "mapped",
      body: first({ document: { format: "txt", source: { bytes: "YQ==" } } }, { text: "b" }),
    },
    anthropic: {
      fate: "kept",
      body: first(
        { type: "document", source: { type: "text", media_type: "text/plain", data: "a" } },
        text("b"),
      ),
    },
  },
  "document by address": {
    bedrock: { fate: "refused", refused: /content\[0\]$/ },
    anthropic: { fate: "refused", refused: /content\[0\]$/ },
  },
  "words about a document": {
    bedrock: { fate: "mapped", body: first({ text: "Old." }, { document: { name: "a" } }) },
    anthropic: { fate: "kept", body: first({ title: "a.pdf", context: "Old." }) },
  },
  citations: {
    bedrock: gone("hint", "messages.0.content.0.document.citations"),
    anthropic: {
      fate: "kept",
      body: {
        messages: [
          { content: [{ citations: { enabled: true } }] },
          { content: [{ citations: [] }] },
        ],
      },
    },
  },
  "tool call": {
    sent: answered,
    bedrock: { fate: "kept", body: callsOfConverse },
    anthropic: { fate: "kept", body: callsOfMessages },
  },
  "custom tool": {
    bedrock: {
      fate: "mapped",
      body: {
        toolConfig: { tools: [{ toolSpec: { name: "f", inputSchema: { json: textSchema } } }] },
      },
    },
    anthropic: { fate: "mapped", body: { tools: [{ name: "f", input_schema: textSchema }] } },
  },
  "group of tools": {
    sent: { responses: { tools: [{ type: "namespace", name: "ns", tools: [flatTool] }] } },
    bedrock: { fate: "mapped", body: { toolConfig: { tools: [{ toolSpec: { name: "ns__f" } }] } } },
    anthropic: { fate: "mapped", body: { tools: [{ name: "ns__f" }] } },
  },
  "result of a tool": {
    sent: answered,
    bedrock: { fate: "kept", body: callsOfConverse },
    anthropic: { fate: "kept", body: callsOfMessages },
  },
  "image in a result": {
    sent: {
      chat: { tools: [tool], ...chat(calling, { ...result, content: [imagePart] }) },
      responses: {
        tools: [flatTool],
        ...items(callItem, {
          type: "function_call_output",
          call_id: "c",
          output: [{ type: "input_image", image_url: png }],
        }),
      },
      messages: {
        tools: [ownTool],
        ...turns(assistant(toolUse), user({ ...toolResult, content: [pngBlock] })),
      },
    },
    bedrock: {
      fate: "kept",
      body: {
        messages: [{}, {}, { content: [{ toolResult: { content: [{ image: {} }] } }] }],
      },
    },
    anthropic: {
      fate: "kept",
      body: { messages: [{}, {}, { content: [{ content: [pngBlock] }] }] },
    },
  },
  "failure of a tool": {
    sent: {
      messages: {
        ...answered.messages,
        ...turns(assistant(toolUse), user({ ...toolResult, is_error: true })),
      },
    },
    bedrock: {
      fate: "kept",
      body: { messages: [{}, {}, { content: [{ toolResult: { status: "error" } }] }] },
    },
    anthropic: { fate: "kept", body: { messages: [{}, {}, { content: [{ is_error: true }] }] } },
  },
  "choice of a tool": {
    bedrock: { fate: "kept", body: { toolConfig: { toolChoice: { any: {} } } } },
    anthropic: { fate: "kept", body: { tool_choice: { type: "any" } } },
  },
  "one call at a time": {
    bedrock: {
      fate: "kept",
      body: { additionalModelRequestFields: { tool_choice: { disable_parallel_tool_use: true } } },
    },
    anthropic: { fate: "kept", body: { tool_choice: { disable_parallel_tool_use: true } } },
  },
  "text of a thought": {
    bedrock: { fate: "hint", body: second(said("a")) },
    anthropic: { fate: "hint", body: second(wrote("a")) },
  },
  "signed or redacted thought": {
    // Nobody has written these.
    bedrock: gone("own", "messages.1.content.1"),
    anthropic: gone("own", "messages.1.content.1"),
  },
  "fields of a call": {
    sent: {
      ...answered,
      messages: {
        ...answered.messages,
        ...turns(assistant({ ...toolUse, caller: { type: "direct" } }), user(toolResult)),
      },
    },
    bedrock: { fate: "hint", body: callsOfConverse },
    anthropic: { fate: "own", body: callsOfMessages, without: ["messages.1.content.0.caller"] },
  },
  "cache mark of OpenAI": {
    bedrock: { fate: "mapped", body: first({ text: "a" }, { cachePoint: { type: "default" } }) },
    anthropic: { fate: "mapped", body: first({ cache_control: { type: "ephemeral" } }) },
  },
  "cache mark of Anthropic": {
    bedrock: { fate: "mapped", body: first({ text: "a" }, { cachePoint: { type: "default" } }) },
    anthropic: { fate: "kept", body: first({ cache_control: { type: "ephemeral" } }) },
  },
  "block of one wire": {
    bedrock: { fate: "notice", notice: /^(?:input|messages)=server-blocks-dropped$/ },
    anthropic: { fate: "own", notice: /^(?:input|messages)=server-blocks-dropped$/ },
  },
  refusal: {
    bedrock: { fate: "mapped", body: second(said("No.")) },
    anthropic: { fate: "mapped", body: second(wrote("No.")) },
  },
  "cap of the answer": {
    bedrock: { fate: "kept", body: { inferenceConfig: { maxTokens: 9 } } },
    anthropic: { fate: "kept", body: { max_tokens: 9 } },
  },
  effort: {
    // In Messages an effort asks for no thoughts, and this model knows no other effort.
    bedrock: {
      fate: "mapped",
      body: { additionalModelRequestFields: { thinking: { budget_tokens: 2048 } } },
      bodyFor: { messages: {} },
    },
    anthropic: {
      fate: "mapped",
      body: { thinking: { type: "enabled", budget_tokens: 2048 } },
      bodyFor: { messages: {} },
    },
  },
  "budget of thinking": {
    sent: {
      messages: { max_tokens: 9_000, thinking: { type: "enabled", budget_tokens: 3_000 } },
    },
    bedrock: {
      fate: "kept",
      body: { additionalModelRequestFields: { thinking: { budget_tokens: 3_000 } } },
    },
    anthropic: { fate: "kept", body: { thinking: { type: "enabled", budget_tokens: 3_000 } } },
  },
  "schema of the answer": {
    // Models that take no schema get a tool whose input is the answer.
    bedrock: {
      fate: "mapped",
      body: { toolConfig: { tools: [{ toolSpec: { inputSchema: { json: schema } } }] } },
    },
    anthropic: { fate: "mapped", body: { tools: [{ input_schema: schema }] } },
  },
  "temperature, top_p": {
    // Chat's scale ends at 2, and Claude's at 1.
    sent: {
      chat: { temperature: 2 },
      responses: { temperature: 2 },
      messages: { temperature: 2 },
    },
    bedrock: {
      fate: "notice",
      body: { inferenceConfig: { temperature: 1 } },
      notice: /^temperature=1$/,
    },
    anthropic: { fate: "notice", body: { temperature: 1 }, notice: /^temperature=1$/ },
  },
  top_k: {
    bedrock: { fate: "kept", body: { additionalModelRequestFields: { top_k: 4 } } },
    anthropic: { fate: "kept", body: { top_k: 4 } },
  },
  "stop sequences": {
    bedrock: { fate: "kept", body: { inferenceConfig: { stopSequences: ["a"] } } },
    anthropic: { fate: "kept", body: { stop_sequences: ["a"] } },
  },
  // Each choice has a request of its own.
  "several choices": { bedrock: gone("mapped", "n"), anthropic: gone("mapped", "n") },
  "penalties, logit_bias": {
    bedrock: { fate: "refused", refused: /^presence_penalty$/ },
    anthropic: { fate: "refused", refused: /^presence_penalty$/ },
  },
  logprobs: {
    bedrock: { fate: "refused", refused: /logprobs$/ },
    anthropic: { fate: "refused", refused: /logprobs$/ },
  },
  "seed, verbosity": {
    bedrock: gone("hint", "seed", "verbosity", "additionalModelRequestFields"),
    anthropic: gone("hint", "seed", "verbosity"),
  },
  "service tier": {
    sent: { chat: { service_tier: "flex" }, responses: { service_tier: "default" } },
    bedrock: { fate: "kept", body: {}, bodyFor: { chat: { serviceTier: { type: "flex" } } } },
    anthropic: {
      fate: "mapped",
      body: { service_tier: "standard_only" },
      // It has none that costs less for waiting.
      bodyFor: { chat: {} },
    },
  },
  "name of the end user": {
    bedrock: gone("hint", "user", "requestMetadata"),
    anthropic: { fate: "kept", body: { metadata: { user_id: "u" } } },
  },
  metadata: { bedrock: gone("hint", "requestMetadata"), anthropic: gone("hint", "metadata") },
  "field without a name": { bedrock: gone("hint", "wild"), anthropic: gone("own", "wild") },
};
