import type { Fault as OutageFault } from "../../outage/doubles/faults.ts";
import { placeCells } from "../../outage/grid/cell-models.ts";
import { times } from "../random.ts";
import type { EventPlan, Scenario, FaultSpan } from "../scenario.ts";
import { callerCounts, isHidden, timeLimits, type Course, type SimulatedCell } from "./cells.ts";
import { configuredScenario } from "./configured.ts";
import { plainCall } from "./plain-call.ts";
import type { Span } from "./spans.ts";

/** The durations before, during and after the fault of a target. */
export interface CellTimes {
  readonly perSecond: number;
  readonly warmSeconds: number;
  readonly faultSeconds: number;
  /** The duration of the fault of a flapping target. */
  readonly flappingSeconds: number;
  readonly afterSeconds: number;
}

/** A cell as a run of the simulation; times are those of the run. */
export interface PlacedScenario {
  readonly scenario: Scenario;
  /** The upstream that fails. */
  readonly primary: string;
  /** When it fails. */
  readonly broken: readonly Span[];
  /** The spans in which callers may notice it. */
  readonly noticed: readonly Span[];
}

/** The time after a break in which callers may notice it. */
const noticedMs = 1_000;
/** The average time until the headers. */
const slowThinkMs = 400;
const flapMs = 3_000;
/** The longest time until a dead process is replaced. */
const restartMs = 1_000;

export function placeScenario(simulated: SimulatedCell, cellTimes: CellTimes): PlacedScenario {
  const { cell, callers, limits } = simulated;
  const models = placeCells([cell]);
  const [placed] = models.cells;
  if (placed === undefined) throw new Error(`${simulated.name} has no models`);
  const { model, primary } = placed;
  // The network of the simulation has no ports, but a configuration has.
  const ports = models.upstreams.map((_, index) => 1 + index);
  const empty = configuredScenario({
    sections: models.sections(ports, timeLimits[limits]),
    accounts: times(callerCounts[callers], (index) => `account-${index}`),
  });
  const { timeouts } = empty.upstreams.find(({ name }) => name === primary) ?? {};
  const hiddenMs = isHidden(simulated) ? (timeouts?.idleMs ?? 0) : 0;
  const { broken, noticed, crashes } = courseOf(simulated.course, cellTimes, hiddenMs);
  const endsMs = Math.max(...broken.map(({ untilMs }) => untilMs)) + cellTimes.afterSeconds * 1_000;
  const gapMs = 1_000 / cellTimes.perSecond;
  const calls = times(Math.floor(endsMs / gapMs), (index) =>
    plainCall({
      id: `c${index}`,
      // No call begins at the very moment of a break.
      atMs: (index + 0.5) * gapMs,
      key: `k${keyAt(index, callerCounts[callers])}`,
      alias: model,
      kind: cell.kind === "embeddings" ? "embedding" : cell.kind,
    }),
  );
  const upstreams = empty.upstreams.map((plan) =>
    simulated.course === "slow-answers" ? { ...plan, thinkMs: slowThinkMs } : plan,
  );
  const troubles = broken.map(({ fromMs, untilMs }): EventPlan => {
    const span = { ...faultSpanOf(cell.fault), forMs: untilMs - fromMs };
    return { type: "faults", atMs: fromMs, upstream: primary, ...span };
  });
  return {
    scenario: { ...empty, upstreams, calls, events: [...troubles, ...crashes] },
    primary,
    broken,
    noticed,
  };
}

interface CoursePlan extends Pick<PlacedScenario, "broken" | "noticed"> {
  readonly crashes: readonly EventPlan[];
}

function courseOf(
  course: Course,
  { warmSeconds, faultSeconds, flappingSeconds }: CellTimes,
  hiddenMs: number,
): CoursePlan {
  const fromMs = warmSeconds * 1_000;
  const faultMs = faultSeconds * 1_000;
  const untilMs = fromMs + hiddenMs + faultMs;
  const first = { fromMs, untilMs: fromMs + hiddenMs + noticedMs };
  switch (course) {
    case "lasting":
    case "slow-answers":
      return { broken: [{ fromMs, untilMs }], noticed: [first], crashes: [] };
    case "flapping": {
      const count = Math.floor((flappingSeconds * 1_000) / (2 * flapMs));
      const broken = times(count, (index) => {
        const atMs = fromMs + 2 * flapMs * index;
        return { fromMs: atMs, untilMs: atMs + flapMs };
      });
      const noticed = broken.map(({ fromMs: atMs }) => {
        return { fromMs: atMs, untilMs: atMs + noticedMs };
      });
      return { broken, noticed, crashes: [] };
    }
    case "restart": {
      const atMs = fromMs + hiddenMs + faultMs / 2;
      const crash = { type: "crash", atMs, gateway: 0, downMs: restartMs } as const;
      // The next process does not know the target's health.
      const again = { fromMs: atMs, untilMs: atMs + restartMs + hiddenMs + noticedMs };
      const broken = [{ fromMs, untilMs: untilMs + hiddenMs }];
      return { broken, noticed: [first, again], crashes: [crash] };
    }
  }
}

/** In turn, shifted by one each round, so that a fault of every second request hits all keys. */
function keyAt(index: number, keys: number): number {
  return (index + Math.floor(index / keys)) % keys;
}

function faultSpanOf(fault: OutageFault): Omit<FaultSpan, "forMs"> {
  switch (fault) {
    case "throttle-retry-after":
      return { fault: "throttled-with-time", share: 1 };
    case "throttle":
      return { fault: "throttled", share: 1 };
    case "error-500":
      return { fault: "failed", share: 1 };
    case "unavailable-503":
      return { fault: "overloaded", share: 1 };
    case "refused":
      return { fault: "refused", share: 1 };
    case "reset":
      return { fault: "reset-before-headers", share: 1 };
    case "black-hole":
      return { fault: "hanging-connect", share: 1 };
    case "slow-headers":
      return { fault: "stall-before-headers", share: 1 };
    case "stall":
      return { fault: "stall-halfway", share: 1 };
    case "half":
      return { fault: "overloaded", share: 0.5, isEven: true };
  }
}
