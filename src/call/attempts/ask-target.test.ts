import { expect, test } from "bun:test";
import { systemClock } from "../../domain/clock.ts";
import { noProxies } from "../../domain/upstream-settings.ts";
import { createUpstreamClient } from "../../upstream-client/http/http-client.ts";
import {
  adapterOf,
  modelOf,
  plainConnections,
  targetOf,
  upstreamOf,
} from "../../../test/support/pipeline-fixtures.ts";
import { startProvider } from "../../../test/provider/provider.ts";
import { askTarget } from "./ask-target.ts";

test("an embedding server that refuses what only the gateway asks for is in service", async () => {
  await using provider = startProvider(({ body }) => {
    if (!("encoding_format" in body)) return Response.json({ data: [{ embedding: [1] }] });
    const error = { message: "unknown field", param: "encoding_format" };
    return Response.json({ error }, { status: 400 });
  });
  const adapter = adapterOf(provider.url, {}, { embeddingEncoding: "auto" });
  const target = targetOf("up");
  await askTarget(
    {
      model: modelOf({ kind: "embedding", targets: [target] }),
      upstream: upstreamOf("up", { adapter, connections: plainConnections }),
      target,
      timeoutMs: 60_000,
      answerLimitBytes: 1_000,
    },
    {
      transport: createUpstreamClient({ proxies: noProxies, mostConnections: 1, ...systemClock }),
      clock: systemClock,
      places: {
        tryOpen: () => true,
        whenOpen: () => Promise.resolve(true),
        close: () => undefined,
      },
    },
  );
  const formats = provider.requests.map(({ body }) => body["encoding_format"]);
  expect(formats).toEqual(["base64", undefined]);
});
