import { expect, test } from "bun:test";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { describeWithValkey, startValkey, type ValkeyServer } from "../support/valkey-server.ts";

const places = 4;
const ask = { model: "chat-model", messages: [{ role: "user", content: "Hello" }], max_tokens: 5 };

/** An upstream that counts the requests that it has at once. */
function startUpstream() {
  let open = 0;
  let most = 0;
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch() {
      open += 1;
      most = Math.max(most, open);
      await Bun.sleep(20);
      open -= 1;
      const message = { role: "assistant", content: "Hello" };
      const choices = [{ index: 0, finish_reason: "stop", message }];
      const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 };
      return Response.json({ id: "c", object: "chat.completion", created: 1, choices, usage });
    },
  });
  return {
    url: `http://127.0.0.1:${server.port}/v1`,
    /** Most at once since it was last read. */
    takeMost(): number {
      const taken = most;
      most = open;
      return taken;
    },
    [Symbol.asyncDispose]: () => server.stop(true),
  };
}

function start(server: ValkeyServer, url: string, processes: number): Promise<TestGateway> {
  return startGateway({
    processes,
    sections: {
      limits: `{ store: "${server.url}", timeout: 5s }`,
      upstreams: `{ simulator: { kind: openai, base_url: "${url}", max_in_flight: ${places} } }`,
    },
  });
}

describeWithValkey(() => {
  test("two gateways of three processes never hold more places than there are", async () => {
    await using server = await startValkey();
    await using upstream = startUpstream();
    await using one = await start(server, upstream.url, 1);
    await using other = await start(server, upstream.url, 2);
    const rush = async (): Promise<number> => {
      const asked = [one, other].flatMap((gateway) =>
        Array.from({ length: 20 }, () => statusOf(gateway)),
      );
      const statuses = await Promise.all(asked);
      expect(statuses.filter((status) => status !== 200 && status !== 503)).toEqual([]);
      return statuses.filter((status) => status === 200).length;
    };
    expect(await rush()).toBeGreaterThanOrEqual(places);
    let most = upstream.takeMost();
    // On a busy machine, a place may be held by another process during a whole rush.
    while (most < places) {
      await rush();
      most = upstream.takeMost();
    }
    expect(most).toBe(places);

    // Each process tells the number of processes once a second.
    await Bun.sleep(2_500);
    await server.kill();
    // Without the server each process has its share, once what it held has run out.
    while ((await rush()) === 0) await Bun.sleep(20);
    expect(upstream.takeMost()).toBeLessThanOrEqual(2 * places);

    await server.start();
    while ((await rush()) < places) await Bun.sleep(20);
    do upstream.takeMost();
    while ((await rush()) < places || upstream.takeMost() > places);
    // The server is trusted again 61 s after its loss.
  }, 180_000);
});

async function statusOf(gateway: TestGateway): Promise<number> {
  const response = await gateway.post("/v1/chat/completions", ask);
  await response.text();
  return response.status;
}
