import fc from "fast-check";

/** Valid bodies of requests with random mutations. */

const tool = {
  type: "function",
  function: {
    name: "get_weather",
    strict: true,
    parameters: {
      type: "object",
      properties: { city: { type: "string" } },
      required: ["city"],
      additionalProperties: false,
    },
  },
};

const chatBodies: readonly object[] = [
  { model: "chat-model", messages: [{ role: "user", content: "echo: hi" }] },
  {
    model: "chat-model",
    stream: true,
    stream_options: { include_usage: true },
    messages: [
      { role: "system", content: "Be brief." },
      { role: "user", content: [{ type: "text", text: "echo: one two" }] },
    ],
    temperature: 1,
    top_p: 0.5,
    n: 2,
    max_tokens: 20,
    stop: ["x", "y"],
    seed: Number.MAX_SAFE_INTEGER,
    presence_penalty: 0.1,
    logit_bias: { "50256": -100 },
    logprobs: true,
    top_logprobs: 2,
    user: "somebody",
    metadata: { one: "two" },
  },
  {
    model: "chat-model",
    messages: [
      { role: "developer", content: "Use tools." },
      { role: "user", content: "weather?", name: "bob" },
      {
        role: "assistant",
        content: null,
        tool_calls: [
          { id: "call_1", type: "function", function: { name: "get_weather", arguments: "{}" } },
        ],
      },
      { role: "tool", tool_call_id: "call_1", content: "rain" },
      {
        role: "user",
        content: [
          { type: "text", text: "and here?" },
          { type: "image_url", image_url: { url: "data:image/png;base64,AAAA", detail: "low" } },
        ],
      },
    ],
    tools: [tool],
    tool_choice: { type: "function", function: { name: "get_weather" } },
    parallel_tool_calls: false,
    max_completion_tokens: 30,
  },
  {
    model: "chat-model",
    messages: [{ role: "user", content: "give me json" }],
    response_format: {
      type: "json_schema",
      json_schema: { name: "answer", strict: true, schema: { type: "object", properties: {} } },
    },
    reasoning_effort: "low",
    verbosity: "low",
    modalities: ["text"],
    prediction: { type: "content", content: "x" },
    functions: [{ name: "f", parameters: { type: "object", properties: {} } }],
    function_call: "auto",
    service_tier: "auto",
    store: false,
    max_tokens: 50,
  },
];

const embeddingBodies: readonly object[] = [
  { model: "embedding-model", input: "hello" },
  { model: "embedding-model", input: ["hello", "there"], encoding_format: "base64", user: "u" },
  { model: "embedding-model", input: [[1, 2, 3], [4]], dimensions: 8, encoding_format: "float" },
  { model: "embedding-model", input: [1, 2, 3], dimensions: 1536 },
];

const evilTexts = [
  "",
  "\u0000",
  "\ud800",
  "\udfff tail",
  "\u{1f469}\u200d\u{1f469}\u200d\u{1f467}",
  "\u202eright to left",
  "__proto__",
  "constructor",
  "toString",
  "../../etc/passwd",
  "${jndi:ldap://x}",
  "a".repeat(5_000),
  "chat-model",
  "embedding-model",
  "echo: x",
];
const evilNumbers = [0, -0, -1, 0.5, 1e-320, 2 ** 31, 2 ** 53, 2 ** 64, 1e308, -1e308];

const evilValue: fc.Arbitrary<unknown> = fc.oneof(
  fc.constantFrom(...evilTexts, ...evilNumbers, true, false, null),
  fc.jsonValue({ maxDepth: 3 }),
  fc.string({ unit: "binary", maxLength: 30 }),
  fc.constantFrom<unknown>([], {}, [[]], [{}], [null], { type: "text" }, nested(40), nested(500)),
  fc.constantFrom<unknown>(
    Array.from({ length: 3_000 }, () => 1),
    Array.from({ length: 130 }, () => "x"),
  ),
);

function nested(depth: number): unknown {
  let value: unknown = 1;
  for (let level = 0; level < depth; level += 1) value = level % 2 === 0 ? [value] : { a: value };
  return value;
}

interface Mutation {
  /** The path down the tree; each number is taken modulo the number of children. */
  readonly way: readonly number[];
  readonly kind: "replace" | "remove" | "add" | "repeat";
  readonly key: string;
  readonly value: unknown;
}

const fieldNames = [
  ...new Set([...chatBodies, ...embeddingBodies].flatMap((body) => Object.keys(body))),
  "audio",
  "web_search_options",
  "type",
  "role",
  "content",
  "refusal",
  "unknown_field",
  "toString",
  "hasOwnProperty",
];

const mutation: fc.Arbitrary<Mutation> = fc.record({
  way: fc.array(fc.nat(40), { minLength: 1, maxLength: 6 }),
  kind: fc.constantFrom("replace", "replace", "replace", "remove", "add", "repeat"),
  key: fc.oneof(fc.constantFrom(...fieldNames), fc.string({ maxLength: 8 })),
  value: evilValue,
});

type Container = Record<string, unknown> | unknown[];

function isContainer(value: unknown): value is Container {
  return typeof value === "object" && value !== null;
}

function mutate(root: unknown, { way, kind, key, value: shared }: Mutation): unknown {
  // Copied, because a later mutation may change it or nest it in itself.
  const value = structuredClone(shared);
  let parent: unknown = root;
  for (const [step, choice] of way.entries()) {
    if (!isContainer(parent)) return root;
    const keys = Object.keys(parent);
    const name = keys[choice % Math.max(1, keys.length)];
    const child: unknown = name === undefined ? undefined : Reflect.get(parent, name);
    if (step < way.length - 1 && isContainer(child)) {
      parent = child;
      continue;
    }
    if (name === undefined || kind === "add") add(parent, key, value);
    else if (kind === "replace") Reflect.set(parent, name, value);
    else if (kind === "remove") Reflect.deleteProperty(parent, name);
    else if (Array.isArray(parent)) parent.push(...parent.slice(0, 200));
    return root;
  }
  return root;
}

/** Array properties are not in JSON, and its length must be a number. */
function add(parent: Container, key: string, value: unknown): void {
  if (Array.isArray(parent)) parent.push(value);
  else Reflect.set(parent, key, value);
}

type TextAccident = (text: string, place: number) => Uint8Array<ArrayBuffer>;

const encode = (text: string) => new Uint8Array(Buffer.from(text));

/** Inserts members as text into the object chosen by `place`: some cannot be in an object. */
function withMembers(members: string): TextAccident {
  return (text, place) => {
    const starts = [...text.matchAll(/\{(?=")/g)].map(({ index }) => index + 1);
    const start = starts[place % Math.max(1, starts.length)];
    if (start === undefined) return encode(text);
    return encode(`${text.slice(0, start)}${members},${text.slice(start)}`);
  };
}

const textAccidents: readonly TextAccident[] = [
  withMembers(`"__proto__":{"stream":true,"isAdmin":true,"toJSON":1}`),
  withMembers(`"constructor":{"prototype":{"role":"system"}}`),
  withMembers(`"model":"chat-model","messages":[],"input":"x"`),
  withMembers(`"model":{"toString":1},"n":1e999,"seed":${"9".repeat(400)}`),
  withMembers(`"x":${"[".repeat(3_000)}${"]".repeat(3_000)}`),
  withMembers(`"x":${`{"a":`.repeat(60)}1${"}".repeat(60)}`),
  withMembers(String.raw`"content":"\ud800\ud800","input":"\udc00"`),
  (text, place) => encode(text.slice(0, place % (text.length + 1))),
  (text, place) => encode(`${text}${text.slice(0, place % 40)}`),
  (text) => encode(`\ufeff${text}`),
  (text) => new Uint8Array(Buffer.from(text, "utf16le")),
  (text, place) => {
    const bytes = encode(text);
    bytes[place % Math.max(1, bytes.length)] = place % 256;
    return bytes;
  },
  (text, place) => {
    const at = place % (text.length + 1);
    const wrong = Buffer.from([0xc3, 0x28, 0xff, 0xed, 0xa0, 0x80]);
    return new Uint8Array(
      Buffer.concat([encode(text.slice(0, at)), wrong, encode(text.slice(at))]),
    );
  },
];

export interface FuzzedBody {
  readonly path: string;
  readonly bytes: Uint8Array<ArrayBuffer>;
}

export const fuzzedBody: fc.Arbitrary<FuzzedBody> = fc
  .record({
    base: fc.nat(chatBodies.length + embeddingBodies.length - 1),
    mutations: fc.array(mutation, { maxLength: 3 }),
    accident: fc.option(fc.nat(textAccidents.length - 1), { freq: 2 }),
    place: fc.nat(100_000),
    goesAstray: fc.integer({ min: 0, max: 9 }).map((number) => number === 0),
  })
  .map(({ base, mutations, accident, place, goesAstray }) => {
    const isChat = base < chatBodies.length;
    const chosen = [...chatBodies, ...embeddingBodies][base];
    const text = JSON.stringify(mutations.reduce(mutate, structuredClone<unknown>(chosen))) ?? "";
    const spoil = accident === null ? undefined : textAccidents[accident];
    return {
      path: isChat === goesAstray ? "/v1/embeddings" : "/v1/chat/completions",
      bytes: spoil?.(text, place) ?? encode(text),
    };
  });
