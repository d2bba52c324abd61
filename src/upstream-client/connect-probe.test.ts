import { expect, test } from "bun:test";
import { readdirSync, readlinkSync } from "node:fs";
import { openUnreachablePort } from "../../test/support/unreachable-port.ts";
import { systemClock } from "../domain/clock.ts";
import { connectProbe, resolveHost } from "./connect-probe.ts";

const farOffMs = 60_000;
const clock = systemClock;
const probe = connectProbe({ resolveHost, clock });

function listen(hostname: string, port = 0): Bun.TCPSocketListener {
  return Bun.listen({ hostname, port, socket: { data: () => undefined } });
}

test("a host that accepts connections is reachable, by name and by address", async () => {
  const listener = listen("localhost");
  try {
    const { port, hostname } = listener;
    expect(await probe(`http://localhost:${port}/v1`, farOffMs)).toBe(true);
    const address = hostname.includes(":") ? `[${hostname}]` : hostname;
    expect(await probe(`https://${address}:${port}`, farOffMs)).toBe(true);
  } finally {
    listener.stop(true);
  }
});

test("a host that refuses connections is reachable: it may be draining", async () => {
  const listener = listen("127.0.0.1");
  const { port } = listener;
  listener.stop(true);
  expect(await probe(`http://127.0.0.1:${port}/`, farOffMs)).toBe(true);
});

test("an unresolvable host counts as reachable: the attempt reports the error", async () => {
  const rejected = (): Promise<never> => Promise.reject(new Error("no address"));
  const unresolvable = connectProbe({ resolveHost: rejected, clock });
  expect(await unresolvable("http://nobody.example/", farOffMs)).toBe(true);
});

test("a host that does not answer times out, and the probe closes its sockets", async () => {
  await using unreachable = await openUnreachablePort();
  const before = openSockets();
  const probes = Array.from({ length: 5 }, () =>
    probe(`http://127.0.0.1:${unreachable.port}/`, 200),
  );
  expect(await Promise.all(probes)).toEqual([false, false, false, false, false]);
  expect(openSockets()).toBeLessThanOrEqual(before);
});

test("a name that resolves too late times out, and no connection is opened afterwards", async () => {
  const names = Promise.withResolvers<readonly string[]>();
  let connections = 0;
  const open = (): void => void (connections += 1);
  const socket = { open, data: () => undefined };
  const listener = Bun.listen({ hostname: "127.0.0.1", port: 0, socket });
  try {
    const slow = connectProbe({ resolveHost: () => names.promise, clock });
    expect(await slow(`http://slow.example:${listener.port}/`, 50)).toBe(false);
    names.resolve(["127.0.0.1"]);
    expect(await probe(`http://127.0.0.1:${listener.port}/`, farOffMs)).toBe(true);
    expect(connections).toBeLessThanOrEqual(1);
  } finally {
    listener.stop(true);
  }
});

test("one address that accepts is enough, one that refuses is not", async () => {
  await using unreachable = await openUnreachablePort();
  const { port } = unreachable;
  const both = (): Promise<string[]> => Promise.resolve(["127.0.0.1", "127.0.0.2"]);
  const ofTwo = connectProbe({ resolveHost: both, clock });
  const listener = listen("127.0.0.2", port);
  try {
    expect(await ofTwo(`http://two.example:${port}/`, farOffMs)).toBe(true);
  } finally {
    listener.stop(true);
  }
  expect(await ofTwo(`http://two.example:${port}/`, 200)).toBe(false);
});

function openSockets(): number {
  const isSocket = (descriptor: string): boolean => {
    try {
      return readlinkSync(`/proc/self/fd/${descriptor}`).startsWith("socket:");
    } catch {
      return false;
    }
  };
  return readdirSync("/proc/self/fd").filter(isSocket).length;
}
