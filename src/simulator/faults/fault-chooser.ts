import { faultInModelName, noFault, parseFault, type Fault, type FaultStep } from "./fault-mode.ts";

/** The header that names the fault of one call: `x-simulator-fault: stall-mid:500`. */
export const faultHeader = "x-simulator-fault";

const defaultBurstLength = 3;
const modelsLimit = 10_000;
/** Ten times 0.1 adds up to slightly less than 1. */
const roundingError = 1e-9;

interface PlannedFault {
  readonly fault: Fault;
  times: number;
  readonly share: number;
  /** The sum of shares since the last fault; the next fault is due at 1. */
  owed: number;
}

/** Chooses the fault of a call: from its header, else its model's name, else the plan. */
export class FaultChooser {
  #plan: PlannedFault[] = [];
  /** Models whose next flapping call fails. */
  readonly #flapping = new Set<string>();
  /** How many calls of a model a burst has refused so far. */
  readonly #refused = new Map<string, number>();

  setPlan(steps: readonly FaultStep[]): void {
    this.#plan = steps
      .map(({ mode, argument, times = 1, share = 1 }) => {
        return { fault: { mode, argument }, times, share, owed: 0 };
      })
      .filter(({ times }) => times > 0);
  }

  /** Undefined when the header names a fault that does not exist. */
  choose(header: string | null, model: string): Fault | undefined {
    const fault = header === null ? this.#withoutHeader(model) : parseFault(header);
    if (fault?.mode === "flap") return this.#flap(model);
    return fault?.mode === "throttled-burst" ? this.#burst(model, fault.argument) : fault;
  }

  #withoutHeader(model: string): Fault {
    return faultInModelName(model) ?? this.#nextOfPlan() ?? noFault;
  }

  #nextOfPlan(): Fault | undefined {
    const [step] = this.#plan;
    if (step === undefined) return undefined;
    step.times -= 1;
    if (step.times <= 0) this.#plan.shift();
    step.owed += step.share;
    if (step.owed < 1 - roundingError) return undefined;
    step.owed -= 1;
    return step.fault;
  }

  #flap(model: string): Fault {
    if (this.#flapping.delete(model)) return { mode: "overloaded-503", argument: undefined };
    // Callers choose the names of models, so the set is bounded.
    if (this.#flapping.size >= modelsLimit) this.#flapping.clear();
    this.#flapping.add(model);
    return noFault;
  }

  /** Refuses only a model's first calls. */
  #burst(model: string, length = defaultBurstLength): Fault {
    const refused = this.#refused.get(model) ?? 0;
    if (refused >= length) return noFault;
    if (this.#refused.size >= modelsLimit) this.#refused.clear();
    this.#refused.set(model, refused + 1);
    return { mode: "throttle-429-bare", argument: undefined };
  }
}
