import { expect, test } from "bun:test";
import { minuteScopes } from "../../src/domain/limits/limit-scope.ts";
import type { ValkeyClient } from "../../src/store/limits/valkey/client.ts";
import { budgetOf } from "../contracts/limit-budget-contract.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { clientOf, emptied, limitsOver, steeredBy } from "../support/valkey-limits.ts";
import { describeWithValkey, valkeyOfTests } from "../support/valkey-server.ts";

const scopes = minuteScopes(
  "key:contract",
  { requestsPerMinute: 1_000, tokensPerMinute: 1_000_000 },
  { owner: "contract" },
);
const budgets = [budgetOf(100)];
const hash = "sluice:{0}:budget:contract:budget 2026-11";
const unavailable = { isAdmitted: false, budgets: [] };
const marks = "sluice:{0}:budget-marks";

describeWithValkey(() => {
  const running = valkeyOfTests();

  test("a command that comes after a later one changes nothing", async () => {
    const client = await clientOf(running.server);
    await emptied(running.server);
    const clock = new ManualClock({ monotonicMs: 1_000_000 });
    const sent: Parameters<ValkeyClient["run"]>[] = [];
    const steered = steeredBy(clock, client);
    const recording = {
      ...steered,
      run(...command: Parameters<ValkeyClient["run"]>) {
        sent.push(command);
        return steered.run(...command);
      },
    };
    const limits = await limitsOver(recording, { clock });
    clock.advance(2_000);
    const processes = [limits.process];
    limits.updateSpend({
      epoch: 1,
      isWhole: true,
      spend: [],
      isComplete: true,
      processes,
      silent: [],
    });
    const acquire = (callId: string, reserveNano: number) =>
      limits.acquire({ callId, scopes, tokens: 1, budgets, reserveNano });
    const numbers = () => running.server.command("HGET", hash, limits.process);
    sent.length = 0;
    expect((await acquire("first", 30)).isAdmitted).toBe(true);
    const deciding = sent.splice(0);
    await limits.settle("first", 1, 20);
    const telling = sent.filter(([{ name }]) => name === "mark");
    expect((await acquire("second", 60)).isAdmitted).toBe(true);
    const now = await numbers();
    expect(String(now).split(" ").slice(1)).toEqual(["80", "60"]);
    for (const command of [...deciding, ...telling]) {
      const [verdict] = (await steered.run(...command)) as readonly unknown[];
      expect(verdict).toBe(command[0].name === "mark" ? 0 : 4);
      expect(await numbers()).toEqual(now);
    }
    expect(deciding.length + telling.length).toBe(2);
    client.close();
  });

  test("what a process lost in the server it tells again, and others wait for that", async () => {
    const client = await clientOf(running.server);
    await emptied(running.server);
    const clock = new ManualClock({ monotonicMs: 1_000_000 });
    const [one, two] = await Promise.all(
      [1, 2].map(() => limitsOver(steeredBy(clock, client), { clock })),
    );
    if (one === undefined || two === undefined) throw new Error("there are two");
    const processes = [one.process, two.process];
    const note = { epoch: 1, isWhole: true, spend: [], isComplete: true, processes, silent: [] };
    const tell = () => [one, two].forEach((limits) => limits.updateSpend(note));
    clock.advance(2_000);
    tell();
    const acquire = async (limits: typeof one, callId: string, reserveNano: number) =>
      limits.acquire({ callId, scopes, tokens: 1, budgets, reserveNano });
    expect((await acquire(one, "first", 90)).isAdmitted).toBe(true);
    await running.server.command("DEL", hash, marks);
    // The first process has no mark.
    expect(await acquire(two, "second", 20)).toMatchObject(unavailable);
    clock.advance(2_000);
    tell();
    await two.tick();
    // The first process has not told what it has spent.
    expect(await acquire(two, "third", 20)).toMatchObject(unavailable);
    await one.tick();
    expect(await acquire(two, "fourth", 20)).toMatchObject({ budgets: [{ reservedNano: 90 }] });
    expect((await acquire(two, "fifth", 10)).isAdmitted).toBe(true);
    client.close();
  });

  test("a process that ended counts as the table has it, whatever it had reserved", async () => {
    const client = await clientOf(running.server);
    await emptied(running.server);
    const clock = new ManualClock({ monotonicMs: 1_000_000 });
    const killed = await limitsOver(steeredBy(clock, client), { clock });
    const limits = await limitsOver(steeredBy(clock, client), { clock });
    clock.advance(2_000);
    const acquire = async (of: typeof limits, callId: string, reserveNano: number) =>
      of.acquire({ callId, scopes, tokens: 1, budgets, reserveNano });
    const tell = async (processes: readonly string[], silent: readonly string[], nano: number) => {
      for (let seconds = 0; seconds < 70; seconds += 1) {
        clock.advance(1_000);
        await limits.tick();
        const byProcess = nano === 0 ? {} : { [killed.process]: nano };
        const spend = [{ budgetId: "budget", periodId: budgets[0]?.period.id ?? "", byProcess }];
        for (const of of [limits, killed]) {
          of.updateSpend({ epoch: 1, isWhole: true, spend, isComplete: true, processes, silent });
        }
      }
    };
    await tell([limits.process, killed.process], [], 0);
    expect((await acquire(killed, "first", 90)).isAdmitted).toBe(true);
    // It may still serve while nobody hears it.
    await tell([limits.process], [killed.process], 10);
    expect((await acquire(limits, "second", 20)).isAdmitted).toBe(false);
    await tell([limits.process], [], 10);
    expect((await acquire(limits, "third", 80)).isAdmitted).toBe(true);
    expect(await running.server.command("HGET", hash, killed.process)).toBeNull();
    expect(await running.server.command("HGET", hash, ".table")).toBe("1 10");
    expect(await acquire(limits, "fourth", 11)).toMatchObject({ isAdmitted: false });
    await limits.settle("third", 1, 0);
    // After a loss, all of it is told again.
    await running.server.command("DEL", hash, marks);
    await acquire(limits, "lost", 1);
    await tell([limits.process], [], 10);
    expect((await acquire(limits, "fifth", 91)).isAdmitted).toBe(false);
    expect((await acquire(limits, "sixth", 90)).isAdmitted).toBe(true);
    client.close();
  });

  test("what the server knows needs no leader, and what it does not know needs one", async () => {
    const client = await clientOf(running.server);
    await emptied(running.server);
    const clock = new ManualClock({ monotonicMs: 1_000_000 });
    const limits = await limitsOver(steeredBy(clock, client), { clock });
    const periodId = budgets[0]?.period.id ?? "";
    const tell = async (isComplete: boolean, byProcess: Record<string, number>) => {
      clock.advance(2_000);
      await limits.tick();
      const spend = [{ budgetId: "budget", periodId, byProcess }];
      const processes = [limits.process];
      limits.updateSpend({ epoch: 1, isWhole: true, spend, isComplete, processes, silent: [] });
    };
    const acquire = async (callId: string, reserveNano: number) =>
      limits.acquire({ callId, scopes, tokens: 1, budgets, reserveNano });
    await tell(false, { killed: 40 });
    expect(await acquire("first", 1)).toMatchObject(unavailable);
    await tell(true, { killed: 60 });
    expect((await acquire("second", 10)).isAdmitted).toBe(true);
    // A note that was read before is late.
    await tell(false, { killed: 40 });
    expect(await acquire("third", 31)).toMatchObject({ dimension: "money" });
    expect((await acquire("fourth", 30)).isAdmitted).toBe(true);
    await running.server.command("DEL", hash, marks);
    await acquire("lost", 0);
    await tell(false, { killed: 60 });
    expect(await acquire("fifth", 1)).toMatchObject(unavailable);
    client.close();
  });

  test("budgets are decided on, new ones too, when the server's clock is set back", async () => {
    const client = await clientOf(running.server);
    await emptied(running.server);
    const clock = new ManualClock({ monotonicMs: 1_000_000 });
    let setBackMs = 0;
    const server = { monotonic: () => clock.monotonic() + 10_000_000 - setBackMs };
    const limits = await limitsOver(steeredBy(server, client), { clock });
    const processes = [limits.process];
    const note = { epoch: 1, isWhole: true, spend: [], isComplete: true, processes, silent: [] };
    const pass = async (seconds: number) => {
      for (let second = 0; second < seconds; second += 1) {
        clock.advance(1_000);
        await limits.tick();
        limits.updateSpend(note);
      }
    };
    const acquire = async (callId: string, budget: (typeof budgets)[number], nano: number) =>
      limits.acquire({ callId, scopes, tokens: 1, budgets: [budget], reserveNano: nano });
    const [first = budgetOf(100)] = budgets;
    await pass(3);
    expect((await acquire("first", first, 60)).isAdmitted).toBe(true);
    setBackMs = 3_600_000;
    // Windows of before are in the future: none is trusted for a minute, as after a loss.
    await pass(70);
    expect((await acquire("second", first, 41)).isAdmitted).toBe(false);
    expect((await acquire("third", first, 40)).isAdmitted).toBe(true);
    expect((await acquire("fourth", budgetOf(100, { id: "new" }), 100)).isAdmitted).toBe(true);
    expect((await acquire("fifth", budgetOf(100, { id: "new" }), 1)).isAdmitted).toBe(false);
    client.close();
  });
});
