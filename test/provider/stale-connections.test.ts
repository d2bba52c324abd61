import { metricsOf } from "../support/metrics-of.ts";
import { expect, test } from "bun:test";
import { rawServer, type RawPeer } from "../support/raw-server.ts";
import { completion, gatewayOf } from "./provider.ts";

/** Kept connections that turn out to be dead when the next request is sent on them. */

const text = JSON.stringify(completion("Hello"));
const answer = `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${text.length}\r\n\r\n${text}`;

const chat = { model: "chat-model", messages: [{ role: "user", content: "Hi" }] };

/** A provider whose connections do as `onRequest` says, and a gateway with it alone. */
async function worldOf(onRequest: (peer: RawPeer, request: string) => void) {
  const server = rawServer({ onRequest });
  const url = `http://127.0.0.1:${server.port}/v1`;
  const gateway = await gatewayOf([{ url }]);
  const ask = async (times: number): Promise<readonly number[]> => {
    const asked = Array.from({ length: times }, () => gateway.post("/v1/chat/completions", chat));
    const responses = await Promise.all(asked);
    await Promise.all(responses.map((response) => response.arrayBuffer()));
    return responses.map(({ status }) => status);
  };
  return {
    server,
    gateway,
    ask,
    requests: () => server.peers.reduce((sum, { requests }) => sum + requests.length, 0),
    async [Symbol.asyncDispose]() {
      await gateway[Symbol.asyncDispose]();
      server[Symbol.dispose]();
    },
  };
}

/** Answers once the number of requests has come, so that each has a connection of its own. */
function together(count: number, write: (peer: RawPeer) => void): (peer: RawPeer) => void {
  let waiting: RawPeer[] = [];
  return (peer) => {
    waiting.push(peer);
    if (waiting.length < count) return;
    for (const each of waiting) write(each);
    waiting = [];
  };
}

test.each(["resets", "closes"] as const)(
  "forty kept connections that the server %s at once fail none of forty calls",
  async (how) => {
    const warmUp = together(40, (peer) => peer.write(answer));
    await using world = await worldOf((peer) => {
      if (peer.index < 40 && peer.requests.length === 1) return warmUp(peer);
      if (peer.requests.length === 1) return peer.write(answer);
      if (how === "resets") peer.reset();
      else peer.end();
    });
    expect(await world.ask(40)).toEqual(Array.from({ length: 40 }, () => 200));
    expect(world.server.peers).toHaveLength(40);
    expect(await world.ask(40)).toEqual(Array.from({ length: 40 }, () => 200));
    // The retry budget has no part in it, nor has the health of the target.
    const metrics = await metricsOf(world.gateway.adminUrl);
    expect(metrics.match(/sluice_attempts_total\{.*/g)).toEqual([
      'sluice_attempts_total{target="provider-1/provider-model",outcome="answered"} 80',
    ]);
  },
);

test("forty connections that each die at their second request fail no call, one after the other", async () => {
  await using world = await worldOf((peer) => {
    if (peer.requests.length === 1) peer.write(answer);
    else peer.reset();
  });
  const statuses: number[] = [];
  for (let call = 0; call < 41; call += 1) statuses.push(...(await world.ask(1)));
  expect(new Set(statuses)).toEqual(new Set([200]));
});

test("the free attempt is on a new connection, and there is one", async () => {
  const warmUp = together(3, (peer) => peer.write(answer));
  await using world = await worldOf((peer) => {
    if (peer.requests.length === 1 && peer.index < 3) return warmUp(peer);
    peer.reset();
  });
  await world.ask(3);
  const before = world.requests();
  const [status] = await world.ask(1);
  expect(status).toBe(503);
  const [row] = await world.gateway.usage();
  const kinds = row?.routing?.attempts.map(({ outcome }) => outcome) ?? [];
  expect(new Set(kinds)).toEqual(new Set(["connection-lost"]));
  // One request more than there were attempts; the other kept connections were not tried.
  expect(world.requests() - before).toBe(kinds.length + 1);
  const kept = world.server.peers.slice(0, 3);
  expect(kept.filter(({ requests }) => requests.length > 1)).toHaveLength(1);
});

test("a reset of a new connection, or within an answer, is no stale connection", async () => {
  let isNew = true;
  await using world = await worldOf((peer) => {
    if (isNew) return peer.reset();
    peer.write(peer.requests.length === 1 ? answer : "HTTP/1.1 200 OK\r\n");
    if (peer.requests.length > 1) peer.reset();
  });
  await world.gateway.reconfigure({ routing: "{ attempts: 1 }" });
  expect(await world.ask(1)).toEqual([503]);
  isNew = false;
  expect(await world.ask(1)).toEqual([200]);
  const before = world.requests();
  expect(await world.ask(1)).toEqual([503]);
  expect(world.requests() - before).toBe(1);
});
