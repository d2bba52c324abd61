import { describe, expect, test } from "bun:test";
import { outOfProcesses, Stage } from "../../../test/support/parent-stage.ts";
import { firstRestartMs, healthyUptimeMs, whyNoDemo } from "./parent.ts";

describe("a gateway that is restarted", () => {
  test("replaces its processes one by one, none before its successor serves", async () => {
    const stage = new Stage();
    const old = stage.serve(2);
    const restarted = stage.restart();
    for (const [index, before] of old.entries()) {
      expect(stage.processes).toHaveLength(3 + index);
      const next = stage.nth(3 + index);
      expect(next.beginning).toMatchObject({ number: index + 1, portUse: "successor" });
      expect(before.isReplaced).toBe(false);
      next.serve({ processes: 2 });
      expect(before.isReplaced).toBe(true);
    }
    expect(await restarted).toBeUndefined();
    // They still serve their calls; afterwards they are not started again.
    for (const before of old) before.end(0);
    stage.advance(healthyUptimeMs);
    expect([stage.crashes, stage.processes.length]).toEqual([[], 4]);
    expect(await stage.end()).toBe(0);
  });

  test("ends only when a process that was replaced has ended", async () => {
    const stage = new Stage();
    const [old] = stage.serve(1);
    void stage.restart();
    stage.nth(2).serve();
    let hasEnded = false;
    void stage.ended.then(() => (hasEnded = true));
    stage.parent.pass("SIGTERM");
    stage.nth(2).end(0);
    stage.advance(1_000);
    expect([old?.passed, hasEnded]).toEqual([["SIGTERM"], false]);
    old?.end(0);
    expect(await stage.ended).toBe(0);
  });

  test("goes on with the process that it has if no new one serves, and says why", async () => {
    const stage = new Stage();
    const old = stage.serve(2);
    const restarted = stage.restart();
    stage.nth(3).say({ kind: "not-started", reason: "the port is taken" });
    stage.nth(3).end(1);
    expect(await restarted).toBe("the new process ended before it served: the port is taken");
    expect(old.map(({ isReplaced }) => isReplaced)).toEqual([false, false]);
    const silent = stage.restart();
    stage.nth(4).end(1);
    expect(await silent).toBe("the new process ended before it served");
    stage.refusal = outOfProcesses;
    expect(await stage.restart()).toBe("no new process can be started");
    expect([stage.crashes, stage.processes.length]).toEqual([[], 4]);
    expect(await stage.end()).toBe(0);
  });

  test("ends a new process that takes too long to serve", async () => {
    const stage = new Stage();
    const [old] = stage.serve(1);
    const restarted = stage.restart();
    stage.advance(59_000);
    expect(stage.nth(2).isKilled).toBe(false);
    stage.advance(1_000);
    expect([stage.nth(2).isKilled, old?.isReplaced]).toEqual([true, false]);
    expect(await restarted).toContain("it did not start within 60 s");
    expect(stage.crashes).toEqual([]);
    expect(await stage.end()).toBe(0);
  });

  test("starts a process at once where it would be tried again later", async () => {
    const stage = new Stage();
    const [first] = stage.serve(1);
    first?.end("SIGKILL");
    const restarted = stage.restart();
    const { beginning } = stage.nth(2);
    // Who asks for a restart gets the file as it is, or is told what is wrong with it.
    expect(beginning).toMatchObject({ number: 1, portUse: "another", crashedIn: undefined });
    stage.nth(2).serve();
    expect(await restarted).toBeUndefined();
    stage.advance(healthyUptimeMs);
    expect(stage.processes).toHaveLength(2);
    stage.nth(2).end("SIGKILL");
    stage.advance(firstRestartMs);
    expect(stage.processes).toHaveLength(3);
    expect(await stage.end()).toBe(0);
  });

  test("starts a new process again that crashes, and reports an old one that crashes while it leaves", async () => {
    const stage = new Stage();
    const [old] = stage.serve(1);
    const restarted = stage.restart();
    const next = stage.nth(2);
    next.serve();
    expect(await restarted).toBeUndefined();
    old?.end("SIGSEGV");
    expect(stage.crashes[0]).toMatchObject({ pid: old?.pid, nextStartMs: undefined });
    next.end("SIGKILL");
    stage.advance(firstRestartMs);
    expect(stage.nth(3).beginning?.portUse).toBe("another");
    expect(await stage.end()).toBe(0);
  });

  test("has as many processes as the configuration says by then", async () => {
    const stage = new Stage();
    const old = stage.serve(2);
    const fewer = stage.restart();
    stage.nth(3).serve({ processes: 1 });
    expect(await fewer).toBeUndefined();
    expect(old.map(({ isReplaced }) => isReplaced)).toEqual([true, true]);
    for (const before of old) before.end(0);
    const more = stage.restart();
    stage.nth(4).serve({ processes: 2 });
    expect(await more).toBeUndefined();
    expect(stage.nth(5).beginning).toMatchObject({ number: 2, portUse: "another" });
    expect(stage.processes).toHaveLength(5);
    expect(await stage.end()).toBe(0);
  });

  test("is restarted once by two requests at a time", async () => {
    const stage = new Stage();
    stage.serve(1);
    const both = Promise.all([stage.restart(), stage.restart()]);
    stage.nth(2).serve();
    expect(await both).toEqual([undefined, undefined]);
    expect(stage.processes).toHaveLength(2);
    expect(await stage.end()).toBe(0);
  });

  test("ends with all its processes when it is asked to end meanwhile", async () => {
    const stage = new Stage();
    stage.serve(2);
    const restarted = stage.restart();
    stage.parent.pass("SIGTERM");
    const all = stage.processes.map(({ passed }) => passed);
    expect(all).toEqual([["SIGTERM"], ["SIGTERM"], ["SIGTERM"]]);
    for (const child of stage.processes) child.end(0);
    expect(await stage.ended).toBe(0);
    expect(await restarted).toBeDefined();
    expect([stage.crashes, stage.processes.length]).toEqual([[], 3]);
  });

  test("ends only when a new process that does not serve yet has ended", async () => {
    const stage = new Stage();
    const [old] = stage.serve(1);
    const restarted = stage.restart();
    let hasEnded = false;
    void stage.ended.then(() => (hasEnded = true));
    stage.parent.pass("SIGTERM");
    old?.end(0);
    stage.advance(1_000);
    expect([hasEnded, stage.nth(2).passed]).toEqual([false, ["SIGTERM"]]);
    // Its word and the signal crossed.
    stage.nth(2).serve();
    expect(await restarted).toBeUndefined();
    stage.advance(1_000);
    expect(hasEnded).toBe(false);
    stage.nth(2).end(0);
    expect(await stage.ended).toBe(0);
    expect(stage.processes).toHaveLength(2);
  });

  test("starts no new process once it is asked to end", async () => {
    const stage = new Stage();
    stage.serve(1);
    stage.nth(1).end("SIGKILL");
    stage.advance(firstRestartMs);
    const restarted = stage.restart();
    stage.parent.pass("SIGTERM");
    stage.nth(2).end(0);
    expect(await restarted).toBe("the gateway is ending");
    expect(await stage.ended).toBe(0);
    expect(stage.processes).toHaveLength(2);
  });

  test("says so when it cannot be", async () => {
    const stage = new Stage();
    expect(await stage.restart()).toBe("the gateway does not serve yet");
    stage.nth(1).serve({ isReloadable: false });
    expect(await stage.restart()).toBe(whyNoDemo);
    expect(stage.processes).toHaveLength(1);
    expect(await stage.end()).toBe(0);
  });
});
