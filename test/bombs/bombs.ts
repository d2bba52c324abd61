import { brotliCompressSync, constants, gzipSync, zstdCompressSync } from "node:zlib";

/** Request bodies that are made to cost as much as they can. */
export interface Bomb {
  readonly name: string;
  readonly path: "/v1/chat/completions" | "/v1/embeddings";
  /** As the header `content-encoding` says it; undefined for none. */
  readonly encoding: string | undefined;
  /** Of what the whole body expands to. */
  readonly plainBytes: number;
  readonly body: Uint8Array<ArrayBuffer>;
}

/** Makes one when it is needed: all at once would take a gigabyte. `bytes` is about its plain size. */
export interface BombPlan {
  readonly name: string;
  make(bytes: number): Bomb;
}

/** Refused, every one of them, however large they are made. */
export const bombs: readonly BombPlan[] = [
  plain("nested lists", (bytes) => "[".repeat(bytes)),
  plain("nested objects", (bytes) => fill('{"a":', bytes)),
  plain("nested lists beside each other", (bytes) =>
    list(`${"[".repeat(60)}${"]".repeat(60)},`, bytes),
  ),
  plain("empty lists", (bytes) => list("[],", bytes)),
  plain("empty objects", (bytes) => list("{},", bytes)),
  plain("numbers", (bytes) => list("1,", bytes)),
  plain("long numbers", (bytes) => list("-1.2345678901234567e-300,", bytes)),
  plain("one number of digits", (bytes) => chat("1".repeat(bytes), "seed")),
  plain("one number with an exponent", (bytes) => chat(`1e${"9".repeat(bytes)}`, "seed")),
  plain("empty texts", (bytes) => list('"",', bytes)),
  plain("words", (bytes) => list("null,", bytes)),
  plain("commas", (bytes) => `[${",".repeat(bytes)}`),
  plain("distinct names", (bytes) => numbered(bytes, (index) => `"k${index}":1,`, "{", '"z":1}')),
  plain("names that are numbers", (bytes) =>
    numbered(bytes, (index) => `"${index * 1000}":1,`, "{", '"z":1}'),
  ),
  plain("objects of one distinct name", (bytes) =>
    numbered(bytes, (index) => `{"k${index}":1},`, "[", "1]"),
  ),
  plain("objects of many distinct names", (bytes) =>
    numbered(
      bytes,
      (index) => `{"a${index}":1,"b${index}":1,"c${index}":1,"d${index}":1},`,
      "[",
      "1]",
    ),
  ),
  plain("names twice", (bytes) => `{${fill('"a":1,', bytes)}"a":1}`),
  plain("a long name", (bytes) => `{"${"n".repeat(bytes)}":1}`),
  plain("long names", (bytes) =>
    numbered(bytes, (index) => `"${"n".repeat(1_000_000)}${index}":1,`, "{", '"z":1}'),
  ),
  plain("a long name of a bias", (bytes) => chat(`{"${"n".repeat(bytes)}":1}`, "logit_bias")),
  plain("biases", (bytes) =>
    chat(
      numbered(bytes, (index) => `"${index}":1,`, "{", '"0":1}'),
      "logit_bias",
    ),
  ),
  plain("a long name of a model", (bytes) =>
    JSON.stringify({ model: "m".repeat(bytes), messages: [] }),
  ),
  plain("a long role", (bytes) =>
    JSON.stringify({ model: "chat-model", messages: [{ role: "r".repeat(bytes), content: "" }] }),
  ),
  plain("a long type of a part", (bytes) =>
    JSON.stringify({
      model: "chat-model",
      messages: [{ role: "user", content: [{ type: "t".repeat(bytes) }] }],
    }),
  ),
  plain("a long image address", (bytes) =>
    JSON.stringify({
      model: "chat-model",
      messages: [
        { role: "user", content: [{ type: "image_url", image_url: { url: " ".repeat(bytes) } }] },
      ],
    }),
  ),
  plain("a long tool name", (bytes) =>
    chat(`[{"type":"function","function":{"name":"${"n".repeat(bytes)}"}}]`, "tools"),
  ),
  plain("short escapes", (bytes) => text("\\n", bytes)),
  plain("escaped backslashes", (bytes) => text("\\\\", bytes)),
  plain("escaped quotes", (bytes) => text('\\"', bytes)),
  plain("a text without an end", (bytes) => `["${"a".repeat(bytes)}`),
  plain("quotes", (bytes) => '"'.repeat(bytes)),
  plain("backslashes", (bytes) => `"${"\\".repeat(bytes)}`),
  plain("white space", (bytes) => " ".repeat(bytes)),
  plain("white space around values", (bytes) => list(`${" ".repeat(30)}1,`, bytes)),
  {
    name: "no UTF-8",
    make: (bytes) => bombOf("no UTF-8", new Uint8Array(bytes).fill(0xff)),
  },
  {
    name: "no UTF-8 at the end",
    make: (bytes) => {
      const body = new TextEncoder().encode(text("é", bytes / 2));
      body[body.length - 3] = 0xff;
      return bombOf("no UTF-8 at the end", body);
    },
  },
  plain("inputs", (bytes) => `{"model":"embedding-model","input":${list('"a",', bytes)}}`),
  plain("lists of tokens", (bytes) => `{"model":"embedding-model","input":${list("[1],", bytes)}}`),
  // 75 MB of spaces.
  plain("token ids of 128 spaces", () =>
    JSON.stringify({
      model: "embedding-model",
      input: [Array.from({ length: 590_000 }, () => 58_040)],
    }),
  ),
  ...compressed("empty lists", (bytes) => list("[],", 3 * bytes)),
  ...compressed("nested lists", (bytes) => list(`${"[".repeat(60)}${"]".repeat(60)},`, 3 * bytes)),
  ...compressed("a text", (bytes) => text("a", 3 * bytes)),
  ...compressed("white space", (bytes) => " ".repeat(3 * bytes)),
  ...compressed("distinct names", (bytes) =>
    numbered(bytes, (index) => `"k${index}":1,`, "{", '"z":1}'),
  ),
  {
    name: "gzip in many members",
    make(bytes) {
      const part = "[],".repeat(1_000);
      const count = Math.ceil((3 * bytes) / part.length);
      const body = Buffer.concat(Array.from({ length: count }, () => gzipSync(part)));
      return { ...bombOf("gzip in many members", body, "gzip"), plainBytes: count * part.length };
    },
  },
  {
    name: "gzip of empty members",
    make(bytes) {
      const empty = gzipSync("");
      const body = Buffer.concat(Array.from({ length: Math.ceil(bytes / 100) }, () => empty));
      return { ...bombOf("gzip of empty members", body, "gzip"), plainBytes: 0 };
    },
  },
  {
    name: "zstd in many frames",
    make(bytes) {
      const part = "[],".repeat(1_000);
      const count = Math.ceil((3 * bytes) / part.length);
      const body = Buffer.concat(Array.from({ length: count }, () => zstdCompressSync(part)));
      return { ...bombOf("zstd in many frames", body, "zstd"), plainBytes: count * part.length };
    },
  },
  {
    name: "gzip in gzip",
    make(bytes) {
      const inner = gzipSync(" ".repeat(3 * bytes));
      const name = "gzip in gzip";
      return { ...bombOf(name, gzipSync(inner), "gzip"), plainBytes: inner.byteLength };
    },
  },
  {
    name: "gzip cut short",
    make(bytes) {
      const whole = gzipSync(chat('"a"', "user"));
      const name = "gzip cut short";
      return { ...bombOf(name, whole.subarray(0, whole.length - 9), "gzip"), plainBytes: bytes };
    },
  },
];

/** The heaviest that are served: as much of each as the bounds let through. */
export const heavyBodies: readonly BombPlan[] = [
  plain("one image", (bytes) =>
    JSON.stringify({
      model: "chat-model",
      messages: [
        {
          role: "user",
          content: [
            { type: "image_url", image_url: { url: `data:image/png;base64,${"A".repeat(bytes)}` } },
          ],
        },
      ],
    }),
  ),
  plain("2,000 messages and 128 tools", (bytes) => longConversation(bytes)),
  plain("the most parts of a message", () =>
    chat(
      `[{"role":"user","content":${list('{"type":"text","text":"a"},', 330_000, '{"type":"text","text":"a"}')}}]`,
      "messages",
    ),
  ),
  plain("the most distinct names", () =>
    chat(
      numbered(300_000, (index) => `"k${index}":1,`, "{", '"z":1}'),
      "other",
    ),
  ),
  plain("the most names that are numbers", () =>
    chat(
      numbered(350_000, (index) => `"${index * 1000}":1,`, "{", '"z":1}'),
      "other",
    ),
  ),
  plain("the most objects of one distinct name", () =>
    chat(
      numbered(260_000, (index) => `{"k${index}":1},`, "[", "1]"),
      "other",
    ),
  ),
  plain("the most empty lists", () => chat(list("[],", 350_000), "other")),
  plain("the most short escapes", (bytes) => text("a\\n", Math.min(bytes, 1_750_000))),
  plain("escaped characters", (bytes) => text("\\u4e2d", Math.min(bytes, 3_500_000))),
  plain("halves of surrogates", (bytes) => text("\\ud800", Math.min(bytes, 3_500_000))),
  plain("a text that is escaped everywhere", (bytes) => text(`${"a".repeat(16)}\\n`, bytes)),
  plain("a text of letters beyond Latin", (bytes) => say("中".repeat(bytes / 3))),
  plain("a text with one such letter", (bytes) => say(`中${"a".repeat(bytes)}`)),
  plain("a text of accents", (bytes) => say("é".repeat(bytes / 2))),
  plain("300,000 token numbers", () =>
    JSON.stringify({
      model: "embedding-model",
      // The answer is not what is measured.
      dimensions: 8,
      input: Array.from({ length: 2_048 }, () => Array.from({ length: 146 }, (_, index) => index)),
    }),
  ),
];

type MakeText = (bytes: number) => string;

function plain(name: string, makeText: MakeText): BombPlan {
  return { name, make: (bytes) => bombOf(name, new TextEncoder().encode(makeText(bytes))) };
}

/** The same text in each encoding that is taken. */
function compressed(name: string, makeText: MakeText): readonly BombPlan[] {
  const quality = { params: { [constants.BROTLI_PARAM_QUALITY]: 5 } };
  const encodings = {
    gzip: (data: Uint8Array) => gzipSync(data),
    br: (data: Uint8Array) => brotliCompressSync(data, quality),
    zstd: (data: Uint8Array) => zstdCompressSync(data),
  };
  return Object.entries(encodings).map(([encoding, compress]) => {
    const full = `${encoding} of ${name}`;
    return {
      name: full,
      make(bytes) {
        const data = new TextEncoder().encode(makeText(bytes));
        return { ...bombOf(full, compress(data), encoding), plainBytes: data.byteLength };
      },
    };
  });
}

function bombOf(name: string, body: Uint8Array, encoding?: string): Bomb {
  const isEmbedding = Buffer.from(body.subarray(0, 40)).includes("embedding-model");
  return {
    name,
    path: isEmbedding ? "/v1/embeddings" : "/v1/chat/completions",
    encoding,
    plainBytes: body.byteLength,
    body: new Uint8Array(body),
  };
}

function fill(part: string, bytes: number): string {
  return part.repeat(Math.max(1, Math.floor(bytes / part.length)));
}

/** `part` ends with a comma. */
function list(part: string, bytes: number, last = "1"): string {
  return `[${fill(part, bytes)}${last}]`;
}

function numbered(
  bytes: number,
  part: (index: number) => string,
  ...[open, close]: readonly [string, string]
): string {
  const parts = [open];
  for (let size = 0, index = 0; size < bytes; index += 1) {
    const next = part(index);
    size += next.length;
    parts.push(next);
  }
  return parts.join("") + close;
}

/** A chat request with this JSON in one of its fields. */
function chat(json: string, field: string): string {
  const messages = field === "messages" ? "" : '"messages":[{"role":"user","content":"hi"}],';
  return `{"model":"chat-model",${messages}"${field}":${json}}`;
}

/** A chat request that says this; escapes in it are those of JSON. */
function say(content: string): string {
  return chat(`[{"role":"user","content":"${content}"}]`, "messages");
}

function text(part: string, bytes: number): string {
  return say(fill(part, bytes));
}

function longConversation(bytes: number): string {
  const tool = (index: number): object => ({
    type: "function",
    function: {
      name: `tool_${index}`,
      description: "Does something useful.",
      parameters: {
        type: "object",
        properties: Object.fromEntries(
          Array.from({ length: 20 }, (_, at) => [
            `field_${at}`,
            { type: "string", description: `Field ${at} of it.` },
          ]),
        ),
      },
    },
  });
  const content = "word ".repeat(Math.floor(bytes / 2_000 / 5));
  return JSON.stringify({
    model: "chat-model",
    messages: Array.from({ length: 2_000 }, (_, index) => ({
      role: index % 2 === 0 ? "user" : "assistant",
      content,
    })),
    tools: Array.from({ length: 128 }, (_, index) => tool(index)),
  });
}
