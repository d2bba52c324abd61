import { afterEach, expect, test } from "bun:test";
import { Secret } from "../../domain/keys/secret.ts";
import { AdminRefusal, type AdminClient } from "./admin-client.ts";
import { createHttpClient } from "./http-client.ts";

/** A request as it arrived. */
interface Seen {
  readonly line: string;
  readonly authorization: string | null;
  readonly idempotencyKey: string | null;
  readonly body: string;
}

interface FakeGateway {
  readonly url: string;
  readonly seen: Seen[];
  stop(): void;
}

const stops: (() => void)[] = [];
afterEach(() => {
  for (const stop of stops.splice(0)) stop();
});

/** Answers with `reply`, which gets the number of the request from 1. */
function listen(reply: (count: number) => Response | Promise<Response>): FakeGateway {
  const seen: Seen[] = [];
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request) {
      const url = new URL(request.url);
      seen.push({
        line: `${request.method} ${url.pathname}${url.search}`,
        authorization: request.headers.get("authorization"),
        idempotencyKey: request.headers.get("idempotency-key"),
        body: await request.text(),
      });
      return reply(seen.length);
    },
  });
  const stop = (): void => void server.stop(true);
  stops.push(stop);
  return { url: `http://127.0.0.1:${server.port}`, seen, stop };
}

/** Cuts the first connections after the request was read; the last one gets an answer. */
function listenAndCut(cuts: number, answer: string): { url: string; requests: string[] } {
  const requests: string[] = [];
  const server = Bun.listen({
    hostname: "127.0.0.1",
    port: 0,
    socket: {
      data(socket, bytes) {
        requests.push(bytes.toString());
        if (requests.length <= cuts) socket.terminate();
        else {
          const head = `HTTP/1.1 200 OK\r\ncontent-length: ${answer.length}\r\nconnection: close\r\n`;
          socket.end(`${head}\r\n${answer}`);
        }
      },
    },
  });
  stops.push(() => server.stop(true));
  return { url: `http://127.0.0.1:${server.port}`, requests };
}

function clientOf(url: string, signal = new AbortController().signal): AdminClient {
  return createHttpClient({
    url,
    token: new Secret("slc-mgt_secret"),
    random: (target) => crypto.getRandomValues(target),
    signal,
    advise: () => Promise.resolve("Start it."),
  });
}

async function failureOf(work: Promise<unknown>): Promise<Error> {
  const outcome = await work.then(
    () => undefined,
    (error: unknown) => error,
  );
  if (outcome instanceof Error) return outcome;
  throw new Error("it did not fail");
}

test("a request has the token, its parameters and its body, without undefined values", async () => {
  const gateway = listen(() => Response.json({ ok: true }));
  await using client = clientOf(`${gateway.url}/`);
  const query = { name: "a b", cursor: undefined, limit: 5 };
  expect(await client.request("GET", "/accounts", { query })).toEqual({ ok: true });
  await client.request("POST", "/keys", { body: { plan: "pro" }, idempotencyKey: "mine" });
  await client.request("DELETE", "/keys/key_1");
  const [read, made, removed] = gateway.seen;
  expect(read).toEqual({
    line: "GET /admin/v1/accounts?name=a+b&limit=5",
    authorization: "Bearer slc-mgt_secret",
    idempotencyKey: null,
    body: "",
  });
  expect(made).toMatchObject({ idempotencyKey: "mine", body: '{"plan":"pro"}' });
  expect(removed?.idempotencyKey).toMatch(/^cli-[0-9A-Za-z]{24}$/);
});

test("an error of the control plane keeps its status, code, field and message", async () => {
  const error = { message: "Too old.", type: "t", param: "revision", code: "revision_conflict" };
  const gateway = listen(() => Response.json({ error }, { status: 409 }));
  const failure = await failureOf(clientOf(gateway.url).request("GET", "/accounts"));
  expect(failure).toBeInstanceOf(AdminRefusal);
  expect(failure).toMatchObject({
    status: 409,
    code: "revision_conflict",
    param: "revision",
    message: "Too old.",
  });
  expect(gateway.seen).toHaveLength(1);
});

test("after a lost connection a change is repeated once, with the same key", async () => {
  const { url, requests } = listenAndCut(1, '{"id":"key_1"}');
  const body = { plan: "pro" };
  expect(await clientOf(url).request("POST", "/keys", { body })).toEqual({ id: "key_1" });
  const keys = requests.map((text) => /idempotency-key: (\S+)/i.exec(text)?.[1]);
  expect(keys).toHaveLength(2);
  expect(keys[0]).toMatch(/^cli-/);
  expect(keys[1]).toBe(keys[0] ?? "");
});

test("a connection lost twice is reported, without a third try", async () => {
  const { url, requests } = listenAndCut(5, "");
  const failure = await failureOf(clientOf(url).request("POST", "/keys", { body: {} }));
  expect(failure.message).toContain(`no answer from ${url}`);
  expect(failure.message).toContain("Start it.");
  expect(requests).toHaveLength(2);
});

test("a redirect is not followed, because it would send the token to another server", async () => {
  const other = listen(() => Response.json({}));
  const gateway = listen(() => Response.redirect(`${other.url}/admin/v1/accounts`));
  const failure = await failureOf(clientOf(gateway.url).request("GET", "/accounts"));
  expect(failure.message).toContain("admin address");
  expect(other.seen).toHaveLength(0);
});

test("a page of another server is reported as such, and no part of it is shown", async () => {
  const gateway = listen(() => new Response("<html>welcome</html>"));
  const failure = await failureOf(clientOf(gateway.url).request("GET", "/accounts"));
  expect(failure.message).toContain("admin address");
  expect(failure.message).not.toContain("welcome");
});

test("a stream is passed on in pieces, and an error before it is reported like any other", async () => {
  const gateway = listen((count) =>
    count === 1
      ? new Response("id\nreq_1\n")
      : Response.json({ error: { message: "No.", code: "not_permitted" } }, { status: 403 }),
  );
  const client = clientOf(gateway.url);
  const pieces = await Array.fromAsync(client.stream("/usage/export", { format: "csv" }));
  const text = Buffer.concat(pieces).toString();
  expect(text).toBe("id\nreq_1\n");
  expect(gateway.seen[0]?.line).toBe("GET /admin/v1/usage/export?format=csv");
  const failure = await failureOf(Array.fromAsync(client.stream("/usage/export", {})));
  expect(failure).toMatchObject({ status: 403, message: "No." });
});

test("a cut stream is an error, not a shorter answer", async () => {
  const server = Bun.listen({
    hostname: "127.0.0.1",
    port: 0,
    socket: {
      data(socket) {
        socket.write("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nonly the beginning");
        socket.end();
      },
    },
  });
  stops.push(() => server.stop(true));
  const stream = clientOf(`http://127.0.0.1:${server.port}`).stream("/usage/export", {});
  const failure = await failureOf(Array.fromAsync(stream));
  expect(failure.message).toContain("the connection broke");
});

test("a command that is asked to end aborts at once", async () => {
  const asked = new AbortController();
  const gateway = listen(() => {
    asked.abort();
    return new Promise<Response>(() => undefined);
  });
  const failure = await failureOf(clientOf(gateway.url, asked.signal).request("GET", "/accounts"));
  expect(failure.name).toBe("AbortError");
  expect(gateway.seen).toHaveLength(1);
});
