import { afterAll, beforeAll, expect, test } from "bun:test";
import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { chatOf, errorOf } from "../support/bodies.ts";
import { completion } from "../golden/scripted-upstream.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";

/** `timeouts.idle` limits the time without a byte, not the duration of an unstreamed answer. */

const idleMs = 1_000;
const pauseMs = 100;
const text = "word ".repeat(600);
const answer = Buffer.from(JSON.stringify(completion({ content: text })));
const pieces = Array.from({ length: 30 }, (_, index) => {
  const bytes = Math.ceil(answer.length / 30);
  return answer.subarray(index * bytes, (index + 1) * bytes);
});

let upstream: Server;
let gateway: TestGateway;
beforeAll(async () => {
  upstream = createServer((request, response) => {
    const lengths = { "content-length": answer.length };
    const isDeclared = request.url?.startsWith("/declared/") === true;
    const isWhole = request.headers["x-test"] === "whole";
    response.writeHead(200, { "content-type": "application/json", ...(isDeclared && lengths) });
    void trickle(response, isWhole ? pieces : pieces.slice(0, 2));
  }).listen(0, "127.0.0.1");
  await new Promise((resolve) => upstream.once("listening", resolve));
  const { port } = upstream.address() as AddressInfo;
  const upstreamOf = (path: string, how: string): string =>
    `{ kind: openai, base_url: "http://127.0.0.1:${port}/${path}", headers: { x-test: ${how} }, ` +
    `timeouts: { connect: 5s, first_byte: 5s, idle: ${idleMs}ms } }`;
  const names = ["declared", "chunked"].flatMap((path) =>
    ["whole", "silent"].map((how) => ({ name: `${path}-${how}`, path, how })),
  );
  const upstreams = names.map(({ name, path, how }) => `\n  ${name}: ${upstreamOf(path, how)}`);
  const models = names.map(
    ({ name }) =>
      `\n  ${name}: { kind: chat, context_window: 8192, targets: [{ upstream: ${name}, model: m }] }`,
  );
  gateway = await startGateway({
    sections: {
      upstreams: upstreams.join(""),
      models: models.join(""),
      routing: "{ attempts: 1 }",
    },
  });
});
afterAll(async () => {
  await gateway[Symbol.asyncDispose]();
  upstream.closeAllConnections();
  upstream.close();
});

async function trickle(response: ServerResponse, all: readonly Buffer[]): Promise<void> {
  for (const piece of all) {
    response.write(piece);
    await Bun.sleep(pauseMs);
  }
  if (all.length === pieces.length) response.end();
}

const ask = (model: string): Promise<Response> =>
  gateway.post("/v1/chat/completions", { model, messages: [{ role: "user", content: "hi" }] });

test.each(["declared", "chunked"])(
  "an unstreamed answer of %s length may take longer than the idle time while bytes arrive",
  async (path) => {
    const response = await ask(`${path}-whole`);
    expect(response.status).toBe(200);
    expect((await chatOf(response)).choices[0]?.message.content).toBe(text);
    const [row] = await gateway.usage();
    expect(row?.durationMs).toBeGreaterThan(2 * idleMs);
  },
);

test.each(["declared", "chunked"])(
  "an unstreamed answer of %s length that becomes silent ends after the idle time",
  async (path) => {
    const response = await ask(`${path}-silent`);
    expect(response.status).toBe(503);
    expect((await errorOf(response)).code).toBe("model_unavailable");
    const [row] = await gateway.usage();
    expect(row?.routing?.attempts.map(({ outcome }) => outcome)).toEqual(["timed-out"]);
  },
);
