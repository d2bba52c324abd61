import { SimulatedCaller } from "./caller.ts";
import { GatewayProcess, type ProcessEnvironment } from "./gateway-process.ts";
import type { CallRecord } from "./records.ts";
import type { GatewayPlan } from "./scenario.ts";

/** One gateway: a process, and after a crash the next one with the files of the last. */
export class Gateway {
  readonly plan: GatewayPlan;
  readonly #around: ProcessEnvironment;
  readonly processes: GatewayProcess[] = [];
  #process: GatewayProcess | undefined;
  #folder: string;

  constructor(plan: GatewayPlan, around: ProcessEnvironment) {
    this.plan = plan;
    this.#around = around;
    this.#folder = around.spools.next();
    this.start();
  }

  get process(): GatewayProcess | undefined {
    return this.#process;
  }

  start(): void {
    if (this.#process !== undefined) return;
    const { world } = this.#around;
    const name = `${this.plan.name}#${this.processes.length}`;
    world.log.note(`${name} starts`);
    const plan = { name, gateway: this.plan, folder: this.#folder };
    this.#process = new GatewayProcess(plan, this.#around);
    this.processes.push(this.#process);
  }

  crash(): void {
    const process = this.#process;
    if (process === undefined) return;
    const { world } = this.#around;
    world.log.note(`${process.name} crashes`);
    this.#process = undefined;
    const { calls, time } = world;
    for (const record of calls.values()) {
      const isUnderWay = !record.isOver || (record.opened && !record.closed);
      if (record.process === process.name && isUnderWay) record.crashedAt = time.now;
    }
    this.#folder = this.#around.spools.next();
    process.crash(this.#folder);
  }

  /** False if no process runs. */
  take(record: CallRecord): boolean {
    if (this.#process === undefined) return false;
    const caller = new SimulatedCaller(record, this.#process, this.#around.world);
    void caller.run();
    return true;
  }
}
