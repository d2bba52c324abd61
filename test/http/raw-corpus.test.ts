import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { errorShapeProblem } from "./error-shape.ts";
import { RawConnection, type RawAnswer } from "./raw-connection.ts";

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startGateway({
    sections: {
      http: `{ body_timeout: 1s, idle_timeout: 1s, body_limit: 64KiB, decompressed_limit: 128KiB }`,
    },
  });
});
afterAll(async () => {
  expect(gateway.log.filter((line) => line.includes(`"level":"error"`))).toEqual([]);
  await gateway[Symbol.asyncDispose]();
});

/** Replaced by the header with the gateway's key, which exists only once it runs. */
const authorization = "Authorization: KEY\r\n";
const host = "Host: models.example\r\n";
const json = "Content-Type: application/json\r\n";
const chunked = "Transfer-Encoding: chunked\r\n";
const body = JSON.stringify({
  model: "chat-model",
  messages: [{ role: "user", content: "echo: hi" }],
});
const length = `Content-Length: ${body.length}\r\n`;

interface RequestParts {
  readonly method?: string;
  readonly version?: string;
  /** All of them. */
  readonly headers?: string;
  readonly body?: string;
}

function request(target: string, parts: RequestParts = {}): string {
  const { method = "GET", version = "1.1", headers = host + authorization } = parts;
  return `${method} ${target} HTTP/${version}\r\n${headers}\r\n${parts.body ?? ""}`;
}

function get(extraHeaders: string): string {
  return request("/v1/models", { headers: host + authorization + extraHeaders });
}

/** A chat call whose framing is given. */
function post(framing: string, content: string): string {
  const headers = host + authorization + json + framing;
  return request("/v1/chat/completions", { method: "POST", headers, body: content });
}

function chunks(text: string): string {
  return `${text.length.toString(16)}\r\n${text}\r\n0\r\n\r\n`;
}

function manyHeaders(count: number, line = (index: number) => `X-${index}: 1\r\n`): string {
  return Array.from({ length: count }, (_, index) => line(index)).join("");
}

const size = body.length.toString(16);
const probe = request("/healthz", { headers: host });
/** Its answer differs from the probe's, so that the test would see it taken for a request. */
const smuggled = request("/readyz", { headers: host });

/** The result: the status, and whether the connection stays open or is closed after it. */
type Outcome = readonly [status: number | "none", then: "open" | "closed"];

type Row = readonly [name: string, input: string, ...outcome: Outcome];

async function exchange(input: string): Promise<{ outcome: Outcome; answer?: RawAnswer }> {
  using connection = await RawConnection.open(gateway.port);
  connection.write(input.replaceAll("Authorization: KEY", `Authorization: Bearer ${gateway.key}`));
  const answer = await connection.answer(input.startsWith("HEAD") ? "HEAD" : "GET");
  if (answer === undefined) return { outcome: ["none", "closed"] };
  connection.write(probe);
  const next = await connection.answer();
  if (next !== undefined) expect([next.status, next.body]).toEqual([200, "ok\n"]);
  return { outcome: [answer.status, next === undefined ? "closed" : "open"], answer };
}

function expectErrorShape(answer: RawAnswer): void {
  expect(errorShapeProblem(answer.headers, answer.body)).toBeUndefined();
}

function describeRows(title: string, rows: readonly Row[], check: (answer: RawAnswer) => void) {
  describe(title, () => {
    for (const [name, input, ...expected] of rows) {
      test(name, async () => {
        const { outcome, answer } = await exchange(input);
        expect(outcome).toEqual(expected);
        if (answer !== undefined) check(answer);
      });
    }
  });
}

describeRows(
  "refused by Sluice in OpenAI's error shape:",
  [
    ["two Host headers", get(host), 400, "closed"],
    ["two different Host headers", get("Host: other.example\r\n"), 400, "closed"],
    ["a Host with user and path", request("/", { headers: "Host: a@b/c\r\n" }), 400, "closed"],
    ["a Host with a space", request("/", { headers: "Host: a b\r\n" }), 400, "closed"],
    ["a Host with a word for a port", request("/", { headers: "Host: a:b\r\n" }), 400, "closed"],
    [
      "a Host with six digits of port",
      request("/", { headers: "Host: a:123456\r\n" }),
      400,
      "closed",
    ],
    ["a Host with a comma", request("/", { headers: "Host: a,b\r\n" }), 400, "closed"],
    ["a Host beyond ASCII", request("/", { headers: "Host: a\xe4b\r\n" }), 400, "closed"],
    [
      "a Host with a broken IPv6 address",
      request("/", { headers: "Host: [::1\r\n" }),
      400,
      "closed",
    ],
    ["an empty Host", request("/healthz", { headers: "Host:\r\n" }), 400, "closed"],
    ["HTTP/1.0 without Host", request("/", { version: "1.0", headers: "" }), 400, "closed"],
    ["two Authorization headers", get(authorization), 400, "closed"],
    [
      "an Authorization header of nobody behind the right one",
      get("Authorization: Bearer x\r\n"),
      400,
      "closed",
    ],
    [
      "an empty Authorization header beside the right one",
      get("Authorization:\r\n"),
      400,
      "closed",
    ],
    ["the same Content-Length twice", post(length + length, body), 400, "closed"],
    ["a body on GET by length", get("Content-Length: 5\r\n") + "hello", 400, "closed"],
    ["a body on GET in chunks", get(chunked) + chunks("hello"), 400, "closed"],
    [
      "a request as the body of a GET",
      get(`Content-Length: ${smuggled.length}\r\n`) + smuggled,
      400,
      "closed",
    ],
    ["101 headers", get(manyHeaders(99)), 431, "open"],
    [
      "a Content-Length over the limit, unsent",
      post("Content-Length: 100000\r\n", ""),
      413,
      "closed",
    ],
    [
      "a Content-Length over the limit",
      post("Content-Length: 100000\r\n", "x".repeat(100_000)),
      413,
      "closed",
    ],
    [
      "a request as a body over the limit",
      post("Content-Length: 100000\r\n", smuggled),
      413,
      "closed",
    ],
    ["chunks over the limit", post(chunked, chunks("x".repeat(100_000))), 413, "closed"],
    [
      "chunks over the limit without an end",
      post(chunked, `fffff\r\n${"x".repeat(100_000)}`),
      413,
      "closed",
    ],
    ["a body that never ends by length", post("Content-Length: 500\r\n", body), 408, "closed"],
    ["a body that never ends in chunks", post(chunked, "ff\r\nabc"), 408, "closed"],
    [
      "no content type",
      request("/v1/embeddings", { method: "POST", headers: host + authorization + length, body }),
      415,
      "closed",
    ],
    ["no body and no length", post("", ""), 400, "open"],
    ["an empty body", post("Content-Length: 0\r\n", ""), 400, "open"],
    [
      "no key, body unread",
      request("/v1/embeddings", { method: "POST", headers: host + json + length, body }),
      401,
      "open",
    ],
    [
      "no key, chunks unread",
      request("/v1/embeddings", {
        method: "POST",
        headers: host + json + chunked,
        body: chunks(smuggled),
      }),
      401,
      "closed",
    ],
    [
      "an unknown path, body unread",
      request("/nope", { method: "POST", headers: host + length, body }),
      404,
      "open",
    ],
    [
      "an unknown path, with a request as chunks",
      request("/nope", { method: "POST", headers: host + chunked, body: chunks(smuggled) }),
      404,
      "closed",
    ],
    [
      "a wrong method, body unread",
      request("/v1/models", { method: "POST", headers: host + length, body }),
      405,
      "open",
    ],
    ["TRACE", request("/v1/models", { method: "TRACE" }), 405, "open"],
    ["PURGE", request("/v1/models", { method: "PURGE" }), 405, "open"],
    ["a path that is a host", request("//evil.example/v1/models"), 400, "closed"],
    ["three slashes", request("///v1/models"), 400, "closed"],
    ["a lone percent sign", request("/v1/models/%"), 404, "open"],
    ["percent and no digits", request("/v1/models/%zz"), 404, "open"],
    ["percent-encoded bytes that are no UTF-8", request("/v1/models/%ff"), 404, "open"],
    ["a percent-encoded NUL", request("/v1/models/%00"), 404, "open"],
    ["a percent-encoded endpoint", request("/v1/%6dodels"), 404, "open"],
    ["a path beyond ASCII", request("/v1/m\xf6dels"), 404, "open"],
    ["a path of 10 kB", request(`/v1/models/${"a".repeat(10_000)}`), 404, "open"],
  ],
  expectErrorShape,
);

describeRows(
  "refused by the runtime, which closes:",
  [
    ["no Host", request("/v1/models", { headers: authorization }), 400, "closed"],
    ["Content-Length and Transfer-Encoding", post(length + chunked, chunks(body)), 400, "closed"],
    ["Transfer-Encoding and Content-Length", post(chunked + length, chunks(body)), 400, "closed"],
    ["two lengths that differ", post(`${length}Content-Length: 3\r\n`, body), 400, "closed"],
    ["a list of lengths", post("Content-Length: 5, 5\r\n", body), 400, "closed"],
    ["a length with a plus sign", post("Content-Length: +5\r\n", body), 400, "closed"],
    ["a negative length", post("Content-Length: -1\r\n", body), 400, "closed"],
    ["a hexadecimal length", post(`Content-Length: 0x${size}\r\n`, body), 400, "closed"],
    ["an empty length", post("Content-Length: \r\n", body), 400, "closed"],
    ["a length beyond 64 bits", post(`Content-Length: 9${"0".repeat(20)}\r\n`, ""), 400, "closed"],
    ["a length beyond 53 bits", post("Content-Length: 9007199254740993\r\n", ""), 413, "closed"],
    ["a length with a space in it", post("Content-Length: 1 0\r\n", body), 400, "closed"],
    ["an unknown coding", post("Transfer-Encoding: xchunked\r\n", chunks(body)), 400, "closed"],
    ["chunked twice over", post("Transfer-Encoding: chunked, chunked\r\n", ""), 400, "closed"],
    ["chunked in two headers", post(chunked + chunked, chunks(body)), 400, "closed"],
    ["gzip before chunked", post("Transfer-Encoding: gzip, chunked\r\n", ""), 400, "closed"],
    ["coding identity", post("Transfer-Encoding: identity\r\n", body), 400, "closed"],
    ["a tab before chunked", post("Transfer-Encoding: \x0bchunked\r\n", ""), 400, "closed"],
    ["a space before the colon", post("Transfer-Encoding : chunked\r\n", ""), 400, "closed"],
    ["chunks in lines of bare LF", post(chunked, `${size}\n${body}\n0\n\n`), 400, "closed"],
    ["a negative chunk size", post(chunked, `-1\r\n${body}\r\n0\r\n\r\n`), 400, "closed"],
    ["a chunk size with 0x", post(chunked, `0x${size}\r\n${body}\r\n0\r\n\r\n`), 400, "closed"],
    ["a chunk size beyond 64 bits", post(chunked, `${"f".repeat(18)}\r\n${body}`), 400, "closed"],
    ["a chunk size without digits", post(chunked, `zz\r\n${body}\r\n0\r\n\r\n`), 400, "closed"],
    ["no chunk size", post(chunked, `\r\n${body}\r\n0\r\n\r\n`), 400, "closed"],
    ["a chunk longer than its size", post(chunked, `5\r\n${body}\r\n0\r\n\r\n`), 400, "closed"],
    [
      "a bare LF in an extension",
      post(chunked, `${size};a=\n\r\n${body}\r\n0\r\n\r\n`),
      400,
      "closed",
    ],
    [
      "a space before a chunk size",
      post(chunked, ` ${size}\r\n${body}\r\n0\r\n\r\n`),
      400,
      "closed",
    ],
    ["trailers", post(chunked, `${size}\r\n${body}\r\n0\r\nX-A: b\r\n\r\n`), 400, "closed"],
    [
      "HTTP/1.0 in chunks",
      request("/", { version: "1.0", headers: host + chunked }),
      400,
      "closed",
    ],
    ["a folded header", get("X-A: b\r\n c\r\n"), 400, "closed"],
    ["a fold before all headers", request("/", { headers: ` X-A: b\r\n${host}` }), 400, "closed"],
    ["NUL in a header's name", get("X-\0A: b\r\n"), 400, "closed"],
    ["NUL in a header's value", get("X-A: b\0c\r\n"), 400, "closed"],
    ["a bare CR in a value", get("X-A: b\rc\r\n"), 400, "closed"],
    ["a bare LF after a header", get("X-A: b\nX-B: c\r\n"), 400, "closed"],
    ["a header without colon", get("X-A\r\n"), 400, "closed"],
    ["a header without name", get(": a\r\n"), 400, "closed"],
    ["2100 headers", get(manyHeaders(2100)), 431, "closed"],
    ["a header of 20 kB", get(`X-A: ${"a".repeat(20_000)}\r\n`), 431, "closed"],
    ["a path of 100 kB", request(`/v1/models/${"a".repeat(100_000)}`), 431, "closed"],
    ["lines of bare LF", request("/healthz").replaceAll("\r\n", "\n"), 505, "closed"],
    ["HTTP/2.0", request("/healthz", { version: "2.0" }), 505, "closed"],
    ["HTTP/1.2", request("/healthz", { version: "1.2" }), 505, "closed"],
    ["HTTP/0.9", "GET /healthz\r\n\r\n", 505, "closed"],
    ["the preface of HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400, "closed"],
    [
      "a TLS hello",
      `\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03${"a".repeat(80)}\r\n\r\n`,
      400,
      "closed",
    ],
    ["OPTIONS *", request("*", { method: "OPTIONS" }), 400, "closed"],
    ["GET *", request("*"), 400, "closed"],
    ["a path of backslashes", request("\\v1\\models"), 400, "closed"],
    ["a path without a slash", request("v1/models"), 400, "closed"],
    ["no path", request(""), 400, "closed"],
    ["a space in the path", request("/v1/ models"), 505, "closed"],
    ["NUL in the path", request("/v1/m\0dels"), 505, "closed"],
    ["an empty line before the request", `\r\n${request("/healthz")}`, 400, "closed"],
    ["an unknown method", request("/healthz", { method: "FOO" }), "none", "closed"],
    ["a method in lower case", request("/healthz", { method: "get" }), "none", "closed"],
  ],
  (answer) => expect(answer.body).toBe(""),
);

describeRows(
  "odd, and served:",
  [
    ["100 headers", get(manyHeaders(98)), 200, "open"],
    ["a GET that says it has no body", get("Content-Length: 0\r\n"), 200, "open"],
    ["a body in chunks", post(chunked, chunks(body)), 200, "open"],
    ["CHUNKED", post("Transfer-Encoding: CHUNKED\r\n", chunks(body)), 200, "open"],
    ["a chunk extension", post(chunked, `${size};a=b\r\n${body}\r\n0\r\n\r\n`), 200, "open"],
    ["HTTP/1.0", request("/healthz", { version: "1.0" }), 200, "closed"],
    ["connection: close", get("Connection: close\r\n"), 200, "closed"],
    ["an absolute target", request("http://models.example/v1/models"), 200, "open"],
    ["a query", request("/v1/models?limit=1&%zz"), 200, "open"],
    ["an encoded model name", request("/v1/models/chat%2Dmodel"), 200, "open"],
    [
      "a Host with a port",
      request("/healthz", { headers: "Host: models.example:8080\r\n" }),
      200,
      "open",
    ],
    ["a Host in IPv6", request("/healthz", { headers: "Host: [::1]:8080\r\n" }), 200, "open"],
    ["an upgrade to WebSocket", get("Connection: Upgrade\r\nUpgrade: websocket\r\n"), 200, "open"],
    ["an upgrade to h2c", get("Connection: Upgrade\r\nUpgrade: h2c\r\n"), 200, "open"],
    ["an unknown expectation", post(`Expect: 200-maybe\r\n${length}`, body), 200, "open"],
    ["HEAD", request("/v1/models", { method: "HEAD" }), 200, "open"],
  ],
  (answer) => expect(answer.headers.get("x-request-id")).toMatch(/^req_[0-9a-f]{32}$/),
);
