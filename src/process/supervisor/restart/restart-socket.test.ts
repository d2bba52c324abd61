import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connectToSocket, type SocketListener } from "../../link/unix-socket.ts";
import { askForRestart, listenForRestarts, restartSocketPath } from "./restart-socket.ts";

let folder: string;
let path: string;
let listener: SocketListener | undefined;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "sluice-restart-"));
  path = restartSocketPath(folder);
});
afterEach(() => {
  listener?.stop();
  rmSync(folder, { recursive: true });
});

test.each([undefined, "no new worker process starts"])(
  "who asks for a restart gets its outcome: %p",
  async (outcome) => {
    listener = listenForRestarts(path, () => Promise.resolve(outcome));
    expect(await askForRestart(path)).toBe(outcome);
    expect(statSync(path).mode & 0o777).toBe(0o600);
  },
);

test("who asks where nobody listens is told so", () => {
  expect(askForRestart(path)).rejects.toThrow();
});

test("who says anything else is ignored", async () => {
  let restarts = 0;
  listener = listenForRestarts(path, async () => {
    restarts += 1;
    return undefined;
  });
  const said = Promise.withResolvers<void>();
  await connectToSocket(path, (channel) => {
    channel.write(Buffer.from(`${"x".repeat(1_000)}restart\n`));
    said.resolve();
    return { received: () => undefined, drained: () => undefined, ended: () => undefined };
  });
  await said.promise;
  expect(await askForRestart(path)).toBeUndefined();
  expect(restarts).toBe(1);
});

test("who asks a supervisor that ends meanwhile is told so", async () => {
  listener = listenForRestarts(path, () => {
    listener?.stop();
    listener = undefined;
    return new Promise(() => undefined);
  });
  expect(await askForRestart(path)).toBe("the gateway ended meanwhile");
});
