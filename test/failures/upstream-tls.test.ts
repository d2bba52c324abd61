import { afterAll, beforeAll, expect, test } from "bun:test";
import { errorOf } from "../support/bodies.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import * as certificates from "../support/tls-certificates.ts";

/** An upstream with a certificate of a company's own authority. */
let requests = 0;
const upstream = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  tls: { cert: certificates.serverCertificate, key: certificates.serverKey },
  fetch() {
    requests += 1;
    const message = { role: "assistant", content: "hello" };
    return Response.json({ choices: [{ index: 0, message, finish_reason: "stop" }] });
  },
});
const url = JSON.stringify(`https://localhost:${upstream.port}/v1`);

let gateway: TestGateway;
beforeAll(async () => {
  const models = ["trusted", "unknown", "other"].map(
    (name) =>
      `\n  ${name}: { kind: chat, context_window: 1000, targets: [{ upstream: ${name}, model: m }] }`,
  );
  const trusting = (authority: string): string => `{ ca: ${JSON.stringify(authority)} }`;
  gateway = await startGateway({
    sections: {
      upstreams: `
  trusted: { kind: openai, base_url: ${url}, tls: ${trusting(certificates.authority)} }
  unknown: { kind: openai, base_url: ${url} }
  other: { kind: openai, base_url: ${url}, tls: ${trusting(certificates.otherAuthority)} }`,
      models: models.join(""),
    },
  });
});
afterAll(async () => {
  await gateway[Symbol.asyncDispose]();
  await upstream.stop(true);
});

const ask = (model: string) =>
  gateway.post("/v1/chat/completions", { model, messages: [{ role: "user", content: "hi" }] });

test("an upstream with a certificate of the configured authority serves", async () => {
  const response = await ask("trusted");
  expect(response.status).toBe(200);
  expect(await response.text()).toContain("hello");
});

test.each(["unknown", "other"])(
  "another certificate is refused before a request: %s",
  async (model) => {
    const before = requests;
    const response = await ask(model);
    expect(response.status).toBe(503);
    expect((await errorOf(response)).message).toContain("could not be reached");
    expect(requests).toBe(before);
  },
);
