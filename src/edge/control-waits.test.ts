import { afterEach, expect, test } from "bun:test";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { createNetworkList } from "../domain/network.ts";
import type { Principal } from "../domain/principal.ts";
import { CorsPolicy } from "./cors.ts";
import { createDispatch, type Dispatch } from "./dispatch/dispatch.ts";
import type { HandledRequest } from "../domain/handled-request.ts";
import { type Connections, listen, type Listener } from "./listen.ts";
import type { Reply } from "./replies/error-reply.ts";
import type { AdminCall } from "./dispatch/route.ts";
import { RouteTable } from "./dispatch/route-table.ts";
import { bodyLimitsOf } from "../../test/support/body-limits.ts";

const operator: Principal = {
  kind: "local",
  userId: undefined,
  name: "local",
  role: "operator",
  accountId: undefined,
  scopes: ["read", "write"],
};

let listener: Listener | undefined;

afterEach(async () => {
  await listener?.cut();
  listener = undefined;
});

type Handle = (call: AdminCall) => Promise<Reply>;

function dispatchTo(handle: Handle, onHandled: (event: HandledRequest) => void = () => {}) {
  return createDispatch({
    routes: new RouteTable(
      [
        {
          method: "GET",
          path: "/admin/v1/slow",
          access: "principal",
          roles: ["operator"],
          scope: "read",
          handle,
        },
      ],
      "admin",
    ),
    clock: new ManualClock(),
    newRequestId: () => "req_1",
    gate: {
      identify: () => Promise.resolve(operator),
      isStill: () => Promise.resolve(true),
      checkHost() {},
      checkAnonymous() {},
    },
    edge: () => ({
      cors: new CorsPolicy([]),
      bodyLimits: bodyLimitsOf({ bodyLimitBytes: 1, decompressedLimitBytes: 1 }),
      maxHeaders: 100,
      trustedProxies: createNetworkList([]),
    }),
    shutdown: { closesConnections: false, isRefusing: false },
    onHandled,
  });
}

function serve(handle: Dispatch): string {
  listener = listen({
    hostname: "127.0.0.1",
    port: 0,
    idleTimeoutMs: 1_000,
    handle,
    onError: () => new Response(null, { status: 500 }),
  });
  return `${listener.url}/admin/v1/slow`;
}

/** Records the calls on the idle timer. */
class CountedConnections implements Connections {
  readonly asked: string[] = [];
  readonly keepAliveHint = "timeout=70";
  pauseIdleTimer(): void {
    this.asked.push("pause");
  }
  resumeIdleTimer(): void {
    this.asked.push("resume");
  }
  extendIdleTimer(): void {
    this.asked.push("extend");
  }
  cutSoon(): boolean {
    this.asked.push("cut");
    return true;
  }
  peerAddress(): string {
    return "127.0.0.1";
  }
}

const request = (): Request =>
  new Request("http://127.0.0.1/admin/v1/slow", { headers: { host: "127.0.0.1" } });
const json = { "content-type": "application/json" };
const sent = { segments: ["admin", "v1", "slow"] };

function streamOf(parts: readonly string[]): ReadableStream<Uint8Array> {
  const left = parts.map((text) => new TextEncoder().encode(text));
  return new ReadableStream({
    pull(controller) {
      const next = left.shift();
      if (next === undefined) controller.close();
      else controller.enqueue(next);
    },
  });
}

test("an answer of the control plane that takes longer than the idle timer arrives", async () => {
  const url = serve(
    dispatchTo(async () => {
      await Bun.sleep(6_000);
      return { status: 200, headers: json, body: "{}" };
    }),
  );
  const response = await fetch(url);
  expect([response.status, await response.text()]).toEqual([200, "{}"]);
}, 180_000);

test("the idle timer is paused while a request is handled, and resumed after it", async () => {
  const connections = new CountedConnections();
  const handle = dispatchTo(() => {
    expect(connections.asked).toEqual(["pause"]);
    return Promise.resolve({ status: 200, headers: json, body: "{}" });
  });
  await handle(request(), connections, sent);
  expect(connections.asked).toEqual(["pause", "resume"]);
  const failing = dispatchTo(() => Promise.reject(new Error("broken")));
  expect((await failing(request(), connections, sent)).status).toBe(500);
  expect(connections.asked).toEqual(["pause", "resume", "pause", "resume"]);
});

test("the idle timer of a download is as long as can be; its end, and a failure, reach the reader", async () => {
  const handle = dispatchTo(() =>
    Promise.resolve({ status: 200, headers: {}, body: streamOf(["one", "two"]) }),
  );
  const connections = new CountedConnections();
  const response = await handle(request(), connections, sent);
  expect(connections.asked).toEqual(["pause", "extend"]);
  expect(await response.text()).toBe("onetwo");
  const failing = serve(
    dispatchTo(() => {
      let isFirst = true;
      const body = new ReadableStream<Uint8Array>({
        pull(controller) {
          if (!isFirst) throw new Error("the database went away");
          isFirst = false;
          controller.enqueue(new Uint8Array(3));
        },
      });
      return Promise.resolve({ status: 200, headers: {}, body });
    }),
  );
  const broken = fetch(failing).then((answer) => answer.arrayBuffer());
  expect(broken).rejects.toThrow();
  await broken.catch(() => undefined);
});

test("a request whose caller disconnects is not a failure of the gateway", async () => {
  const { promise, resolve } = Promise.withResolvers<HandledRequest>();
  const started = Promise.withResolvers<void>();
  const handle: Handle = async ({ signal }) => {
    started.resolve();
    const left = Promise.withResolvers<void>();
    signal.addEventListener("abort", () => left.resolve());
    await left.promise;
    signal.throwIfAborted();
    return { status: 200, headers: json, body: "{}" };
  };
  const url = serve(dispatchTo(handle, resolve));
  const caller = new AbortController();
  const response = fetch(url, { signal: caller.signal }).catch(() => undefined);
  await started.promise;
  caller.abort();
  await response;
  const handled = await promise;
  expect([handled.status, handled.error?.code]).toEqual([499, "caller_left"]);
});
