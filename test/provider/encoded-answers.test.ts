import { expect, test } from "bun:test";
import {
  brotliCompressSync,
  deflateRawSync,
  deflateSync,
  gzipSync,
  zstdCompressSync,
} from "node:zlib";
import { chatOf, errorOf, streamOf } from "../support/bodies.ts";
import { completion, gatewayOf, startProvider, streamedText, whole } from "./provider.ts";

/** Upstreams that compress their answers although they were not asked to. */

const chat = { model: "chat-model", messages: [{ role: "user", content: "Hi" }] };

const encodings: readonly (readonly [string, string, (text: string) => Uint8Array])[] = [
  ["gzip", "gzip", gzipSync],
  ["x-gzip", "X-GZIP", gzipSync],
  ["deflate", "deflate", deflateSync],
  ["deflate without its wrapper", "deflate", deflateRawSync],
  ["brotli", "br", brotliCompressSync],
  ["zstd", "zstd", zstdCompressSync],
];

const encoded = (bytes: Uint8Array, encoding: string, status = 200, type = "application/json") =>
  new Response(bytes, { status, headers: { "content-encoding": encoding, "content-type": type } });

test.each(encodings)("%s is read: whole answers, streams and errors", async (_, name, encode) => {
  await using provider = startProvider(() => whole(""));
  await using gateway = await gatewayOf([provider]);
  const post = (body: object) => gateway.post("/v1/chat/completions", body);

  provider.answers(() => encoded(encode(JSON.stringify(completion("Hello ü"))), name));
  expect((await chatOf(await post(chat))).choices[0]?.message.content).toBe("Hello ü");

  const events = await streamedText("Good ", "bye").text();
  provider.answers(() => encoded(encode(events), name, 200, "text/event-stream"));
  const { chunks, isDone } = await streamOf(await post({ ...chat, stream: true }));
  const text = chunks.map(({ choices }) => choices[0]?.delta.content ?? "").join("");
  expect([text, isDone]).toEqual(["Good bye", true]);

  const error = { message: "temperature must be below 2", param: "temperature" };
  provider.answers(() => encoded(encode(JSON.stringify({ error })), name, 400));
  expect(await errorOf(await post(chat))).toMatchObject(error);
});

test.each([
  ["a character set", "UTF-8", (text: string) => Buffer.from(text)],
  ["a word for none", "none", (text: string) => Buffer.from(text)],
  ["identity besides", "gzip, identity", gzipSync],
])("an encoding that names %s is read", async (_, name, encode) => {
  const answer = () => encoded(encode(JSON.stringify(completion("Hello"))), name);
  await using provider = startProvider(answer);
  await using gateway = await gatewayOf([provider]);
  const response = await gateway.post("/v1/chat/completions", chat);
  expect((await chatOf(response)).choices[0]?.message.content).toBe("Hello");
});

test("events of a compressed stream reach the caller as they come", async () => {
  const events = (await streamedText("Good ", "bye").text()).split("\n\n");
  const halves = [events.slice(0, 1), events.slice(1)].map((half) => half.join("\n\n"));
  const released = Promise.withResolvers<void>();
  await using provider = startProvider(() => {
    const body = new ReadableStream({
      type: "direct",
      async pull(controller: ReadableStreamDirectController) {
        // Each member of a gzip body is whole.
        void controller.write(gzipSync(`${halves[0]}\n\n`));
        await controller.flush();
        await released.promise;
        void controller.write(gzipSync(halves[1] ?? ""));
        controller.close();
      },
    });
    const headers = { "content-encoding": "gzip", "content-type": "text/event-stream" };
    return new Response(body, { headers });
  });
  await using gateway = await gatewayOf([provider]);
  const response = await gateway.post("/v1/chat/completions", { ...chat, stream: true });
  const body: ReadableStream<Uint8Array> | null = response.body;
  const reader = body?.getReader();
  const first = await reader?.read();
  expect(new TextDecoder().decode(first?.value)).toContain("Good ");
  released.resolve();
  let rest = "";
  for (;;) {
    const next = await reader?.read();
    if (next === undefined || next.done) break;
    rest += new TextDecoder().decode(next.value);
  }
  expect(rest).toContain("bye");
  expect(rest).toContain("[DONE]");
});

test.each([
  ["is cut", (bytes: Uint8Array) => bytes.slice(0, bytes.length - 12), "gzip"],
  ["is no gzip", () => new TextEncoder().encode(JSON.stringify(completion("Hello"))), "gzip"],
  ["has two encodings", (bytes: Uint8Array) => gzipSync(bytes), "gzip, gzip"],
  ["has an unknown encoding", (bytes: Uint8Array) => bytes, "lzma"],
] as const)("an answer that %s goes to the next target", async (_, change, encoding) => {
  const bytes = gzipSync(JSON.stringify(completion("first".repeat(100))));
  await using broken = startProvider(() => encoded(change(bytes), encoding));
  await using sound = startProvider(() => whole("second"));
  await using gateway = await gatewayOf([broken, sound]);
  const answer = await chatOf(await gateway.post("/v1/chat/completions", chat));
  expect(answer.choices[0]?.message.content).toBe("second");
  expect(gateway.log.join("\n")).toContain("broken-answer");
});

test("an answer that is small until it is unpacked is bounded, whole or streamed", async () => {
  const filler = "\n".repeat(16 * 1024 * 1024);
  const bombs = [JSON.stringify(completion("first")), await streamedText("first").text()].map(
    (text) => gzipSync(filler + text),
  );
  await using hostile = startProvider(({ body }) => {
    const isStreamed = body["stream"] === true;
    const type = isStreamed ? "text/event-stream" : "application/json";
    return encoded(bombs[isStreamed ? 1 : 0] ?? new Uint8Array(), "gzip", 200, type);
  });
  await using sound = startProvider(({ body }) =>
    body["stream"] === true ? streamedText("second") : whole("second"),
  );
  await using gateway = await gatewayOf([hostile, sound]);
  for (const stream of [false, true]) {
    const response = await gateway.post("/v1/chat/completions", { ...chat, stream });
    expect(await response.text()).toContain("second");
  }
});

test("a long stream whose events repeat each other is no bomb", async () => {
  const texts = Array.from({ length: 60_000 }, () => "again ");
  const events = await streamedText(...texts).text();
  expect(events.length).toBeGreaterThan(8 * 1024 * 1024);
  await using provider = startProvider(() =>
    encoded(gzipSync(events), "gzip", 200, "text/event-stream"),
  );
  await using gateway = await gatewayOf([provider]);
  const response = await gateway.post("/v1/chat/completions", { ...chat, stream: true });
  expect((await response.text()).endsWith("data: [DONE]\n\n")).toBe(true);
});
