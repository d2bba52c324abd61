import { expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { until } from "../../../test/support/until.ts";
import { systemClock } from "../../domain/clock.ts";
import { startChild, type Child } from "./child.ts";
import { Parent, type Crash } from "./parent.ts";

const program = fileURLToPath(new URL("../../../test/support/child-program.ts", import.meta.url));

/** Real processes without a gateway in them, under the parent of a gateway. */
class Family implements AsyncDisposable {
  readonly folder = mkdtempSync(join(tmpdir(), "sluice-family-"));
  readonly crashes: Crash[] = [];
  readonly ignored: string[] = [];
  readonly children: Child[] = [];
  readonly parent: Parent;
  readonly ended: Promise<number>;
  #port: string | undefined;

  constructor(processes: number) {
    const command = [process.execPath, program, String(processes), this.folder];
    this.parent = new Parent({
      clock: systemClock,
      start: (onMessage) => {
        const child = startChild({ command, environment: process.env }, (message) => {
          if (message.kind === "started") this.#port ??= message.addresses[1];
          onMessage(message);
        });
        this.children.push(child);
        return child;
      },
      onCrash: (crash) => void this.crashes.push(crash),
      onStartRefused: (error) => {
        throw error;
      },
      onIgnored: ({ number, signal }) => void this.ignored.push(`${number}: ${signal}`),
      onServing: () => undefined,
    });
    this.ended = this.parent.run();
  }

  /** The process id of the one that answers; undefined if none does. */
  async ask(query = ""): Promise<number | undefined> {
    if (this.#port === undefined) return undefined;
    const url = `http://127.0.0.1:${this.#port}/${query}`;
    const asked = fetch(url, { keepalive: false }).then((response) => response.text());
    return asked.then(Number, () => undefined);
  }

  /** Waits until this number of processes answer. */
  async answering(count: number): Promise<readonly number[]> {
    for (;;) {
      const asked = Array.from({ length: 40 }, () => this.ask());
      const pids = new Set((await Promise.all(asked)).filter((pid) => pid !== undefined));
      if (pids.size === count) return [...pids];
      await Bun.sleep(20);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.parent.pass("SIGTERM");
    for (const child of this.children) child.kill();
    await this.ended;
    rmSync(this.folder, { recursive: true, force: true });
  }
}

test("all processes serve at one port; a killed one is replaced, and the others go on", async () => {
  await using family = new Family(3);
  const [victim = 0, ...others] = await family.answering(3);
  process.kill(victim, "SIGKILL");
  await until(() => family.crashes.length === 1);
  expect(family.crashes[0]).toMatchObject({ pid: victim, signal: "SIGKILL", restarts: 0 });
  await until(() => family.children.length === 4);
  const now = await family.answering(3);
  expect(now).not.toContain(victim);
  expect(others.every((pid) => now.includes(pid))).toBe(true);
});

test("all processes end when the gateway is asked to, in order", async () => {
  await using family = new Family(2);
  const pids = await family.answering(2);
  family.parent.pass("SIGTERM");
  expect(await family.ended).toBe(0);
  for (const pid of pids) expect(() => process.kill(pid, 0)).toThrow("ESRCH");
  expect([family.crashes, family.children.length]).toEqual([[], 2]);
});

test("a restart has every process replaced, which then ends in order", async () => {
  await using family = new Family(2);
  const before = await family.answering(2);
  expect(await family.parent.restart()).toBeUndefined();
  const ends = await Promise.all(family.children.slice(0, 2).map(({ ended }) => ended));
  expect(ends.map(({ exitCode }) => exitCode)).toEqual([0, 0]);
  const after = await family.answering(2);
  expect(after.some((pid) => before.includes(pid))).toBe(false);
  expect(family.crashes).toEqual([]);
});

test("signals count only when they come through the parent", async () => {
  await using family = new Family(1);
  const [pid = 0] = await family.answering(1);
  for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"] as const) process.kill(pid, signal);
  family.parent.pass("SIGHUP");
  expect(await family.answering(1)).toEqual([pid]);
  expect(family.crashes).toEqual([]);
  // That of a whole group reaches the parent, too, and is nothing to be told.
  await until(() => family.ignored.length === 2);
  expect(family.ignored.toSorted()).toEqual(["1: SIGINT", "1: SIGTERM"]);
});

test("an uncaught exception is reported without its message, and the process is replaced", async () => {
  await using family = new Family(1);
  const [pid = 0] = await family.answering(1);
  const prompt = "the prompt of a customer";
  const frame = `\n    at customer (${program}:1:1)`;
  await family.ask(`?fail=${encodeURIComponent(prompt + frame)}`);
  await until(() => family.crashes.length === 1);
  const [crash] = family.crashes;
  expect(crash).toMatchObject({ pid, exitCode: 1, signal: undefined });
  expect(crash?.failure?.error).toBe("RangeError");
  expect(crash?.failure?.positions[0]).toMatch(
    /^failWith \(test\/support\/child-program\.ts:\d+:\d+\)$/,
  );
  expect(JSON.stringify(crash)).not.toContain("customer");
  const [successor] = await family.answering(1);
  expect(successor).not.toBe(pid);
});

test("a process ends when its parent is killed", async () => {
  const [source, words] = [new URL("child.ts", import.meta.url).href, [process.execPath, program]];
  const script = `
    import { startChild } from ${JSON.stringify(source)};
    const started = { command: ${JSON.stringify(words)}, environment: process.env };
    const child = startChild(started, ({ kind }) => kind === "started" && console.log("serves"));
    child.begin({ number: 1, portUse: "first", addresses: [], ownPorts: [] });`;
  const parent = Bun.spawn([process.execPath, "-e", script], { stdout: "pipe" });
  const lines: string[] = [];
  // Both have this output, which ends with the last of them.
  for await (const chunk of parent.stdout.pipeThrough(new TextDecoderStream())) {
    lines.push(chunk);
    parent.kill("SIGKILL");
  }
  expect(lines.join("")).toBe("serves\n");
});
