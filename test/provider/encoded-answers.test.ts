import { expect, test } from "bun:test";
import { gzipSync } from "node:zlib";
import { chatOf } from "../support/bodies.ts";
import { completion, gatewayOf, startProvider, streamedText, whole } from "./provider.ts";

const chat = { model: "chat-model", messages: [{ role: "user", content: "Hi" }] };

const encoded = (bytes: Uint8Array, encoding: string, status = 200, type = "application/json") =>
  new Response(bytes, { status, headers: { "content-encoding": encoding, "content-type": type } });

test.each(["UTF-8", "none", "identity"])("an encoding that is named %s is none", async (name) => {
  const answer = () => encoded(Buffer.from(JSON.stringify(completion("Hello"))), name);
  await using provider = startProvider(answer);
  await using gateway = await gatewayOf([provider]);
  const response = await gateway.post("/v1/chat/completions", chat);
  expect((await chatOf(response)).choices[0]?.message.content).toBe("Hello");
});

test("a compressed answer, which nobody asked for, is broken: the next target is tried", async () => {
  const events = gzipSync(await streamedText("first").text());
  await using broken = startProvider(({ body }) =>
    body["stream"] === true
      ? encoded(events, "gzip", 200, "text/event-stream")
      : encoded(gzipSync(JSON.stringify(completion("first"))), "gzip"),
  );
  await using sound = startProvider(({ body }) =>
    body["stream"] === true ? streamedText("second") : whole("second"),
  );
  await using gateway = await gatewayOf([broken, sound]);
  for (const stream of [false, true]) {
    const response = await gateway.post("/v1/chat/completions", { ...chat, stream });
    expect(await response.text()).toContain("second");
  }
  expect(gateway.log.join("\n")).toContain("compressed its answer without being asked to");
});

test("a compressed error keeps its status", async () => {
  const error = gzipSync(JSON.stringify({ error: { message: "temperature must be below 2" } }));
  await using provider = startProvider(() => encoded(error, "gzip", 400));
  await using gateway = await gatewayOf([provider]);
  const response = await gateway.post("/v1/chat/completions", chat);
  await response.text();
  expect(response.status).toBe(400);
});
