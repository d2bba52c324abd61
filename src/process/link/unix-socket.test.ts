import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../../domain/clock.ts";
import { Link, type Handlers, type Messages } from "./link.ts";
import type { ByteChannel } from "./outbox.ts";
import { connectToSocket, listenAtSocket } from "./unix-socket.ts";

type Asked = { readonly echo: { readonly ask: unknown; readonly answer: unknown } };
type None = Record<never, never>;

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "sluice-link-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function linkOver<Sent extends Messages, Heard extends Messages>(
  channel: ByteChannel,
  handlers: Handlers<Heard>,
) {
  const lost = Promise.withResolvers<void>();
  const link = new Link<Sent, Heard>({
    channel,
    clock: systemClock,
    handlers,
    hello: {},
    onOpen: () => undefined,
    onLost: () => lost.resolve(),
  });
  return { link, lost: lost.promise };
}

async function connect(path: string) {
  const { promise, resolve } = Promise.withResolvers<ReturnType<typeof linkOver<Asked, None>>>();
  await connectToSocket(path, (channel) => {
    const end = linkOver<Asked, None>(channel, {});
    resolve(end);
    return end.link;
  });
  return promise;
}

function listen(path: string) {
  const ends: ReturnType<typeof linkOver<None, Asked>>[] = [];
  const listener = listenAtSocket(path, (channel) => {
    const end = linkOver<None, Asked>(channel, { echo: (value: unknown) => value });
    ends.push(end);
    return end.link;
  });
  return { listener, ends };
}

test("a socket carries answers larger than its buffers, both ways at once", async () => {
  const path = join(folder, "control.sock");
  const { listener } = listen(path);
  const { link } = await connect(path);
  const sizes = [1, 300_000, 5_000_000, 17, 2_000_000];
  const answers = await Promise.all(
    sizes.map((size) => link.ask("echo", { bytes: new Uint8Array(size).fill(size) })),
  );
  expect(answers).toEqual(sizes.map((size) => ({ bytes: new Uint8Array(size).fill(size) })));
  listener.stop();
});

test("a socket is open to its own user only, replaces one left behind, and goes at the end", async () => {
  const path = join(folder, "control.sock");
  writeFileSync(path, "left behind");
  const { listener } = listen(path);
  expect(statSync(path).mode & 0o077).toBe(0);
  listener.stop();
  expect(statSync(path, { throwIfNoEntry: false })).toBeUndefined();
  expect(await connect(path).catch((error: unknown) => error)).toBeInstanceOf(Error);
});

test("each end learns that the other has gone", async () => {
  const path = join(folder, "control.sock");
  const { listener, ends } = listen(path);
  const first = await connect(path);
  await first.link.ask("echo", 1);
  first.link.close();
  await ends[0]?.lost;
  const second = await connect(path);
  await second.link.ask("echo", 1);
  listener.stop();
  await second.lost;
  expect([first.link.isLost, second.link.isLost]).toEqual([true, true]);
});

test("a socket in a deep folder is reached, though its path is longer than a socket's may be", async () => {
  const deep = join(folder, "d".repeat(100), "e".repeat(100));
  mkdirSync(deep, { recursive: true });
  const path = join(deep, "control.sock");
  const { listener } = listen(path);
  const { link } = await connect(path);
  expect(await link.ask("echo", "far")).toEqual("far");
  listener.stop();
});
