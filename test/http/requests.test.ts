import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import {
  brotliCompressSync,
  deflateRawSync,
  deflateSync,
  gzipSync,
  zstdCompressSync,
} from "node:zlib";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { errorOf } from "../support/bodies.ts";
import { errorShapeProblem } from "./error-shape.ts";

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startGateway({
    sections: { http: `{ body_limit: 64KiB, decompressed_limit: 128KiB }` },
  });
});
afterAll(async () => {
  expect(gateway.log.filter((line) => line.includes(`"level":"error"`))).toEqual([]);
  await gateway[Symbol.asyncDispose]();
});

const chatPath = "/v1/chat/completions";
const hello = { model: "chat-model", messages: [{ role: "user", content: "echo: hi" }] };
const text = JSON.stringify(hello);

function send(body: Uint8Array<ArrayBuffer> | string, headers: Record<string, string>) {
  return gateway.post(chatPath, "", { body, headers });
}

async function expectError(response: Response, status: number): Promise<void> {
  const body = await response.text();
  expect(response.status).toBe(status);
  expect(errorShapeProblem(response.headers, body)).toBeUndefined();
}

describe("content types", () => {
  for (const type of [
    "application/json",
    "application/json; charset=utf-8",
    "application/json;charset=UTF-8",
    "Application/JSON",
    " application/json ",
  ]) {
    test(`'${type}' is taken`, async () => {
      expect((await send(text, { "content-type": type })).status).toBe(200);
    });
  }
  for (const type of [
    "text/plain",
    "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=x",
    "application/jsonx",
    "application/json, text/plain",
    "json",
  ]) {
    test(`'${type}' is refused with 415 and the connection closed`, async () => {
      const response = await send(text, { "content-type": type });
      expect(response.headers.get("connection")).toBe("close");
      await expectError(response, 415);
    });
  }
});

describe("content encodings", () => {
  const bytes = Buffer.from(text);
  const good: readonly (readonly [string, Buffer | string])[] = [
    ["identity", bytes],
    ["gzip", gzipSync(bytes)],
    ["GZIP", gzipSync(bytes)],
    ["x-gzip", gzipSync(bytes)],
    ["deflate", deflateSync(bytes)],
    ["br", brotliCompressSync(bytes)],
    ["zstd", zstdCompressSync(bytes)],
  ];
  for (const [encoding, body] of good) {
    test(`a body in ${encoding} is read`, async () => {
      const response = await send(new Uint8Array(Buffer.from(body)), {
        "content-encoding": encoding,
      });
      expect(response.status).toBe(200);
    });
  }

  const packers = {
    gzip: gzipSync,
    deflate: deflateSync,
    br: brotliCompressSync,
    zstd: zstdCompressSync,
  };
  for (const [encoding, pack] of Object.entries(packers)) {
    test(`a body in ${encoding} that is cut short, corrupt, or not compressed is refused`, async () => {
      const packed = pack(bytes);
      const corrupt = new Uint8Array(packed);
      corrupt.fill(0x55, 6, 24);
      const headers = { "content-encoding": encoding };
      await expectError(await send(new Uint8Array(packed.subarray(0, -6)), headers), 400);
      await expectError(await send(corrupt, headers), 400);
      await expectError(await send(text, headers), 400);
      await expectError(await send("", headers), 400);
    });

    test(`a bomb in ${encoding} ends at the limit for unpacked bodies`, async () => {
      const bomb = new Uint8Array(pack(Buffer.alloc(16 * 1024 * 1024, " ")));
      expect(bomb.length).toBeLessThan(64 * 1024);
      const response = await send(bomb, { "content-encoding": encoding });
      await expectError(response, 413);
    });

    test(`a body in ${encoding} of exactly the limit passes it`, async () => {
      const padded = text.padEnd(128 * 1024, " ");
      const response = await send(new Uint8Array(pack(Buffer.from(padded))), {
        "content-encoding": encoding,
      });
      expect(response.status).toBe(200);
    });
  }

  test("bare deflate, as some old clients send it, is not taken for the real one", async () => {
    const body = new Uint8Array(deflateRawSync(bytes));
    await expectError(await send(body, { "content-encoding": "deflate" }), 400);
  });

  for (const encoding of ["gzip, gzip", "gzip,br", "compress", "gzip;q=1", "chunked", "*"]) {
    test(`'${encoding}' is refused with 415`, async () => {
      const body = new Uint8Array(gzipSync(gzipSync(bytes)));
      const response = await send(body, { "content-encoding": encoding });
      expect(response.headers.get("connection")).toBe("close");
      await expectError(response, 415);
    });
  }

  test("a body of exactly the limit is read, one byte more is not", async () => {
    const limit = 64 * 1024;
    expect((await send(text.padEnd(limit, " "), {})).status).toBe(200);
    await expectError(await send(text.padEnd(limit + 1, " "), {}), 413);
  });
});

describe("paths and methods", () => {
  const served = [
    "/v1/models",
    "/models",
    "/v1/v1/models",
    "/v1/models/",
    "/v1/models/chat-model",
    "/models/chat-model/",
  ];
  for (const path of served) {
    test(`${path} is served`, async () => {
      expect((await gateway.get(path)).status).toBe(200);
    });
  }

  for (const path of ["/chat/completions", "/v1/v1/chat/completions", "/v1/chat/completions/"]) {
    test(`POST ${path} is served`, async () => {
      expect((await gateway.post(path, hello)).status).toBe(200);
    });
  }

  const unknown = [
    "/",
    "/v1",
    "/v1/",
    "/v2/models",
    "/v1/chat",
    "/v1/completions",
    "/v1/chat/completions/x",
    "/v1/v1/v1/models",
    "/V1/models",
    "/metrics",
    "/v1/models/nobody",
    "/__proto__",
    "/constructor",
  ];
  for (const path of unknown) {
    test(`${path} is not there`, async () => expectError(await gateway.get(path), 404));
  }

  const others = [
    ["/v1/responses/resp_1/cancel", "close the connection to cancel"],
    ["/responses/compact", "ask the model for a summary"],
    ["/v1/conversations", "send the whole conversation to POST /v1/responses"],
    ["/v1/completions", "with the prompt as a user message"],
    ["/openai/deployments/gpt/chat/completions", "a base URL that ends in /v1"],
    ["/api/generate", "Ollama's API is not served"],
    ["/v1beta/models/x:generateContent", "Gemini's API is not served"],
    ["/v1/audio/speech", "Only chat completions, responses, embeddings and the list of models"],
    [
      "/v1/images/generations",
      "Only chat completions, responses, embeddings and the list of models",
    ],
    ["/v1/files/", "Only chat completions, responses, embeddings and the list of models"],
    ["/v1/chat", "The base URL must end in /v1"],
    ["/v1/filesystem", "Please check the URL for typos"],
  ] as const;
  test("an unknown path is told every endpoint that may succeed, and no other", async () => {
    const response = await gateway.post("/v2/v1/messages", hello);
    expect((await errorOf(response)).message).toEndWith(
      "the endpoints are POST /v1/chat/completions, POST /v1/responses, " +
        "POST /v1/responses/input_tokens, POST /v1/embeddings, GET /v1/models, GET /v1/usage, " +
        "POST /v1/messages " +
        "and POST /v1/messages/count_tokens. Sluice's docs/clients.md has set-ups for clients.",
    );
  });

  for (const [path, advice] of others) {
    test(`${path} is told what to do instead`, async () => {
      const response = await gateway.post(path, hello);
      expect(response.status).toBe(404);
      expect((await errorOf(response)).message).toContain(advice);
    });
  }

  test("a base URL with the endpoint in it is explained", async () => {
    const response = await gateway.post("/v1/chat/completions/chat/completions", hello);
    expect(response.status).toBe(404);
    const error = await errorOf(response);
    expect(error.code).toBe("unknown_url");
    expect(error.message).toContain("must end before '/chat/completions'");
  });

  const wrong: readonly (readonly [string, string, string])[] = [
    ["GET", "/v1/chat/completions", "POST"],
    ["PUT", "/v1/chat/completions", "POST"],
    ["DELETE", "/v1/embeddings", "POST"],
    ["PATCH", "/v1/models/chat-model", "GET"],
    ["POST", "/v1/models", "GET"],
  ];
  for (const [method, path, allowed] of wrong) {
    test(`${method} ${path} is refused with 405 that allows ${allowed}`, async () => {
      const response = await gateway.get(path, { method });
      expect(response.headers.get("allow")).toContain(allowed);
      await expectError(response, 405);
    });
  }

  test("HEAD is answered as GET, without a body", async () => {
    for (const path of ["/v1/models", "/healthz"]) {
      const response = await gateway.get(path, { method: "HEAD" });
      expect([response.status, await response.text()]).toEqual([200, ""]);
    }
    const missing = await gateway.get("/v1/nope", { method: "HEAD" });
    expect([missing.status, await missing.text()]).toEqual([404, ""]);
  });
});

describe("browsers", () => {
  const origin = "https://app.example";

  test("a preflight is answered without a key and reflects the headers asked for", async () => {
    const response = await fetch(`${gateway.url}${chatPath}`, {
      method: "OPTIONS",
      headers: {
        origin,
        "access-control-request-method": "POST",
        "access-control-request-headers": "authorization,content-type,x-stainless-lang",
      },
    });
    expect([response.status, await response.text()]).toEqual([204, ""]);
    expect(response.headers.get("access-control-allow-origin")).toBe("*");
    expect(response.headers.get("access-control-allow-methods")).toContain("POST");
    expect(response.headers.get("access-control-allow-headers")).toBe(
      "authorization,content-type,x-stainless-lang",
    );
    expect(response.headers.get("access-control-allow-credentials")).toBeNull();
    expect(response.headers.get("x-request-id")).toMatch(/^req_/);
  });

  test("answers and errors show a page their ids and limits", async () => {
    const answered = await gateway.post(chatPath, hello, { headers: { origin } });
    const failed = await gateway.get("/nope", { headers: { origin } });
    const streamed = await gateway.post(
      chatPath,
      { ...hello, stream: true },
      { headers: { origin } },
    );
    await streamed.text();
    for (const { headers } of [answered, failed, streamed]) {
      expect(headers.get("access-control-allow-origin")).toBe("*");
      const exposed = headers.get("access-control-expose-headers") ?? "";
      for (const name of ["x-request-id", "retry-after-ms", "x-ratelimit-remaining-tokens"]) {
        expect(exposed).toContain(name);
      }
    }
  });

  test("a page may read each header that the gateway has for callers of its dialect", async () => {
    const model = "chat-model";
    const messages = [{ role: "user", content: "Hi" }];
    const found = new Set<string>();
    for (const [path, body] of [
      [chatPath, { model, messages }],
      ["/v1/responses", { model, input: "Hi" }],
      ["/v1/responses/input_tokens", { model, input: "Hi" }],
      ["/v1/messages", { model, messages, max_tokens: 9, top_k: 9 }],
      ["/v1/messages", { model, messages, max_tokens: 9, stream: true }],
      ["/v1/messages", { model, messages: [] }],
      ["/v1/messages/count_tokens", { model, messages }],
    ] as const) {
      const { headers, body: stream } = await gateway.post(path, body, { headers: { origin } });
      await stream?.cancel();
      const exposed = headers.get("access-control-expose-headers")?.split(", ");
      const own = [...headers.keys()].filter((name) =>
        /^(?:x-(?!content|accel)|anthropic-|openai-|request-id|retry-)/.test(name),
      );
      expect(own.filter((name) => exposed?.includes(name) !== true)).toEqual([]);
      for (const name of own) found.add(name);
    }
    for (const name of ["request-id", "anthropic-ratelimit-tokens-reset", "x-sluice-estimate"]) {
      expect(found).toContain(name);
    }
  });

  test("a caller that is not a page on another origin gets no such headers", async () => {
    const { headers } = await gateway.get("/v1/models");
    expect([...headers.keys()].filter((name) => name.startsWith("access-control"))).toEqual([]);
  });

  test("only configured origins are allowed when there are some", async () => {
    await using strict = await startGateway({
      sections: { http: `{ allowed_origins: ["${origin}"] }` },
    });
    const allowed = await strict.get("/v1/models", { headers: { origin } });
    expect(allowed.headers.get("access-control-allow-origin")).toBe(origin);
    expect(allowed.headers.get("vary")).toBe("origin");
    for (const stranger of ["https://evil.example", "null", `${origin}.evil.example`]) {
      const refused = await strict.get("/v1/models", { headers: { origin: stranger } });
      expect(refused.headers.get("access-control-allow-origin")).toBeNull();
      const preflight = await fetch(`${strict.url}${chatPath}`, {
        method: "OPTIONS",
        headers: { origin: stranger, "access-control-request-method": "POST" },
      });
      expect(preflight.headers.get("access-control-allow-headers")).toBeNull();
    }
  });
});
