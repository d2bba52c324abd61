/** A request as an OpenAI client writes it, for one model of the provider. */
export interface PeerRequest {
  readonly name: string;
  /** The provider's identifier. */
  readonly model: string;
  /** Without `model`. */
  readonly body: Readonly<Record<string, unknown>>;
}

const sonnet4 = "us.anthropic.claude-sonnet-4-20250514-v1:0";
const sonnet45 = "us.anthropic.claude-sonnet-4-5-20250929-v1:0";
const opus46 = "us.anthropic.claude-opus-4-6-v1";
const opus47 = "us.anthropic.claude-opus-4-7";
const haiku3 = "anthropic.claude-3-haiku-20240307-v1:0";
const llama33 = "us.meta.llama3-3-70b-instruct-v1:0";
const mistralLarge = "mistral.mistral-large-2402-v1:0";
const novaPro = "us.amazon.nova-pro-v1:0";
const nova2 = "us.amazon.nova-2-lite-v1:0";
const gptOss = "openai.gpt-oss-120b-1:0";

const pixel =
  "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const pdf = `data:application/pdf;base64,${btoa("%PDF-1.4 a small file")}`;

const user = (content: unknown) => ({ role: "user", content });
const assistant = (content: unknown) => ({ role: "assistant", content });
const system = (content: unknown) => ({ role: "system", content });
const hi = [user("Say hi.")];

const weather = {
  type: "function",
  function: {
    name: "get_weather",
    description: "The weather of a place.",
    parameters: {
      type: "object",
      properties: { place: { type: "string" } },
      required: ["place"],
      additionalProperties: false,
    },
  },
};
const clock = { type: "function", function: { name: "get_time", parameters: noParameters() } };

function noParameters() {
  return { type: "object", properties: {} };
}

function called(id: string, name = "get_weather", input = '{"place":"Oslo"}') {
  return { id, type: "function", function: { name, arguments: input } };
}

const result = (id: string, content: unknown) => ({ role: "tool", tool_call_id: id, content });
const loop = [
  user("Weather in Oslo?"),
  { role: "assistant", content: null, tool_calls: [called("call_1")] },
  result("call_1", "12 degrees"),
];
const twoCalls = [
  user("Oslo and Rome?"),
  {
    role: "assistant",
    content: "I look.",
    tool_calls: [called("call_1"), called("call_2", "get_weather", '{"place":"Rome"}')],
  },
  result("call_1", "12 degrees"),
  result("call_2", "25 degrees"),
];

const answer = {
  type: "object",
  properties: { city: { type: "string" }, population: { type: "integer" } },
  required: ["city", "population"],
  additionalProperties: false,
};
const bounded = {
  ...answer,
  properties: {
    city: { type: "string", minLength: 2, pattern: "^[A-Z]" },
    population: { type: "integer", minimum: 0 },
  },
};
const schema = (wanted: object, strict = true) => ({
  response_format: { type: "json_schema", json_schema: { name: "city", schema: wanted, strict } },
});

const image = (url: string) => ({ type: "image_url", image_url: { url } });
const text = (words: string) => ({ type: "text", text: words });
const file = { type: "file", file: { filename: "a.pdf", file_data: pdf } };
const cached = { cache_control: { type: "ephemeral" } };

type Row = readonly [name: string, model: string, body: Readonly<Record<string, unknown>>];

const rows: readonly Row[] = [
  ["plain", sonnet4, { messages: hi }],
  ["plain, 3 haiku", haiku3, { messages: hi }],
  ["plain, llama", llama33, { messages: hi }],
  ["plain, mistral", mistralLarge, { messages: hi }],
  ["plain, nova", novaPro, { messages: hi }],
  ["plain, nova 2", nova2, { messages: hi }],
  ["plain, gpt-oss", gptOss, { messages: hi }],
  ["max_tokens", sonnet4, { messages: hi, max_tokens: 100 }],
  ["max_completion_tokens", sonnet4, { messages: hi, max_completion_tokens: 100 }],
  ["temperature 0", sonnet4, { messages: hi, temperature: 0 }],
  ["temperature 1.7", sonnet4, { messages: hi, temperature: 1.7 }],
  ["top_p", sonnet4, { messages: hi, top_p: 0.5 }],
  ["temperature and top_p", sonnet4, { messages: hi, temperature: 0.5, top_p: 0.5 }],
  ["temperature and top_p, 4.5", sonnet45, { messages: hi, temperature: 0.5, top_p: 0.5 }],
  ["temperature, 4.7", opus47, { messages: hi, temperature: 0.5 }],
  ["top_k", sonnet4, { messages: hi, top_k: 40 }],
  ["top_k, nova", novaPro, { messages: hi, top_k: 40 }],
  ["stop as text", sonnet4, { messages: hi, stop: "END" }],
  ["stop as list", sonnet4, { messages: hi, stop: ["END", "STOP"] }],
  ["blank stop", sonnet4, { messages: hi, stop: "\n" }],
  ["stop, llama", llama33, { messages: hi, stop: ["Observation:"] }],
  ["seed and user", sonnet4, { messages: hi, seed: 7, user: "u1" }],
  ["metadata", sonnet4, { messages: hi, metadata: { run: "7" } }],
  ["service_tier flex", sonnet4, { messages: hi, service_tier: "flex" }],
  ["frequency_penalty", sonnet4, { messages: hi, frequency_penalty: 0.1 }],
  ["system", sonnet4, { messages: [system("Be short."), ...hi] }],
  ["developer", sonnet4, { messages: [{ role: "developer", content: "Be short." }, ...hi] }],
  [
    "system in the middle",
    sonnet4,
    { messages: [...hi, assistant("Hi."), system("Stop."), user("And?")] },
  ],
  ["system only", sonnet4, { messages: [system("Say hi.")] }],
  [
    "system, mixtral",
    "mistral.mixtral-8x7b-instruct-v0:1",
    { messages: [system("Be short."), ...hi] },
  ],
  ["two users in a row", sonnet4, { messages: [user("One."), user("Two.")] }],
  ["assistant first", sonnet4, { messages: [assistant("Welcome."), ...hi] }],
  ["assistant last", sonnet4, { messages: [...hi, assistant("Hi ")] }],
  ["assistant last, 4.6", opus46, { messages: [...hi, assistant("Hi ")] }],
  ["empty user text", sonnet4, { messages: [user("")] }],
  ["empty assistant text", sonnet4, { messages: [...hi, assistant(""), user("And?")] }],
  ["blank part", sonnet4, { messages: [user([text(" "), text("Hi")])] }],
  ["image", sonnet4, { messages: [user([text("What?"), image(pixel)])] }],
  ["image, llama", llama33, { messages: [user([text("What?"), image(pixel)])] }],
  ["file", sonnet4, { messages: [user([text("Sum up."), file])] }],
  ["file without words", sonnet4, { messages: [user([file])] }],
  ["tools", sonnet4, { messages: hi, tools: [weather] }],
  ["tools, llama", llama33, { messages: hi, tools: [weather], stream: true }],
  ["tool without parameters", sonnet4, { messages: hi, tools: [clock] }],
  [
    "strict tool, 4.5",
    sonnet45,
    { messages: hi, tools: [{ ...weather, function: { ...weather.function, strict: true } }] },
  ],
  ["tool_choice required", sonnet4, { messages: hi, tools: [weather], tool_choice: "required" }],
  [
    "tool_choice required, llama",
    llama33,
    { messages: hi, tools: [weather], tool_choice: "required" },
  ],
  ["tool_choice none", sonnet4, { messages: hi, tools: [weather], tool_choice: "none" }],
  [
    "tool_choice named",
    sonnet4,
    {
      messages: hi,
      tools: [weather, clock],
      tool_choice: { type: "function", function: { name: "get_time" } },
    },
  ],
  ["one call at a time", sonnet4, { messages: hi, tools: [weather], parallel_tool_calls: false }],
  ["tool loop", sonnet4, { messages: loop, tools: [weather] }],
  ["tool loop without tools", sonnet4, { messages: loop }],
  [
    "tool loop, tool_choice none",
    sonnet4,
    { messages: loop, tools: [weather], tool_choice: "none" },
  ],
  ["two results", sonnet4, { messages: twoCalls, tools: [weather] }],
  ["two results and words", sonnet4, { messages: [...twoCalls, user("Go on.")], tools: [weather] }],
  [
    "two results and words, mistral",
    mistralLarge,
    { messages: [...twoCalls, user("Go on.")], tools: [weather] },
  ],
  [
    "empty result",
    sonnet4,
    { messages: [...loop.slice(0, 2), result("call_1", "")], tools: [weather] },
  ],
  [
    "result with parts",
    sonnet4,
    {
      messages: [...loop.slice(0, 2), result("call_1", [text("12"), text("degrees")])],
      tools: [weather],
    },
  ],
  [
    "empty arguments",
    sonnet4,
    {
      messages: [
        user("Time?"),
        { role: "assistant", content: null, tool_calls: [called("call_1", "get_time", "")] },
        result("call_1", "noon"),
      ],
      tools: [clock],
    },
  ],
  [
    "tool name with a dot",
    sonnet4,
    {
      messages: hi,
      tools: [{ type: "function", function: { name: "a.b", parameters: noParameters() } }],
    },
  ],
  [
    "json_object",
    sonnet4,
    { messages: [user("Say hi in JSON.")], response_format: { type: "json_object" } },
  ],
  ["json_schema", sonnet4, { messages: hi, ...schema(answer) }],
  ["json_schema, 4.5", sonnet45, { messages: hi, ...schema(answer) }],
  ["bounded json_schema, 4.5", sonnet45, { messages: hi, ...schema(bounded) }],
  ["json_schema and tools", sonnet4, { messages: hi, tools: [weather], ...schema(answer) }],
  ["json_schema and tools, 4.5", sonnet45, { messages: hi, tools: [weather], ...schema(answer) }],
  ["json_schema, llama", llama33, { messages: hi, ...schema(answer) }],
  ["json_schema, nova", novaPro, { messages: hi, ...schema(answer) }],
  ["reasoning low", sonnet4, { messages: hi, reasoning_effort: "low" }],
  [
    "reasoning high and a small cap",
    sonnet4,
    { messages: hi, reasoning_effort: "high", max_tokens: 3_000 },
  ],
  [
    "reasoning and temperature",
    sonnet4,
    { messages: hi, reasoning_effort: "low", temperature: 0.5 },
  ],
  [
    "reasoning in a tool loop",
    sonnet4,
    { messages: loop, tools: [weather], reasoning_effort: "low" },
  ],
  [
    "reasoning and a forced tool",
    sonnet4,
    { messages: hi, tools: [weather], tool_choice: "required", reasoning_effort: "low" },
  ],
  ["reasoning, 4.6", opus46, { messages: hi, reasoning_effort: "high" }],
  ["reasoning, 4.7", opus47, { messages: hi, reasoning_effort: "xhigh" }],
  ["reasoning none, 4.7", opus47, { messages: hi, reasoning_effort: "none" }],
  ["reasoning, gpt-oss", gptOss, { messages: hi, reasoning_effort: "medium" }],
  ["reasoning, nova 2", nova2, { messages: hi, reasoning_effort: "low" }],
  ["cached part", sonnet4, { messages: [user([{ ...text("Long."), ...cached }, text("Short.")])] }],
  ["cached system", sonnet4, { messages: [system([{ ...text("Long."), ...cached }]), ...hi] }],
  ["cached message", sonnet4, { messages: [{ ...user("Long."), ...cached }] }],
  ["cached tool", sonnet4, { messages: hi, tools: [{ ...weather, ...cached }] }],
  [
    "five cached parts",
    sonnet4,
    { messages: [user([1, 2, 3, 4, 5].map((n) => ({ ...text(`Part ${n}`), ...cached })))] },
  ],
  ["stream", sonnet4, { messages: hi, stream: true, stream_options: { include_usage: true } }],
];

/** What Sluice and its peers are asked alike. Names are unique. */
export const peerRequests: readonly PeerRequest[] = rows.map(([name, model, body]) => ({
  name,
  model,
  body,
}));
