import { expect, test } from "bun:test";
import { startGateway, upstreamKinds, type UpstreamKind } from "../support/gateway.ts";

const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
const sent = { "x-client-request-id": "job-7", traceparent, tracestate: "vendor=1" };
const hello = { model: "chat-model", messages: [{ role: "user", content: "Hello" }] };

/** Headers of the trace that an upstream of a kind got, in an upstream that refuses all requests. */
async function headersAt(
  kind: UpstreamKind,
  headers: Readonly<Record<string, string>>,
): Promise<readonly Record<string, string | null>[]> {
  const got: Record<string, string | null>[] = [];
  using upstream = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch(request) {
      const names = ["x-client-request-id", "x-request-id", "traceparent", "tracestate"];
      got.push(
        Object.fromEntries(
          names
            .filter((name) => request.headers.has(name))
            .map((name) => [name, request.headers.get(name)]),
        ),
      );
      return new Response("{}", { status: 400 });
    },
  });
  const address = `http://127.0.0.1:${upstream.port}`;
  const settings: Record<UpstreamKind, string> = {
    openai: `{ kind: openai, base_url: "${address}/v1" }`,
    bedrock: `{ kind: bedrock, region: us-east-1, endpoint: "${address}", api_key: key }`,
  };
  await using gateway = await startGateway({
    kind,
    sections: { upstreams: `\n  simulator: ${settings[kind]}` },
  });
  await gateway.post("/v1/chat/completions", hello, { headers });
  await gateway.post("/v1/embeddings", { model: "embedding-model", input: "a" }, { headers });
  return got;
}

const expected: Record<UpstreamKind, Record<string, string>> = {
  openai: { "x-client-request-id": "job-7", traceparent, tracestate: "vendor=1" },
  bedrock: { traceparent, tracestate: "vendor=1" },
};

test.each(upstreamKinds)("an upstream of kind %s gets the headers that it may", async (kind) => {
  const got = await headersAt(kind, sent);
  expect(got).toEqual([expected[kind], expected[kind]]);
});

test.each(upstreamKinds)(
  "values that are not valid do not reach an upstream, of kind %s",
  async (kind) => {
    const got = await headersAt(kind, { "x-request-id": "a b", traceparent: "00-0-0-00" });
    expect(got).toEqual([{}, {}]);
  },
);

test("a header that the operator configured wins over the caller's", async () => {
  const got: (string | null)[] = [];
  using upstream = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch(request) {
      got.push(request.headers.get("x-request-id"));
      return new Response("{}", { status: 400 });
    },
  });
  const url = `http://127.0.0.1:${upstream.port}/v1`;
  await using gateway = await startGateway({
    sections: {
      upstreams: `\n  simulator: { kind: openai, base_url: "${url}", headers: { X-Request-Id: own } }`,
    },
  });
  await gateway.post("/v1/chat/completions", hello, { headers: { "x-request-id": "job-7" } });
  expect(got).toEqual(["own"]);
});
