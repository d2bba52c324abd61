import { describe, expect, test } from "bun:test";
import { outOfProcesses, settingsWith, Stage } from "../../../test/support/parent-stage.ts";
import { sameSignalMs } from "../program.ts";
import { firstRestartMs, healthyUptimeMs, longestRestartMs, mostStartsUnserved } from "./parent.ts";

describe("a gateway that starts", () => {
  test("begins with one process, and with the others once that one serves", async () => {
    const stage = new Stage();
    const begun = () =>
      stage.processes.map(({ beginning }) => [beginning?.number, beginning?.portUse]);
    expect(begun()).toEqual([[1, "first"]]);
    stage.nth(1).read({ processes: 3 });
    expect(begun()).toHaveLength(1);
    stage.nth(1).say({ kind: "started", addresses: [] });
    expect(begun()).toEqual([
      [1, "first"],
      [2, "another"],
      [3, "another"],
    ]);
    stage.nth(3).serve({ processes: 3 });
    stage.nth(2).serve({ processes: 3 });
    expect(stage.processes).toHaveLength(3);
    expect(stage.served).toMatchObject([settingsWith({ processes: 3 })]);
    expect(await stage.end()).toBe(0);
  });

  test("hands the addresses that one process has to those after it", async () => {
    const stage = new Stage();
    const first = stage.nth(1);
    first.read();
    first.say({ kind: "started", addresses: ["--port", "1"] });
    first.end("SIGKILL");
    stage.advance(firstRestartMs);
    const all = stage.processes.map(({ beginning }) => beginning?.addresses);
    expect(all).toEqual([[], ["--port", "1"]]);
    expect(await stage.end()).toBe(0);
  });

  test("ends with the exit code of a first process that cannot start", async () => {
    const stage = new Stage();
    stage.nth(1).end(7);
    expect(await stage.ended).toBe(7);
    expect([stage.crashes, stage.processes.length]).toEqual([[], 1]);
  });

  test("gives up when signals keep ending its first process before any served", async () => {
    const stage = new Stage();
    for (let start = 1; start <= mostStartsUnserved; start += 1) {
      stage.nth(start).end("SIGKILL");
      stage.advance(longestRestartMs);
    }
    expect(await stage.ended).toBe(1);
    const delays = [100, 200, 400, 800, undefined];
    expect(stage.crashes.map(({ nextStartMs }) => nextStartMs)).toEqual(delays);
    expect(stage.crashes.every(({ hasServed }) => !hasServed)).toBe(true);
    expect(stage.processes).toHaveLength(mostStartsUnserved);
  });

  test("ends when the system refuses to start a process, and says so", async () => {
    const stage = new Stage(outOfProcesses);
    expect(await stage.ended).toBe(1);
    expect(stage.refusals).toEqual([{ error: outOfProcesses, nextStartMs: undefined }]);
  });
});

describe("a gateway that serves", () => {
  test("starts a process again that a signal ended, and no other", async () => {
    const stage = new Stage();
    const [first, second] = stage.serve(2);
    first?.end("SIGKILL");
    expect(stage.crashes).toHaveLength(1);
    expect(stage.crashes[0]).toMatchObject({
      number: 1,
      pid: 1,
      signal: "SIGKILL",
      exitCode: undefined,
      hasServed: true,
      restarts: 0,
      nextStartMs: firstRestartMs,
    });
    stage.advance(firstRestartMs - 1);
    expect(stage.processes).toHaveLength(2);
    stage.advance(1);
    expect(stage.nth(3).beginning).toMatchObject({ number: 1, portUse: "another" });
    stage.nth(3).serve({ processes: 2 });
    expect([second?.passed, second?.isKilled, second?.isReplaced]).toEqual([[], false, false]);
    expect(stage.processes).toHaveLength(3);
    expect(await stage.end()).toBe(0);
  });

  test("tells a process that follows a crash where the last good configuration is", async () => {
    const stage = new Stage();
    stage.serve(1);
    stage.nth(1).end("SIGKILL");
    stage.advance(firstRestartMs);
    stage.nth(2).serve();
    const restarted = stage.restart();
    stage.nth(3).serve();
    expect(await restarted).toBeUndefined();
    // Who asks for a restart is told what is wrong with the file.
    const all = stage.processes.map(({ beginning }) => beginning?.crashedIn);
    expect(all).toEqual([undefined, "/data", undefined]);
    expect(await stage.end()).toBe(0);
  });

  test("knows the ports of its processes also when all have crashed together", async () => {
    const stage = new Stage();
    stage.nth(1).serve({ processes: 2, ports: [8080, 9090] });
    stage.nth(2).serve({ processes: 2, ports: [8080, 9090] });
    for (const nth of [1, 2]) stage.nth(nth).end("SIGKILL");
    stage.advance(firstRestartMs);
    const again = stage.processes.slice(2).map(({ beginning }) => beginning?.ownPorts);
    expect(again).toEqual([
      [8080, 9090],
      [8080, 9090],
    ]);
    expect(await stage.end()).toBe(0);
  });

  test("waits longer before each restart, up to a limit, and less after a healthy run", async () => {
    const stage = new Stage();
    stage.serve(1);
    const crash = (nth: number, afterMs: number): number | undefined => {
      stage.advance(afterMs);
      stage.nth(nth).end("SIGSEGV");
      const delayMs = stage.crashes.at(-1)?.nextStartMs;
      stage.advance(longestRestartMs);
      return delayMs;
    };
    const delays = Array.from({ length: 9 }, (_, index) => crash(index + 1, 0));
    expect(delays).toEqual([100, 200, 400, 800, 1600, 3200, 6400, 10_000, 10_000]);
    expect(crash(10, healthyUptimeMs)).toBe(firstRestartMs);
    expect(stage.crashes.map(({ restarts }) => restarts)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    expect(await stage.end()).toBe(0);
  });

  test("reports the exception that a process told before it ended", async () => {
    const stage = new Stage();
    const [first] = stage.serve(1);
    const failure = {
      kind: "failure",
      error: "RangeError",
      positions: ["run (src/x.ts:1:2)"],
    } as const;
    first?.say(failure);
    first?.end(1);
    expect(stage.crashes[0]).toMatchObject({ exitCode: 1, signal: undefined, failure });
    expect(stage.parent.settings?.dataDir).toBe("/data");
    expect(await stage.end()).toBe(0);
  });

  test("tries again when the system refuses to start a process", async () => {
    const stage = new Stage();
    const [first] = stage.serve(1);
    stage.refusal = outOfProcesses;
    first?.end("SIGKILL");
    stage.advance(firstRestartMs);
    expect(stage.refusals[0]).toMatchObject({ error: outOfProcesses, nextStartMs: 200 });
    stage.advance(200);
    expect(stage.refusals[1]).toMatchObject({ nextStartMs: 400 });
    stage.refusal = undefined;
    stage.advance(400);
    stage.nth(2).serve();
    expect(stage.crashes).toHaveLength(1);
    expect(await stage.end()).toBe(0);
  });

  test("starts a process again that ends before it serves, and reports it as such", async () => {
    const stage = new Stage();
    stage.serve(1);
    stage.nth(1).end("SIGKILL");
    stage.advance(100);
    stage.nth(2).end(1);
    stage.advance(200);
    stage.nth(3).serve();
    expect(stage.crashes.map(({ hasServed, nextStartMs }) => [hasServed, nextStartMs])).toEqual([
      [true, 100],
      [false, 200],
    ]);
    expect(await stage.end()).toBe(0);
  });

  test("starts one again that ends in order unasked", async () => {
    const stage = new Stage();
    const [first] = stage.serve(1);
    first?.end(0);
    stage.advance(firstRestartMs);
    expect(stage.crashes[0]).toMatchObject({ exitCode: 0 });
    expect(stage.processes).toHaveLength(2);
    expect(await stage.end()).toBe(0);
  });
});

describe("a hang-up of the terminal", () => {
  test("reloads the configuration of all processes", async () => {
    const stage = new Stage();
    const all = stage.serve(2);
    stage.parent.pass("SIGHUP");
    expect(all.map(({ passed }) => passed)).toEqual([["SIGHUP"], ["SIGHUP"]]);
    expect(await stage.end()).toBe(0);
  });

  test.each(["before", "after"])("ends a demo, also %s it has said what it is", async (when) => {
    const stage = new Stage();
    if (when === "before") stage.parent.pass("SIGHUP");
    expect(stage.nth(1).passed).toEqual([]);
    stage.nth(1).serve({ isReloadable: false });
    if (when === "after") stage.parent.pass("SIGHUP");
    expect(stage.nth(1).passed).toEqual(["SIGINT"]);
    stage.nth(1).end(0);
    expect(await stage.ended).toBe(0);
  });
});

describe("a gateway that is asked to end", () => {
  test.each([
    ["SIGSEGV", { signal: "SIGSEGV", exitCode: undefined }],
    ["SIGKILL", { signal: "SIGKILL", exitCode: undefined }],
    [1, { signal: undefined, exitCode: 1 }],
  ] as const)("reports a crash (%p) while it drains, and restarts nothing", async (how, crash) => {
    const stage = new Stage();
    const [first, second] = stage.serve(2);
    stage.parent.pass("SIGTERM");
    expect([first?.passed, second?.passed]).toEqual([["SIGTERM"], ["SIGTERM"]]);
    second?.end(how);
    first?.end(0);
    expect(await stage.ended).toBe(1);
    expect(stage.crashes).toHaveLength(1);
    expect(stage.crashes[0]).toMatchObject({ ...crash, hasServed: true, nextStartMs: undefined });
    expect(stage.processes).toHaveLength(2);
  });

  test("starts none that waited to be started again", async () => {
    const stage = new Stage();
    const [first] = stage.serve(1);
    first?.end("SIGKILL");
    stage.parent.pass("SIGTERM");
    expect(await stage.ended).toBe(0);
    expect(stage.processes).toHaveLength(1);
  });

  test.each([0, "SIGINT", "SIGTERM"])(
    "takes an end as asked (%p), also before signals are handled, for neither crash nor failure",
    async (how) => {
      const stage = new Stage();
      stage.parent.pass("SIGINT");
      stage.nth(1).end(how);
      expect(await stage.ended).toBe(0);
      expect(stage.crashes).toEqual([]);
    },
  );

  test.each([
    [1, 1],
    ["SIGKILL", 1],
    ["SIGTERM", 1],
    [0, 0],
  ] as const)(
    "twice is cut short: an end by %p is exit code %d and not a crash",
    async (...one) => {
      const [how, exitCode] = one;
      const stage = new Stage();
      const [first, second] = stage.serve(2);
      stage.parent.pass("SIGTERM");
      stage.advance(50);
      stage.parent.pass("SIGTERM");
      first?.end(how);
      second?.end(0);
      expect(await stage.ended).toBe(exitCode);
      expect(stage.crashes).toEqual([]);
    },
  );

  test("twice is killed if it ignores even that", async () => {
    const stage = new Stage();
    const all = stage.serve(2);
    stage.parent.pass("SIGTERM");
    stage.advance(50);
    stage.parent.pass("SIGTERM");
    expect(all.map(({ isKilled }) => isKilled)).toEqual([false, false]);
    stage.advance(500);
    expect(all.map(({ isKilled }) => isKilled)).toEqual([true, true]);
    expect(await stage.ended).toBe(1);
    expect(stage.crashes).toEqual([]);
  });

  test("by a signal that arrives twice, as npm forwards it, is asked once", async () => {
    const stage = new Stage();
    const [first] = stage.serve(1);
    stage.parent.pass("SIGINT");
    stage.advance(sameSignalMs - 1);
    stage.parent.pass("SIGINT");
    expect(first?.passed).toEqual(["SIGINT"]);
    first?.end(0);
    expect(await stage.ended).toBe(0);
  });
});
