import { expect } from "bun:test";
import { percentile } from "../../support/fault-callers.ts";
import type { ScorecardLine } from "../../support/scorecard.ts";
import type { MachineStack } from "../machine-stack.ts";
import { untilStored } from "../stack-ledger.ts";
import { mostAdmitted, StackLoad, type StackCall } from "../stack-load.ts";
import { createTenant, type NewTenant, type Tenant } from "./tenants.ts";

export interface TenantLoad extends NewTenant {
  readonly perSecond: number;
  /** Statuses that its calls may get. Default: 200 and 429. */
  readonly statuses?: readonly number[];
  /** Most admitted calls in any 60 seconds, as a multiple of its limit. Default: 2. */
  readonly bound?: number;
  /** The gateways that its calls go to, in turn with each fault. Default: the proxy. */
  readonly gateways?: readonly number[];
}

interface Running {
  readonly load: TenantLoad;
  readonly tenant: Tenant;
  readonly loads: StackLoad[];
}

/** Of a tenant: a busy machine gets fewer calls, not longer waits. */
const mostAtOnce = 25;

/** Calls of several tenants at once, before, during and after a fault. */
export class FaultRun {
  readonly #stack: MachineStack;
  readonly #running: readonly Running[];
  readonly #startedAt = performance.now();
  #faultAtMs = Number.NaN;
  #healedAtMs = Number.NaN;
  #wholeAtMs = Number.NaN;

  private constructor(stack: MachineStack, running: readonly Running[]) {
    this.#stack = stack;
    this.#running = running;
    for (const each of running) this.#begin(each);
  }

  static async start(stack: MachineStack, loads: readonly TenantLoad[]): Promise<FaultRun> {
    const running: Running[] = [];
    for (const load of loads) {
      running.push({ load, tenant: await createTenant(stack, load), loads: [] });
    }
    return new FaultRun(stack, running);
  }

  tenant(name: string): Tenant {
    const found = this.#running.find(({ load }) => load.name === name);
    if (found === undefined) throw new Error(`there is no tenant ${name}`);
    return found.tenant;
  }

  get #nowMs(): number {
    return performance.now() - this.#startedAt;
  }

  /** The fault begins. Tenants with gateways of their own go to the next one. */
  fault(): void {
    this.#faultAtMs = this.#nowMs;
    this.move();
  }

  /** Tenants with gateways of their own go to the next one. */
  move(): void {
    for (const each of this.#running) {
      if (each.load.gateways === undefined) continue;
      void each.loads.at(-1)?.stop();
      this.#begin(each);
    }
  }

  /** What was broken works again; the gateways may not know yet. */
  healed(): void {
    this.#healedAtMs = this.#nowMs;
  }

  /** The gateways have recovered. */
  recovered(): void {
    this.#wholeAtMs = this.#nowMs;
  }

  /** Ends the load; checks every status, every limit and the ledger. */
  async end(): Promise<void> {
    for (const { loads } of this.#running) await Promise.all(loads.map((load) => load.stop()));
    for (const { load, loads } of this.#running) {
      const { name, statuses = [200, 429], bound = 2, requestsPerMinute } = load;
      const calls = loads.flatMap((each) => this.#timed(each));
      const wrong = calls.filter(({ status }) => !statuses.includes(status));
      expect({ name, wrong }).toEqual({ name, wrong: [] });
      expect(calls.some(({ status }) => status === 200)).toBe(true);
      expect(mostAdmitted(calls)).toBeLessThanOrEqual(bound * requestsPerMinute);
    }
    const ledger = await untilStored(this.#stack.storageUrl, this.calls);
    expect(ledger).toEqual({ lost: 0, doubled: 0, miscounted: 0 });
  }

  /** Times, to report and not to assert. */
  figures(check: string, targets: { readonly recoveryMs: number }): readonly ScorecardLine[] {
    // The gateways warm up in the first half.
    const before = this.#p99(this.#faultAtMs / 2, this.#faultAtMs);
    const during = this.#p99(this.#faultAtMs, this.#healedAtMs) - before;
    const after = this.#p99(this.#wholeAtMs, Number.POSITIVE_INFINITY) - before;
    const line = (name: string, value: number, most: number): ScorecardLine => ({
      check,
      name: `${check}: ${name}`,
      value: `${Math.round(value)} ms`,
      limit: `<= ${most} ms`,
      isMet: value <= most,
    });
    return [
      {
        check,
        name: `${check}: p99 before`,
        value: `${Math.round(before)} ms`,
        limit: "any",
        isMet: true,
      },
      line("back after", this.#wholeAtMs - this.#healedAtMs, targets.recoveryMs),
      line("added p99 during", during, 60),
      line("added p99 after", after, 5),
      ...this.#boundFigures(check),
    ];
  }

  #boundFigures(check: string): readonly ScorecardLine[] {
    return this.#running
      .filter(({ load }) => load.requestsPerMinute <= 1_000)
      .map(({ load, loads }) => {
        const { name, requestsPerMinute, bound = 2 } = load;
        const most = mostAdmitted(loads.flatMap((each) => this.#timed(each))) / requestsPerMinute;
        return {
          check,
          name: `${check}: most admitted, ${name}`,
          value: `${most.toFixed(2)} L`,
          limit: `<= ${bound} L`,
          isMet: most <= bound,
        };
      });
  }

  get calls(): readonly StackCall[] {
    return this.#running.flatMap(({ loads }) => loads.flatMap((load) => this.#timed(load)));
  }

  /** The calls of a load, with times since the start of the run. */
  #timed(load: StackLoad): readonly StackCall[] {
    const offsetMs = load.startedAt - this.#startedAt;
    return load.calls.map((call) => ({ ...call, atMs: call.atMs + offsetMs }));
  }

  #p99(fromMs: number, untilMs: number): number {
    const some = this.calls.filter(({ atMs }) => atMs >= fromMs && atMs < untilMs);
    return percentile(
      some.map(({ latencyMs }) => latencyMs),
      0.99,
    );
  }

  #begin({ load, tenant, loads }: Running): void {
    const { gateways, perSecond } = load;
    const number = gateways?.[loads.length % gateways.length];
    const url = number === undefined ? this.#stack.url : this.#urlOf(number);
    loads.push(new StackLoad({ url, keys: [tenant.key], perSecond, mostAtOnce }));
  }

  #urlOf(number: number): string {
    const machine = this.#stack.machines[number];
    if (machine === undefined) throw new Error(`there is no gateway ${number}`);
    return machine.process.dataUrl;
  }
}
